package leadermemory

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// daemon has entries, each a name and a value.
func daemon(entries ...string) *api.Daemon {
	d := &api.Daemon{}
	for i := 0; i < len(entries); i += 2 {
		Set(d, entries[i], entries[i+1])
	}
	return d
}

func TestMemory(t *testing.T) {
	d := daemon("a", "1", "b", "")
	d.Annotations[api.AnnotationStart] = "now"
	if v, known := Get(d, "a"); v != "1" || !known {
		t.Errorf("a is %q, %v", v, known)
	}
	if v, known := Get(d, "b"); v != "" || !known {
		t.Errorf("b, which is recorded and empty, is %q, %v", v, known)
	}
	if _, known := Get(d, "start-requested"); known {
		t.Error("another annotation is taken for memory")
	}
	shared := *d
	Drop(d, "a")
	Set(d, "b", "2")
	if v, _ := Get(&shared, "a"); v != "1" {
		t.Error("a copy of the daemon was changed with it")
	}
	Take(d, daemon("c", "3"))
	if want := map[string]string{api.AnnotationStart: "now", Prefix + "c": "3"}; !maps.Equal(d.Annotations, want) {
		t.Errorf("annotations = %v", d.Annotations)
	}
	d = daemon("a", "1")
	if Drop(d, "a"); d.Annotations != nil {
		t.Errorf("annotations = %v", d.Annotations)
	}
}

func TestWrite(t *testing.T) {
	want := daemon("a", "1")
	want.Spec.Host = "h1"
	d := daemon()
	for _, x := range []struct {
		change              func()
		generation, changed bool
	}{
		{func() {}, true, true},
		{func() {}, false, false},
		{func() { Set(want, "a", "2") }, false, true},
		{func() { want.Spec.State = api.WantStopped }, true, true},
		{func() { Drop(want, "a"); want.Spec.State = api.WantRunning }, true, true},
	} {
		x.change()
		if generation, changed := Write(d, want); generation != x.generation || changed != x.changed {
			t.Errorf("generation %v, changed %v; want %+v", generation, changed, x)
		}
		if !d.Spec.Equal(&want.Spec) || !Same(d, want) {
			t.Errorf("it is %+v %v", d.Spec, d.Annotations)
		}
	}
}

func TestChanged(t *testing.T) {
	another := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x/a": "1"}}}
	for what, x := range map[string]struct {
		a, b *api.Daemon
		want []string
	}{
		"nothing":         {daemon(), daemon(), nil},
		"the same":        {daemon("a", "1"), daemon("a", "1"), nil},
		"a value":         {daemon("a", "1", "b", "1"), daemon("a", "2", "b", "1"), []string{"a"}},
		"one more":        {daemon("b", "1"), daemon("b", "1", "a", ""), []string{"a"}},
		"one less":        {daemon("b", "1", "a", ""), daemon("b", "1"), []string{"a"}},
		"all of them":     {daemon("b", "1"), daemon("a", "1"), []string{"a", "b"}},
		"another purpose": {daemon(), another, nil},
	} {
		if got := Changed(x.a, x.b); !slices.Equal(got, x.want) || Same(x.a, x.b) != (len(x.want) == 0) {
			t.Errorf("%s: %q, want %q", what, got, x.want)
		}
	}
}
