package kube

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRefuseRepeatedKeys(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"a: 1\nb: {a: 1}\nc: [{a: 1}, {a: 1}]\n---\na: 1\n", ""},
		{"a: 1\n---\nb: 1\nc:\n  d: 1\n  d: {x: 1}\n", `f, line 6: the key "d" occurs twice`},
		{"---\r\na: 1\r\n--- {b: 1, b: 2}\n", `f, line 3: the key "b"`},
		{"a: 1\n...\n---\nb: 1\n...\n# x\n---\nc: 1\n'c': 2\n", `f, line 9: the key "c"`},
		{"1: a\n0x1: b\n", `f, line 2: the key "0x1"`},
		{"a: |\n  b: 1\n  b: 2\n---x: 1\n", ""},
		{"{\"a\": 1,\n\"a\": 2}", `f, line 2: the key "a"`},
		// A map's own keys count before those that it takes over, but count once.
		{"x: &d {a: 1}\ny:\n  <<: *d\n  a: 2\n", ""},
		{"x: &d {a: 1}\ny:\n  <<: *d\n  a: 2\n  a: 3\n", `f, line 5: the key "a"`},
		{"a: [1\n---\nb: 1\nb: 2\n", `f, line 4: the key "b"`},
		{"x: &d [*d]\n", ""},
	} {
		err := RefuseRepeatedKeys([]byte(x.text), "f")
		if (err == nil) != (x.want == "") || err != nil && !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%q: %v, not %q", x.text, err, x.want)
		}
	}
}

// A file of many documents needs memory for one at a time.
func TestRefuseRepeatedKeys_memory(t *testing.T) {
	allocated := func(documents int) uint64 {
		data := bytes.Repeat([]byte("---\na: 1\n"), documents)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := RefuseRepeatedKeys(data, "f"); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(1000), allocated(8000); many > 12*few {
		t.Errorf("8 times the documents allocate %d times the memory: %d and %d bytes", many/few, few, many)
	}
}

// A file and standard input are bounded as an address is.
func TestFiles_bounded(t *testing.T) {
	large := bytes.Repeat([]byte("#\n"), mostBytes/2+1)
	dir := t.TempDir()
	file := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(file, large, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"-", file, dir} {
		f := Files{Names: []string{name}}
		if _, err := f.Read(bytes.NewReader(large)); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Truncate(file, mostBytes); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(bytes.NewReader(large[:mostBytes])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(file, large, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
