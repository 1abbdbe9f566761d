package control_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// sweepPlaces are how many places are damaged: of the database, the log and the snapshot in turn,
// cut and flipped in turn.
const sweepPlaces = 50

// TestDamaged_sweep damages the files of one of three servers at many places. Each time it ends
// with the data of the others, or runs on what it has, and that is whole; never does it stay away,
// or show other data.
func TestDamaged_sweep(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "sw", 1)
	c.stops[0]()
	// Its log begins with a snapshot from then on, and so do those of the others.
	if _, err := restoreInto(t, c.configs[0], ""); err != nil {
		t.Fatal(err)
	}
	c.start(0)
	for range 2 {
		c.add("sw")
	}
	seated(t, 3, c.servers...)
	admin := newClient(t, c.servers[0].Config())
	ns := newNamespace(t, admin)
	putSecret(t, admin, ns, "kept")
	counts := map[string]int{}
	for i := range sweepPlaces {
		if !tier.Tries(t, i, 13) {
			continue
		}
		what := c.damageAt(2, i)
		counts[what+": "+c.comesBack(2)]++
		wantSecret(t, newClient(t, c.servers[2].Config()), ns, "kept", true)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Log(counts[what], what)
	}
}

// damageAt stops a server and damages a file of it, by the number of the place.
func (c *crew) damageAt(i, place int) string {
	c.t.Helper()
	c.stops[i]()
	dir := c.configs[i].DataDir
	kept, _ := filepath.Glob(filepath.Join(dir, "etcd.damaged-*")) // the pattern is good
	for _, old := range kept {
		if err := os.RemoveAll(old); err != nil {
			c.t.Fatal(err)
		}
	}
	file := []string{"snap/db", "wal/*.wal", "snap/*.snap"}[place%3]
	paths, _ := filepath.Glob(filepath.Join(dir, "etcd", "member", file)) // the pattern is good
	if len(paths) == 0 {
		c.t.Fatalf("there is no %s", file)
	}
	path := paths[len(paths)-1]
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	used := len(bytes.TrimRight(text, "\x00"))
	at := (2*place + 1) * used / (2 * sweepPlaces)
	if place%2 == 0 {
		if err := os.Truncate(path, int64(at)); err != nil {
			c.t.Fatal(err)
		}
		return "cut " + file
	}
	c.overwrite(i, strings.TrimPrefix(path, filepath.Join(dir, "etcd", "member")+"/"), int64(at), []byte{text[at] ^ 0x55})
	return "flip " + file
}

// comesBack starts a server until it holds its seat, as an init system would, and says how that came.
func (c *crew) comesBack(i int) string {
	c.t.Helper()
	c.configs[i].Init, c.configs[i].JoinToken = false, ""
	for range 3 {
		s, err := control.Start(timeout(c.t), c.configs[i])
		if err != nil {
			c.t.Logf("the start says: %v", err)
			continue
		}
		c.servers[i], c.stops[i] = s, sync.OnceFunc(s.Stop)
		c.t.Cleanup(c.stops[i])
		begun := time.Now()
		seated(c.t, 3, c.servers...)
		n := c.note(i)
		if n == nil || n.Kept == "" {
			return "runs on it"
		}
		c.t.Logf("replaced in %s: %v", time.Since(begun).Round(100*time.Millisecond), n)
		return "replaced"
	}
	c.t.Fatal("the server does not come back")
	return ""
}
