package kube

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestHostPolicies: the operator looks for all policies that bind hosts.
func TestHostPolicies(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kubernetes/21-hosts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^kind: ValidatingAdmissionPolicy\nmetadata:\n  name: (\S+)$`).FindAllSubmatch(text, -1) {
		declared = append(declared, string(m[1]))
	}
	if !slices.Equal(declared, HostPolicies) {
		t.Errorf("declared are %q, and looked for are %q", declared, HostPolicies)
	}
}
