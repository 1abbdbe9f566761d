package control

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// logUpTo is the log of a member that has so many entries; with 0 it has begun, and was never filled.
func logUpTo(t *testing.T, entries uint64) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	w, err := wal.Create(zap.NewNop(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []raftpb.Entry
	for i := range entries {
		all = append(all, raftpb.Entry{Term: 1, Index: i + 1})
	}
	path := filepath.Join(dir, logFile)
	if err := errors.Join(w.Save(raftpb.HardState{Term: 1, Commit: entries}, all), w.Close(), os.Truncate(path, 8<<10)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// noLog is what cannot be read in the place of a log.
var noLog = []byte("this is no log, and long enough to be taken for one")

var quiet = slog.New(slog.DiscardHandler)

const logFile = "0000000000000000-0000000000000000.wal"

// putLog makes a database of its log.
func putLog(t *testing.T, dir string, log []byte) {
	t.Helper()
	path := filepath.Join(dir, "member", "wal", logFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, log, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// entriesIn counts what the log of a database holds: -1 where there is none, -2 where it cannot be read.
func entriesIn(dir string) int {
	p, err := etcd.ReadPosition(dir)
	switch {
	case err != nil:
		return -2
	case missing(filepath.Join(dir, "member", "wal", logFile)):
		return -1
	}
	return int(p.Index)
}

// keptIn counts the entries of each database that is kept.
func keptIn(t *testing.T, d dataDir) map[string]int {
	t.Helper()
	found := map[string]int{}
	dirs, err := os.ReadDir(d.file(removedDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		found[dir.Name()] = entriesIn(filepath.Join(d.file(removedDir), dir.Name()))
	}
	return found
}

// TestSetAside: of each generation the database with the most data is kept, of the last three generations; and it may be repeated.
func TestSetAside(t *testing.T) {
	d := dataDir(t.TempDir())
	lose := func(generation int64, log []byte) {
		t.Helper()
		if putLog(t, d.etcd(), log); log == nil {
			if err := os.RemoveAll(filepath.Join(d.etcd(), "member", "wal")); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := d.setAside(generation, quiet); err != nil {
				t.Fatal(err)
			}
		}
		if !missing(d.etcd()) {
			t.Fatal("the database is still in its place")
		}
	}
	want := func(when string, want map[string]int) {
		t.Helper()
		if diff := cmp.Diff(want, keptIn(t, d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	lose(0, logUpTo(t, 9))
	lose(900, logUpTo(t, 5))
	want("a restore later", map[string]int{"generation-0": 9, "generation-900": 5})
	lose(900, logUpTo(t, 7))
	want("it had a seat again", map[string]int{"generation-0": 9, "generation-900": 7})
	putLog(t, d.discarded(), logUpTo(t, 1)) // it could not be removed
	lose(900, logUpTo(t, 8))
	want("more again", map[string]int{"generation-0": 9, "generation-900": 8})
	putLog(t, d.discarded(), logUpTo(t, 1))
	lose(900, nil)           // a seat that was given, and its server ended before it began
	lose(900, logUpTo(t, 0)) // a member that began, and was never filled
	lose(900, logUpTo(t, 6)) // one that was filled in part
	want("what has less has nobody's place", map[string]int{"generation-0": 9, "generation-900": 8})
	lose(900, noLog)
	want("what cannot be read lies beside it", map[string]int{"generation-0": 9, "generation-900": 8, "generation-900.unread": -2})
	lose(1000, logUpTo(t, 1))
	want("a third generation", map[string]int{"generation-0": 9, "generation-900": 8, "generation-900.unread": -2, "generation-1000": 1})
	lose(1001, logUpTo(t, 0)) // the first of a generation has nobody's place
	want("a fourth one", map[string]int{"generation-900": 8, "generation-900.unread": -2, "generation-1000": 1, "generation-1001": 0})
	lose(1002, logUpTo(t, 2))
	want("a fifth one", map[string]int{"generation-1000": 1, "generation-1001": 0, "generation-1002": 2})
}

// TestSetAside_unread: what cannot be read replaces nothing, and nothing takes its place; what can be read is compared with what can be read.
func TestSetAside_unread(t *testing.T) {
	const first, second, third = "generation-7", "generation-7.unread", "generation-7.unread-2"
	for _, test := range []struct {
		name string
		lost [][]byte
		want map[string]int
	}{
		{"less after more", [][]byte{noLog, logUpTo(t, 9), logUpTo(t, 0)}, map[string]int{first: -2, second: 9}},
		{"more after less", [][]byte{noLog, logUpTo(t, 0), logUpTo(t, 9)}, map[string]int{first: -2, second: 9}},
		{"two unread", [][]byte{logUpTo(t, 5), noLog, noLog}, map[string]int{first: 5, second: -2, third: -2}},
		{"more after two unread", [][]byte{noLog, noLog, logUpTo(t, 5), logUpTo(t, 9)}, map[string]int{first: -2, second: -2, third: 9}},
		{"as much among unread", [][]byte{noLog, logUpTo(t, 5), noLog, logUpTo(t, 5)}, map[string]int{first: -2, second: 5, third: -2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := dataDir(t.TempDir())
			var said bytes.Buffer
			for _, log := range test.lost {
				putLog(t, d.etcd(), log)
				if err := d.setAside(7, slog.New(slog.NewTextHandler(&said, nil))); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, keptIn(t, d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(said.String(), second) || !strings.Contains(said.String(), "while reading the log") {
				t.Errorf("it is not said where the data is, and why: %s", said.String())
			}
		})
	}
}

// TestSetAside_full: where there is no room for one more that cannot be compared, all stay where they are, until somebody makes some. All are removed with
// their generation, and nothing else.
func TestSetAside_full(t *testing.T) {
	d := dataDir(t.TempDir())
	for range keepUnread + 1 {
		putLog(t, d.etcd(), noLog)
		if err := d.setAside(7, quiet); err != nil {
			t.Fatal(err)
		}
	}
	full := map[string]int{"generation-7": -2, "generation-7.unread": -2, "generation-7.unread-2": -2, "generation-7.unread-3": -2}
	putLog(t, d.etcd(), logUpTo(t, 9))
	err := d.setAside(7, quiet)
	if diff := cmp.Diff(full, keptIn(t, d)); diff != "" || err == nil || !strings.Contains(err.Error(), d.file(removedDir)) || entriesIn(d.etcd()) != 9 {
		t.Fatalf("%v, %d entries; (-want +got):\n%s", err, entriesIn(d.etcd()), diff)
	}
	if err := os.RemoveAll(filepath.Join(d.file(removedDir), "generation-7.unread")); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"generation-8": 1, "generation-9": 1, "generation-10": 1, "generation-7.unread.mine": 3}
	putLog(t, filepath.Join(d.file(removedDir), "generation-7.unread.mine"), logUpTo(t, 3))
	for generation := int64(7); generation <= 10; generation++ {
		if err := d.setAside(generation, quiet); err != nil {
			t.Fatal(err)
		}
		if generation == 7 && entriesIn(filepath.Join(d.file(removedDir), "generation-7.unread")) != 9 {
			t.Errorf("there was room: %v", keptIn(t, d))
		}
		putLog(t, d.etcd(), logUpTo(t, 1))
	}
	if err := d.setAside(10, quiet); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, keptIn(t, d)); diff != "" {
		t.Errorf("its generation is gone (-want +got):\n%s", diff)
	}
}

// TestSetAside_cut cuts off what is done with the data of a lost seat before each effect, and then does it again: the copy with the most data is whole
// all along, and in the end all is where it would be without the cut.
func TestSetAside_cut(t *testing.T) {
	few, some, many := logUpTo(t, 2), logUpTo(t, 5), logUpTo(t, 9)
	for _, test := range []struct {
		log  []byte
		want int
	}{{many, 9}, {few, 5}} {
		cuts := 0
		for ; ; cuts++ {
			d := dataDir(t.TempDir())
			for g := range 5 {
				putLog(t, d.file(fmt.Sprint("etcd.removed/generation-", g)), some)
			}
			putLog(t, d.etcd(), test.log)
			putLog(t, d.discarded(), few) // it could not be removed
			restore := atomicfile.Cut(string(d), cuts)
			err := d.setAside(4, quiet)
			cut := restore()
			if cut != errors.Is(err, atomicfile.ErrCut) {
				t.Fatalf("cut before effect %d: %v, %v", cuts, cut, err)
			}
			if got := []int{entriesIn(d.etcd()), entriesIn(d.file("etcd.removed/generation-4"))}; !slices.Contains(got, test.want) {
				t.Errorf("cut before effect %d: there are %v entries, not the most: %d", cuts, got, test.want)
			}
			if err := errors.Join(d.clearLeft(), d.setAside(4, quiet)); err != nil {
				t.Fatal(err)
			}
			if got := entriesIn(d.file("etcd.removed/generation-4")); got != test.want || !missing(d.etcd()) || !missing(d.discarded()) {
				t.Errorf("cut before effect %d, and done again: there are %d entries", cuts, got)
			}
			if !cut {
				break
			}
		}
		if cuts < 5 {
			t.Errorf("it was cut %d times", cuts)
		}
	}
}
