package failpoint

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestList(t *testing.T) {
	p, err := List("testdata", "Write")
	if err != nil {
		t.Fatal(err)
	}
	missing, all := p.Missing()
	want := []string{
		"code.go:10 (direct)", "code.go:11 (Write)", "code.go:16 (Write)", "code.go:6 (Write)",
		"method.go:10 (Write)", "method.go:14 (Save)", "method.go:15 (Lock)", "method.go:5 (Write)",
	}
	if diff := cmp.Diff(want, missing); diff != "" || all != len(want) {
		t.Errorf("%d places (-want +got):\n%s", all, diff)
	}
	if in := p.In("code.go:6"); in != "direct" {
		t.Errorf("the place lies in %q", in)
	}
}

// Of what is called by the same name, that is meant which is called of the same: the last name before the dot, also of a function.
func TestList_of(t *testing.T) {
	for effect, want := range map[string][]string{
		"f.Write": {
			"code.go:10 (direct)", "code.go:11 (Write)", "code.go:16 (Write)", "code.go:6 (Write)", "method.go:10 (Write)", "method.go:15 (Lock)",
		},
		"makes.Write": nil, "other.Write": nil,
		"Put": {"chain.go:13 (Put)", "chain.go:14 (Put)"}, "api.Put": {"chain.go:13 (Put)"}, "Status.Put": {"chain.go:14 (Put)"}, "h.Put": nil,
	} {
		p, err := List("testdata", effect)
		if err != nil {
			t.Fatal(err)
		}
		if missing, _ := p.Missing(); !cmp.Equal(missing, want, cmpopts.EquateEmpty()) {
			t.Errorf("%s: got %v, want %v", effect, missing, want)
		}
	}
}

func TestList_noCode(t *testing.T) {
	if _, err := List("testdata/none", "Write"); err == nil {
		t.Error("a directory that is not there has no places, and that is no error")
	}
}

// TestNote: the calls that lead to Note are noted, and no others.
func TestNote(t *testing.T) {
	pkg, err := importPath(".")
	if err != nil {
		t.Fatal(err)
	}
	_, _, line, _ := runtime.Caller(0)
	at := func(n int) string { return fmt.Sprintf("failpoint_test.go:%d", line+n) }
	p := &Points{pkg: pkg, missing: map[string]string{at(3): "Note", at(4): "inner", at(5): "other", "testing.go:1": "x"}}
	inner := func() { p.Note() }
	inner()
	here := p.Here()
	if there := p.Here(); here != at(5) || there != at(6) {
		t.Errorf("it is at %q, and at %q", here, there)
	}
	if missing, _ := p.Missing(); !cmp.Equal(missing, []string{at(5) + " (other)", "testing.go:1 (x)"}) {
		t.Errorf("missing %v", missing)
	}
}
