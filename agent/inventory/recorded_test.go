package inventory

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var rewrite = flag.Bool("rewrite", false, "write what was found into testdata")

// TestDevices_ofRecordedMachines builds the files of a machine from each archive in testdata, and compares the inventory.
// "sys", "proc" and "udev" hold one file a line, its path and its text; "blkid/NAME" is the answer of blkid -p.
func TestDevices_ofRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded machines: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			scanner := recorded(t, archive)
			devices, err := scanner.Devices(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			compare(t, file, archive, print(devices))
		})
	}
}

func compare(t *testing.T, file string, archive *txtar.Archive, got string) {
	t.Helper()
	for i, f := range archive.Files {
		if f.Name != "want" {
			continue
		}
		if *rewrite {
			archive.Files[i].Data = []byte(got)
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if diff := cmp.Diff(string(f.Data), got); diff != "" {
			t.Errorf("inventory differs (-want +got):\n%s", diff)
		}
		return
	}
	t.Errorf("%s has no part named want", file)
}

// recorded makes a Scanner for the machine in the archive.
func recorded(t *testing.T, archive *txtar.Archive) *Scanner {
	t.Helper()
	root, answers := t.TempDir(), map[string]string{}
	put := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("proc/self/mountinfo", "")
	for _, f := range archive.Files {
		switch {
		case f.Name == "sys":
			for line := range strings.Lines(string(f.Data)) {
				path, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				put("sys/block/"+path, strings.ReplaceAll(text, `\0`, "\x00"))
			}
		case strings.HasPrefix(f.Name, "blkid/"):
			answers["/dev/"+strings.TrimPrefix(f.Name, "blkid/")] = string(f.Data)
		case f.Name != "want":
			put(f.Name, string(f.Data))
		}
	}
	return &Scanner{root: root, look: func(_ context.Context, path string) findings {
		if strings.HasPrefix(answers[path], "ambivalent") {
			return parseBlkid("", "", 8)
		}
		return parseBlkid(answers[path], "", 0)
	}}
}

// print writes an inventory for people to read.
func print(devices []api.Device) string {
	var b strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&b, "%s %s %s %s", d.Path, d.ID, d.Kind, d.Size.String())
		for _, word := range []string{string(d.Media), d.Vendor, d.Model, d.Serial} {
			if word != "" {
				fmt.Fprintf(&b, " %s", strings.ReplaceAll(word, " ", "_"))
			}
		}
		if d.Parent != "" {
			fmt.Fprintf(&b, " on %s", d.Parent)
		}
		fmt.Fprintf(&b, ": %s\n", d.Availability)
		for _, l := range d.Links {
			fmt.Fprintf(&b, "\tlink %s\n", l)
		}
		for _, r := range d.Reasons {
			fmt.Fprintf(&b, "\t%s\n", r)
		}
	}
	return b.String()
}
