package propose

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ErrRefused is what errors about a request are that nobody can answer as it is.
var ErrRefused = errors.New("refused")

type refused struct{ error }

func (refused) Is(target error) bool { return target == ErrRefused }

func (r refused) Unwrap() error { return r.error }

// Refused makes an error one of a request that nobody can answer as it is. Its words stay.
func Refused(err error) error { return refused{err} }

// Refuse is Refused of a sentence.
func Refuse(format string, args ...any) error { return Refused(fmt.Errorf(format, args...)) }

// MaxManifest is how long the manifest of a plan may be, so that the plan has room for its answer.
const MaxManifest = 1 << 20

// Manifest is a manifest of objects, as YAML documents; of what is deleted, and of Secrets, it has
// the names alone.
func Manifest(operation api.PlanOperation, objects []*unstructured.Unstructured) (string, error) {
	var docs []string
	for _, u := range objects {
		content := u.Object
		if operation == api.PlanDelete || IsSecret(u) {
			meta := map[string]any{"name": u.GetName()}
			if u.GetNamespace() != "" {
				meta["namespace"] = u.GetNamespace()
			}
			content = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": meta}
		}
		doc, err := sigsyaml.Marshal(content)
		if err != nil {
			return "", fmt.Errorf("while making the plan: %w", err)
		}
		docs = append(docs, string(doc))
	}
	manifest := strings.Join(docs, "---\n")
	return manifest, Fits(manifest)
}

// maxEncoded is how long it may be as the API keeps it, with escaped characters.
const maxEncoded = MaxManifest + MaxManifest/10

// Fits says why a Plan has no room for a manifest.
func Fits(manifest string) error {
	encoded, err := json.Marshal(manifest)
	if err != nil {
		panic(err) // a string can be written
	}
	for _, x := range []struct{ has, most int }{{len(manifest), MaxManifest}, {len(encoded), maxEncoded}} {
		if x.has > x.most {
			return fmt.Errorf("the manifest has %d KiB, and a plan has room for %d KiB: name fewer objects at a time",
				kib(x.has), x.most>>10)
		}
	}
	return nil
}

// SecretsFit says why the Secret that goes with a Plan has no room for the Secrets of its manifest.
func SecretsFit(data map[string][]byte) error {
	size := 0
	for _, text := range data {
		size += len(text)
	}
	if size > corev1.MaxSecretSize {
		return fmt.Errorf("the Secrets have %d KiB, and a plan has room for %d KiB: name fewer Secrets at a time",
			kib(size), corev1.MaxSecretSize>>10)
	}
	return nil
}

// kib is a number of bytes in KiB, rounded up.
func kib(bytes int) int { return (bytes + 1023) >> 10 }

// TimeFor is how much longer the answer to a large manifest may take: the API server checks each object.
func TimeFor(manifest string) time.Duration {
	return time.Duration(len(manifest)>>10) * 100 * time.Millisecond
}

// Parse reads the objects of a plan. Those without a namespace get the plan's.
func Parse(p *api.Plan) ([]*unstructured.Unstructured, error) {
	if err := Fits(p.Spec.Manifest); err != nil {
		return nil, Refused(err)
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(p.Spec.Manifest)), 4096)
	for n := 1; ; n++ {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, Refuse("the manifest has no object")
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, Refuse("document %d of the manifest: %w", n, err)
		case len(u.Object) == 0:
			continue
		case u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "":
			return nil, Refuse("document %d of the manifest has no apiVersion, kind or metadata.name", n)
		}
		if u.GetNamespace() == "" && u.GetKind() != "Namespace" && u.GetKind() != "Host" {
			u.SetNamespace(p.Namespace)
		}
		all = append(all, u)
	}
}

// IsSecret says whether an object is a Secret, which no Plan may hold: others may read Plans.
func IsSecret(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"
}

// SecretEntry names a Secret of the manifest in the Secret that goes with the Plan
// (api.SecretTypePlan).
func SecretEntry(u *unstructured.Unstructured) string { return u.GetNamespace() + "." + u.GetName() }
