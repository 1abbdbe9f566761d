package apply

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// writeOf is a write of one text.
func writeOf(text string) spec.Write {
	object := map[string]any{"spec": map[string]any{"x": text}}
	return spec.Write{Manager: "m", Object: &unstructured.Unstructured{Object: object}}
}

// TestParameters: what an Action carries is what was written, also where characters of several bytes
// lie at the end of a part.
func TestParameters(t *testing.T) {
	for shift := range 4 {
		w := writeOf(strings.Repeat("x", shift) + strings.Repeat("ö€😀", 20_000))
		parameters, err := Parameters([]spec.Write{w}, true, "h1/d1", "h2/d2")
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range parameters {
			if !utf8.ValidString(string(value)) || len(value) > partBytes {
				t.Errorf("%s: %d bytes, text %v", name, len(value), utf8.ValidString(string(value)))
			}
		}
		list, err := writesOf(&api.Action{Spec: api.ActionSpec{Parameters: parameters}})
		if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Object, w.Object.Object) {
			t.Errorf("%d writes, %v", len(list), err)
		}
	}
}

// TestParameters_bounds: more than an Action has room for is refused.
func TestParameters_bounds(t *testing.T) {
	if p, err := Parameters([]spec.Write{writeOf(strings.Repeat("€", partBytes*mostParts/3))}, false); err == nil {
		t.Errorf("%d parameters", len(p))
	}
	if p, err := Parameters(nil, false, strings.Repeat("x", partBytes), "h/d"); err == nil {
		t.Errorf("%d parameters", len(p))
	}
	if _, err := writesOf(&api.Action{}); err == nil {
		t.Error("an Action without parameters is taken")
	}
}
