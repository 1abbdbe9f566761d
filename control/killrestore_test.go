package control_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// restoreStory is a restore that is killed before each of its effects, over what lies in a directory.
type restoreStory struct {
	name string
	// before is the data directory; file is the backup, none for the directory's own database.
	before, file string
	config       control.Config
	// keys are the files of the backup that go to pki/.
	keys map[string]string
	// revision is what the restored database has at least.
	revision int64
	// deaths is where it is written down who died where, and amid are files that are there while the new data is being made.
	deaths string
	amid   string
}

// contents are the files in a directory, by their names; nil when it is not there.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func partsOf(t *testing.T, dir string) map[string]map[string]string {
	t.Helper()
	return map[string]map[string]string{"pki": contents(t, filepath.Join(dir, "pki")), "etcd": contents(t, filepath.Join(dir, "etcd"))}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	// The socket of a member that was killed as it began is no file to copy.
	if err := os.Remove(filepath.Join(from, "etcd", "peers.sock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s restoreStory) in(dir string) control.Config {
	c := s.config
	c.DataDir, c.Init, c.JoinToken = dir, false, ""
	return c
}

// sweep kills a restore before each of its effects. The last one before it is done is run again, and killed where none was before.
func (s restoreStory) sweep(t *testing.T) {
	last, at := "", 1
	for dir := copyDir(t, s.before); s.victim(dir, at).run(t); dir = copyDir(t, s.before) {
		if storedIn(t, dir)["restoring"] != nil {
			last = copyDir(t, dir)
		}
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			s.goOn(t, dir)
		})
		at++
	}
	if at <= 8 {
		t.Errorf("it was killed %d times alone", at-1)
	}
	for s.victim(last, 0).run(t) {
		dir := copyDir(t, last)
		t.Run("again", func(t *testing.T) {
			t.Parallel()
			s.goOn(t, dir)
		})
	}
	s.wantNew(t, last)
}

func (s restoreStory) victim(dir string, at int) victim {
	return victim{Does: "restore", Config: s.in(dir), File: s.file, Deaths: filepath.Join(s.deaths, s.name), At: at}
}

// killAmid kills a restore while it makes the new data.
func (s restoreStory) killAmid(t *testing.T) {
	dir := copyDir(t, s.before)
	v := s.victim(dir, -1)
	v.Amid = filepath.Join(dir, "restore.tmp", s.amid)
	if !v.run(t) {
		t.Fatal("it was done before it was killed")
	}
	s.goOn(t, dir)
}

// goOn: what a kill leaves is the old state whole, the new one whole, or a directory that no server starts on. Nothing of what was is lost. The
// restore is run again, or one that is refused takes it back.
func (s restoreStory) goOn(t *testing.T, dir string) {
	t.Helper()
	stored := storedIn(t, dir)
	s.wantKept(t, dir)
	switch restored := stored["unpresented"] == true; {
	case stored["restoring"] != nil:
		_, err := control.Start(timeout(t), s.in(dir))
		wantError(t, err, "was cut off: run 'holdfast restore' again")
	case restored:
		s.wantNew(t, dir)
	default:
		s.wantOld(t, dir)
	}
	if stored["unpresented"] != true {
		s.refused(t, dir)
	}
	if _, err := control.Restore(timeout(t), control.RestoreConfig{Config: s.in(dir), File: s.file}); err != nil {
		t.Fatal(err)
	}
	s.wantNew(t, dir)
	s.wantKept(t, dir)
}

// refused: where the restore is not wanted any more, all is as it was, to the last byte.
func (s restoreStory) refused(t *testing.T, dir string) {
	t.Helper()
	back := copyDir(t, dir)
	_, err := control.Restore(timeout(t), control.RestoreConfig{Config: s.in(back), File: filepath.Join(back, "none")})
	if !errors.Is(err, control.ErrRefused) {
		t.Errorf("a restore of nothing: %v", err)
	}
	s.wantOld(t, back)
	for name := range entries(t, back) {
		if !slices.Contains(append(slices.Collect(maps.Keys(entries(t, s.before))), "lock", "VERSION"), name) {
			t.Errorf("%s is left behind", name)
		}
	}
}

