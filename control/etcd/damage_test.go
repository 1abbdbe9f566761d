package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// filled is the directory of a member that was stopped in order, with its configuration.
func filled(t *testing.T) Config {
	t.Helper()
	c := loneConfig(t)
	m, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		key := fmt.Appendf(nil, "/registry/things/%d", i%150)
		value := []byte(strings.Repeat(fmt.Sprintf("value %d ", i), 1+i%40))
		if _, err := m.etcd.Server.Put(t.Context(), &pb.PutRequest{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	gone := &pb.DeleteRangeRequest{Key: []byte("/registry/things/7")}
	if _, err := m.etcd.Server.DeleteRange(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := m.etcd.Server.Compact(t.Context(), &pb.CompactionRequest{Revision: 100, Physical: true}); err != nil {
		t.Fatal(err)
	}
	m.Stop()
	return c
}

// hurt is one way to damage a file, at a place that is a part of its used length.
type hurt struct {
	name string
	do   func(t *testing.T, path string, at int64)
}

var hurts = []hurt{
	{"cut", func(t *testing.T, path string, at int64) {
		if err := os.Truncate(path, at); err != nil {
			t.Fatal(err)
		}
	}},
	{"flip", func(t *testing.T, path string, at int64) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		one := make([]byte, 1)
		if _, err := f.ReadAt(one, at); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 0x55
		if _, err := f.WriteAt(one, at); err != nil {
			t.Fatal(err)
		}
	}},
}

// used is up to where a file holds something else than zeros.
func used(t *testing.T, path string) int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(strings.TrimRight(string(text), "\x00")))
}

// TestFindDamage cuts and flips the files of a member at many places. Where nothing is found, etcd
// has to start on what is left, or say by itself what is wrong; never does it end the process, or
// hang.
func TestFindDamage(t *testing.T) {
	c := filled(t)
	if d := FindDamage(c.Dir); d != nil {
		t.Fatalf("a good directory is called damaged: %v", d)
	}
	const places = 50
	counts := map[string]int{}
	for _, file := range []string{databaseFile, logDir + "/0000000000000000-0000000000000000.wal"} {
		length := used(t, filepath.Join(c.Dir, file))
		for _, h := range hurts {
			for i := range int64(places) {
				if !tier.Tries(t, int(i), 8) {
					continue
				}
				at := (2*i + 1) * length / (2 * places)
				counts[filepath.Base(filepath.Dir(file))+" "+h.name+": "+outcome(t, c, file, h, at)]++
			}
		}
	}
	for what, n := range counts {
		t.Log(n, what)
	}
}

// outcome damages a copy of a directory, and says what comes of it.
func outcome(t *testing.T, c Config, file string, h hurt, at int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	if err := copyTree(c.Dir, dir); err != nil {
		t.Fatal(err)
	}
	h.do(t, filepath.Join(dir, file), at)
	if d := FindDamage(dir); d != nil {
		return "found"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c.Dir, c.Log, c.PeerPort, c.ClientPort = dir, slog.New(slog.DiscardHandler), freePort(t), freePort(t)
	m, err := Start(ctx, c)
	if err != nil {
		if !Broken(err) {
			t.Errorf("%s of %s at %d: %v", h.name, file, at, err)
		}
		return "told by etcd"
	}
	m.Stop()
	return "runs"
}

// TestSalvage_damaged: a database that is cut off is told, and does not end the process.
func TestSalvage_damaged(t *testing.T) {
	t.Parallel()
	c := filled(t)
	path := filepath.Join(c.Dir, databaseFile)
	hurts[0].do(t, path, used(t, path)/2)
	err := Salvage(t.Context(), c.Dir, filepath.Join(t.TempDir(), "snapshot"), c)
	if damage := (*Damage)(nil); !errors.As(err, &damage) || damage.File != databaseFile {
		t.Errorf("got %v", err)
	}
}
