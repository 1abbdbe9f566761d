package v1alpha1

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func noted(memory ...string) *Daemon {
	d := &Daemon{}
	for i := 0; i < len(memory); i += 2 {
		d.Remember(memory[i], memory[i+1])
	}
	return d
}

func TestDaemon_memory(t *testing.T) {
	d := noted("a", "1", "b", "")
	d.Annotations[AnnotationStart] = "now"
	if v, known := d.Memory("a"); v != "1" || !known {
		t.Errorf("a is %q, %v", v, known)
	}
	if v, known := d.Memory("b"); v != "" || !known {
		t.Errorf("b, which is noted to be empty, is %q, %v", v, known)
	}
	if _, known := d.Memory("start-requested"); known {
		t.Error("another annotation is taken for memory")
	}
	shared := *d
	d.Forget("a")
	d.Remember("b", "2")
	if v, _ := shared.Memory("a"); v != "1" {
		t.Error("a copy of the daemon was changed with it")
	}
	d.TakeMemory(noted("c", "3"))
	if want := map[string]string{AnnotationStart: "now", MemoryPrefix + "c": "3"}; !maps.Equal(d.Annotations, want) {
		t.Errorf("annotations = %v", d.Annotations)
	}
	if d = noted("a", "1"); d.Annotations != nil {
		if d.Forget("a"); d.Annotations != nil {
			t.Errorf("annotations = %v", d.Annotations)
		}
	}
}

func TestChangedMemory(t *testing.T) {
	for what, x := range map[string]struct {
		a, b *Daemon
		want []string
	}{
		"nothing":         {noted(), noted(), nil},
		"the same":        {noted("a", "1"), noted("a", "1"), nil},
		"a value":         {noted("a", "1", "b", "1"), noted("a", "2", "b", "1"), []string{"a"}},
		"one more":        {noted("b", "1"), noted("b", "1", "a", ""), []string{"a"}},
		"one less":        {noted("b", "1", "a", ""), noted("b", "1"), []string{"a"}},
		"all of them":     {noted("b", "1"), noted("a", "1"), []string{"a", "b"}},
		"another purpose": {noted(), &Daemon{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x/a": "1"}}}, nil},
	} {
		if got := ChangedMemory(x.a, x.b); !slices.Equal(got, x.want) || x.a.SameMemory(x.b) != (len(x.want) == 0) {
			t.Errorf("%s: %q, want %q", what, got, x.want)
		}
	}
}
