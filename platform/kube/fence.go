package kube

import (
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// OperatorAccount is the name of the operator's ServiceAccount in api.SystemNamespace.
	OperatorAccount = "holdfast-operator"
	// Operator is the user that the operator is to the API.
	Operator = "system:serviceaccount:" + api.SystemNamespace + ":" + OperatorAccount
	// extraTerm is the extra of the user that carries the token of a term. It comes with writes of
	// all kinds, deletions too, and no caller has to remember it.
	extraTerm = "holdfast.io/term"
)

// Fenced returns a copy of config that acts as the operator in the term of token. The policy
// holdfast-leader refuses its writes once another operator leads.
func Fenced(config *rest.Config, token string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: Operator, Extra: map[string][]string{extraTerm: {token}}}
	return config
}
