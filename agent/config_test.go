package agent

import (
	"testing"

	"k8s.io/client-go/rest"
)

func TestNewAgent_needs(t *testing.T) {
	if err := Run(t.Context(), Config{Name: "h", REST: &rest.Config{}}); err == nil {
		t.Error("an agent without a runtime ran")
	}
}
