package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCurrent fails if a schema or a reference page is not what the definitions make of it, or is
// there without a kind.
func TestCurrent(t *testing.T) {
	schemas, pages := t.TempDir(), t.TempDir()
	if err := write(schemas, pages); err != nil {
		t.Fatal(err)
	}
	same(t, schemas, "../../schema", "*.json")
	same(t, pages, "../../../docs/reference/api", "*.md")
}

func same(t *testing.T, made, kept, pattern string) {
	t.Helper()
	files := map[string]bool{}
	for _, dir := range []string{made, kept} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			files[filepath.Base(file)] = true
		}
	}
	if len(files) < 15 {
		t.Fatalf("found %d files only", len(files))
	}
	for file := range files {
		want, errMade := os.ReadFile(filepath.Join(made, file))
		got, errKept := os.ReadFile(filepath.Join(kept, file))
		if errMade != nil || errKept != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current: run hack/generate", filepath.Join(kept, file))
		}
	}
}

// TestPage: a page has fields at any depth, with types, defaults and rules; it says what is
// required.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/api/filesystem.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `spec.dataPools[].replicated.size` | integer, 1 to 10 |", "Default: `3`.",
		"| `spec.cluster` | string | **Required.**", "| `status.conditions` | list of conditions |",
		"| rule for | text of the refusal |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page of Filesystem has no %q", want)
		}
	}
}

// TestWrite_removes: the file of a kind that is gone is removed, and no other file.
func TestWrite_removes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"gone.md", "note.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeAll(dir, "*.md", map[string][]byte{"pool.md": []byte("x")}); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v", left, err)
	}
}
