package propose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

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

// TimeFor is how much longer the answer to a large manifest may take: the API server checks each object.
func TimeFor(manifest string) time.Duration {
	return time.Duration(len(manifest)>>10) * 100 * time.Millisecond
}

// Parse reads the objects of a plan. Those without a namespace get the plan's.
func Parse(p *api.Plan) ([]*unstructured.Unstructured, error) {
	if len(p.Spec.Manifest) > MaxManifest {
		return nil, Refuse("the manifest has %d KiB, but the limit is %d KiB: plan fewer objects at a time",
			len(p.Spec.Manifest)>>10, MaxManifest>>10)
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
