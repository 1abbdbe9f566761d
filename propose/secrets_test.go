package propose

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/holdfast-storage/holdfast/engine"
)

type noSecrets struct{}

func (noSecrets) Secret(context.Context, string) (map[string][]byte, error) {
	return nil, engine.ErrNotFound
}

// Secrets of a manifest are read as they will be; others as they are.
func TestSecretsAfter(t *testing.T) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Secret")
	o.SetNamespace("n")
	o.SetName("cert")
	after := o.DeepCopy()
	after.Object["data"] = map[string]any{"tls.crt": "aGk="}
	after.Object["stringData"] = map[string]any{"tls.key": "ho"}
	s := &secretsAfter{noSecrets{}, "n", []Target{{Unstructured: o, After: after}}}
	if data, err := s.Secret(t.Context(), "cert"); err != nil || string(data["tls.crt"]) != "hi" || string(data["tls.key"]) != "ho" {
		t.Errorf("%v, %v", data, err)
	}
	if _, err := s.Secret(t.Context(), "other"); !errors.Is(err, engine.ErrNotFound) {
		t.Error(err)
	}
	s.targets[0].After = nil
	if _, err := s.Secret(t.Context(), "cert"); !errors.Is(err, engine.ErrNotFound) {
		t.Error(err)
	}
}
