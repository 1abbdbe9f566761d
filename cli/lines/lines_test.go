package lines

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const file = `# a comment
---
# nothing
---
kind: A
metadata: {name: x}
spec: {x: 1}
---
kind: BList
items:
- metadata:
    name: x
    labels:
      example.com/a.b: c
  spec:
    devices:
    - one
    - two
    ceph: {mon: {count: 4}}
- kind: C
  metadata: {name: x, namespace: other}
---
"kind": "D"
"metadata": {"name": "y"}
"spec":
  "long":
    [1,
     2]
`

func TestLine(t *testing.T) {
	for _, c := range []struct {
		kind, name, field string
		want              int
	}{
		{"A", "x", "spec.x", 7},
		{"A", "x", "spec.nosuch", 7},
		{"A", "x", "nosuch", 0},
		{"A", "x", "", 0},
		{"B", "x", "spec.devices[1]", 18},
		{"B", "x", "spec.ceph.mon.count", 19},
		{"B", "x", "metadata.labels[example.com/a.b]", 14},
		{"B", "x", "status", 0},
		{"D", "y", "spec.long[1]", 28},
		{"D", "z", "kind", 0},
	} {
		p := Place{Data: []byte(file), Kind: c.kind, Namespace: "default", Name: c.name}
		if got := p.Line(c.field); got != c.want {
			t.Errorf("%s %s, %s: line %d, want %d", c.kind, c.name, c.field, got, c.want)
		}
	}
	if n := (Place{Data: []byte("a: [")}).Line("a"); n != 0 {
		t.Error("a file that is no YAML has no lines")
	}
}

func TestText(t *testing.T) {
	p := Place{Data: []byte(file), Kind: "B", Name: "x"}
	path := field.NewPath("spec")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "B"}, "b", field.ErrorList{
		field.Invalid(path.Child("devices").Index(1), "two", "no"),
		field.Required(path.Child("ceph", "mon", "nosuch"), ""),
		field.Required(field.NewPath("status"), ""),
	})
	unknown := errors.New("failed to create typed patch object (a/b): .spec.ceph.mon: field not declared in schema")
	for want, err := range map[string]error{
		", lines 18, 19": fmt.Errorf("while writing: %w", invalid), ", line 19": apierrors.NewInternalError(unknown),
		"": errors.New("spec.devices: no"),
	} {
		if got := p.Text(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