func entries(t *testing.T, dir string) map[string]bool {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}

// storedIn is what the data directory says of the server; empty where it says nothing.
func storedIn(t *testing.T, dir string) map[string]any {
	t.Helper()
	stored := map[string]any{}
	text, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if errors.Is(err, os.ErrNotExist) {
		return stored
	}
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// wantOld: the directory is what it was.
func (s restoreStory) wantOld(t *testing.T, dir string) {
	t.Helper()
	if diff := cmp.Diff(partsOf(t, s.before), partsOf(t, dir)); diff != "" {
		t.Errorf("the data is not what it was (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(storedIn(t, s.before), storedIn(t, dir)); diff != "" {
		t.Errorf("the server is not what it was (-before +after):\n%s", diff)
	}
}

// wantKept: what was there lies in its place, or was moved aside.
func (s restoreStory) wantKept(t *testing.T, dir string) {
	t.Helper()
	places, err := filepath.Glob(filepath.Join(dir, "before-restore-*"))
	if err != nil {
		t.Fatal(err)
	}
	for part, files := range partsOf(t, s.before) {
		if files != nil && !slices.ContainsFunc(append(places, dir), func(p string) bool { return maps.Equal(files, contents(t, filepath.Join(p, part))) }) {
			t.Errorf("%s is lost", part)
		}
	}
}

// wantNew: the server is the first one of its control plane, with the keys and the database of the backup.
func (s restoreStory) wantNew(t *testing.T, dir string) {
	t.Helper()
	stored := storedIn(t, dir)
	if stored["restoring"] != nil || stored["new"] != nil || stored["seat"] != nil || stored["existing"] != nil || stored["unpresented"] != true {
		t.Errorf("the server says of itself: %v", stored)
	}
	for name, sum := range s.keys {
		if got := contents(t, filepath.Join(dir, "pki"))[name]; got != sum {
			t.Errorf("pki%s is not that of the backup", name)
		}
	}
	if s.file != "" && len(contents(t, filepath.Join(dir, "pki"))) != len(s.keys) {
		t.Errorf("there are other keys than those of the backup: %v", contents(t, filepath.Join(dir, "pki")))
	}
	revision, err := etcd.Revision(filepath.Join(dir, "etcd", "member", "snap", "db"))
	if err != nil || revision < 1_000_000_000+s.revision {
		t.Errorf("the database has the revision %d, %v", revision, err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "before-restore-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kept {
		if len(entries(t, k)) == 0 {
			t.Errorf("%s is empty", k)
		}
	}
}

// restoreStories are what may be restored over what. A server that was killed amid a restore is one of them.
func restoreStories(t *testing.T, deaths string) []restoreStory {
	t.Helper()
	config := newConfig(t, t.TempDir(), "k1")
	config.Init = true
	s, stop := start(t, config)
	ns := newNamespace(t, newClient(t, s.Config()))
	putSecret(t, newClient(t, s.Config()), ns, "before")
	file := fetch(t, s)
	putSecret(t, newClient(t, s.Config()), ns, "after")
	stop()
	parts := t.TempDir()
	h, err := backup.Verify(file, parts)
	if err != nil {
		t.Fatal(err)
	}
	story := restoreStory{before: config.DataDir, file: file, config: config, keys: contents(t, filepath.Join(parts, "pki")), revision: h.Revision, deaths: deaths}
	data, fresh, standby := story, story, story
	story.name, data.name, fresh.name, standby.name = "from a file", "from its data", "where nothing was", "of a standby"
	data.amid, story.amid = "etcd.db*", "etcd"
	data.file, data.keys = "", contents(t, filepath.Join(config.DataDir, "pki"))
	fresh.before, standby.before = t.TempDir(), copyDir(t, config.DataDir)
	if err := os.RemoveAll(filepath.Join(standby.before, "etcd")); err != nil {
		t.Fatal(err)
	}
	generation(t, standby.in(standby.before), func(stored map[string]any) { stored["seat"] = "standby" })
	return []restoreStory{story, data, fresh, standby}
}
