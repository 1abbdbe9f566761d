// Package kube is what the home in Kubernetes has beside the Store that both homes share.
//
//   - fence.go and term.go: the token of a term travels with each write, and a policy compares it with the Term.
//   - keeper.go: Hosts from Nodes, and what their agents may do.
package kube
