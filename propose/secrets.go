package propose

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/holdfast-storage/holdfast/engine"
)

// secretsAfter reads Secrets as they will be when a request was carried out: a certificate may
// stand in one manifest with what shows it.
type secretsAfter struct {
	engine.SecretReader
	namespace string
	targets   []Target
}

// Present reads Secrets as they are.
func (s *secretsAfter) Present() engine.SecretReader { return s.SecretReader }

// Secret returns what a Secret will hold.
func (s *secretsAfter) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	for _, t := range s.targets {
		if !IsSecret(t.Unstructured) || t.GetNamespace() != s.namespace || t.GetName() != name {
			continue
		}
		if t.After == nil {
			return nil, fmt.Errorf("secret %s is deleted: %w", name, engine.ErrNotFound)
		}
		var secret corev1.Secret
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.After.Object, &secret); err != nil {
			return nil, fmt.Errorf("while reading secret %s of the manifest", name) // the cause might show what is secret
		}
		data := maps.Clone(secret.Data)
		for entry, text := range secret.StringData {
			if data == nil {
				data = map[string][]byte{}
			}
			data[entry] = []byte(text)
		}
		return data, nil
	}
	return s.SecretReader.Secret(ctx, name)
}
