// Package plans says what will happen, in words that a person reads and a Plan keeps, and tells whether the world has moved since.
// Nothing in it reads or writes anything.
package plans
