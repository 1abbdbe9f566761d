package gluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// TestGroups: a group that cannot be read, or is too long, keeps no other out of the report.
func TestGroups(t *testing.T) {
	l := &service.Local{Data: t.TempDir()}
	if all, problem := groups(l); len(all) > 0 || problem != "" {
		t.Errorf("none: %v, %q", all, problem)
	}
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(groupsDir(l), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(groupsDir(l), name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("virt", "features.shard=on\n", 0o644)
	write("long", "a.b=1\n"+strings.Repeat("#", maxGroupSize), 0o644)
	all, problem := groups(l)
	if len(all) != 1 || all["virt"]["features.shard"] != "on" ||
		!strings.Contains(problem, "long (its file is longer") {
		t.Errorf("%v, %q", all, problem)
	}
	if os.Getuid() != 0 {
		write("secret", "a.b=1\n", 0)
		if all, problem := groups(l); len(all) != 1 || !strings.Contains(problem, "secret (") {
			t.Errorf("%v, %q", all, problem)
		}
	}
	for i := range 3 * maxGroups {
		write(fmt.Sprintf("group-%d", i), "a.b=1\n", 0o644)
	}
	if all, problem := groups(l); len(all) > maxGroups || !strings.Contains(problem, "too many") {
		t.Errorf("%d groups, %q", len(all), problem)
	}
	for i := range 3 * maxGroups {
		write(fmt.Sprintf("group-%d", i), strings.Repeat("a.b=1\n", maxGroupSize/10), 0o644)
	}
	size := 0
	all, _ = groups(l)
	for name := range all {
		size += maxGroupSize / 10 * len("a.b=1\n") * min(1, len(name))
	}
	if len(all) == 0 || size > maxGroupsAll {
		t.Errorf("%d groups of %d bytes", len(all), size)
	}
}
