// Package plans makes the text of a plan, the changes that a Plan object keeps, and the basis that a plan
// depends on: whether something has changed since the plan was made. It is pure.
package plans
