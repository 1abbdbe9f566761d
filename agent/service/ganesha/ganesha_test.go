package ganesha

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

func TestParseVersion(t *testing.T) {
	if v, err := parseVersion("NFS-Ganesha Release = V4.3\nganesha compiled on Apr 28 2023\n"); err != nil || v != "4.3" {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := parseVersion("something else"); err == nil {
		t.Error("no error")
	}
}

func local(t *testing.T) *service.Local {
	t.Helper()
	l := &service.Local{Daemon: &api.Daemon{}, Data: t.TempDir(), Run: t.TempDir(), Parameters: map[string]string{
		ganesha.ParamAddress: "192.0.2.1", ganesha.ParamFSAL: "none",
	}}
	l.Daemon.Generation = 3
	write(t, filepath.Join(l.Data, ganesha.FileConf), "new")
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReload_killed: one that is killed before the server was told does not say that it reads the new configuration.
func TestReload_killed(t *testing.T) {
	l := local(t)
	write(t, filepath.Join(l.Run, "ganesha.pid"), strconv.Itoa(os.Getpid()))
	end := atomicfile.Watch("/proc", func(func() error) error { return errors.New("killed") })
	defer end()
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err == nil {
		t.Error("it was told")
	}
	if current, err := isCurrent(l); current || err != nil {
		t.Errorf("what nobody was told of is read: %v", err)
	}
}

// A report tells whether the process has read what is wanted.
func TestReport_isCurrent(t *testing.T) {
	l := local(t)
	for _, loaded := range []string{"", "old", "new"} {
		want := loaded == "new"
		if loaded != "" {
			write(t, filepath.Join(l.Run, ganesha.FileLoaded), loaded)
		}
		text, err := Ganesha{}.Report(t.Context(), l)
		var r ganesha.Report
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Current != want || r.Generation != 3 {
			t.Errorf("loaded %q: %s, %v", loaded, text, err)
		}
	}
}

func TestRefused(t *testing.T) {
	l := local(t)
	if err := (Ganesha{}).ConfigureLocalService(t.Context(), l); err == nil || !strings.Contains(err.Error(), "apt-get install nfs-ganesha-none") {
		t.Error(err)
	}
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: "x"}); err == nil || !strings.Contains(err.Error(), "upgrade Holdfast") {
		t.Error(err)
	}
	write(t, filepath.Join(l.Run, "ganesha.pid"), "1\n")
	if _, err := (Ganesha{}).Perform(t.Context(), l, service.Command{Verb: ganesha.VerbReload}); err == nil || !strings.Contains(err.Error(), "is no process") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(l.Run, ganesha.FileLoaded)); err == nil {
		t.Error("what nobody has read counts as read")
	}
}
