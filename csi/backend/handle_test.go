package backend

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for id, want := range map[string]bool{
		"rbd/0f0c3a3e-7f6c-4b3f-9a51-0d8f6f3f1c11/12/pvc-0f0c3a3e-7f6c-4b3f-9a51-0d8f6f3f1c11": true,
		"": false, "rbd": false, "rbd/c/1": false, "rbd/c/1/a/b": false, "rbd//1/a": false, "rbd/c/../a": false,
		"rbd/c/1/a b": false, "rbd/c/1/" + strings.Repeat("a", 120): false,
	} {
		h, ok := Parse(id)
		if ok != want || ok && h.String() != id {
			t.Errorf("%q: got %v, %v", id, h, ok)
		}
	}
}

func TestNameOf(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, name := range []string{"pvc-1", "a/b", "../x", "ä", long, long + "1"} {
		got := NameOf(name)
		if !safe.MatchString(got) || got != NameOf(name) {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	if NameOf("pvc-1") != "pvc-1" || NameOf(long) == NameOf(long+"1") {
		t.Error("a safe name was changed, or two names became one")
	}
}
