package control_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// wantNoOverthrow: no way of a restore overthrows the others, and nothing is changed by the refusal.
func wantNoOverthrow(t *testing.T, c control.Config, restores ...control.RestoreConfig) {
	t.Helper()
	stored, before := storedIn(t, c.DataDir), partsOf(t, c.DataDir)
	for _, r := range restores {
		r.Config = c
		_, err := control.Restore(timeout(t), r)
		wantError(t, err, "other servers of the control plane have a quorum (reported by 127.0.0.1:")
		if !errors.Is(err, control.ErrRefused) {
			t.Errorf("it is not a refusal: %v", err)
		}
	}
	if !maps.Equal(stored, storedIn(t, c.DataDir)) {
		t.Errorf("server.json was %v, and is %v", stored, storedIn(t, c.DataDir))
	}
	for part, files := range partsOf(t, c.DataDir) {
		if !maps.Equal(files, before[part]) {
			t.Errorf("%s was changed", part)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(c.DataDir, "*restore*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRestore_overthrows: where one of three servers is stopped, the others have a quorum, and a restore is refused, whatever it is from; the server
// takes its place again. Who insists has it his way. Where the one that is left has no quorum, it is no obstacle.
func TestRestore_overthrows(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "w", 3)
	ns := newNamespace(t, newClient(t, c.servers[0].Config()))
	file := fetch(t, c.servers[0])
	putSecret(t, newClient(t, c.servers[0].Config()), ns, "later")
	for i := range c.servers {
		knowsServers(t, c.configs[i], 3)
	}
	c.stops[2]()
	fromFile, fromData := control.RestoreConfig{File: file}, control.RestoreConfig{}
	replacing := control.RestoreConfig{File: file, Replace: true}
	wantNoOverthrow(t, c.configs[2], fromFile, fromData, replacing)
	machine := c.configs[2] // a new one, with the address of the server that is stopped
	machine.DataDir = t.TempDir()
	wantNoOverthrow(t, machine, fromFile)
	c.start(2)
	wantSecret(t, newClient(t, c.servers[2].Config()), ns, "later", true)

	c.stops[2]()
	insisting := control.RestoreConfig{Config: c.configs[2], File: file, Overthrow: true}
	if _, err := control.Restore(timeout(t), insisting); err != nil {
		t.Fatal(err)
	}
	c.start(2)
	seated(t, 3, c.servers...)
	for _, s := range c.servers {
		wantSecret(t, newClient(t, s.Config()), ns, "later", false)
	}

	c.toldRestored(2, 1, "the control plane was restored on w2 from the backup of ")

	c.stops[1]()
	c.stops[2]()
	alone := c.configs[2]
	alone.AskRemoved = time.Second
	log := &safeBuffer{}
	alone.Log = slog.New(slog.NewTextHandler(log, nil))
	if _, err := restoreInto(t, alone, ""); err != nil {
		t.Errorf("the quorum is lost, and it is not restored: %v", err)
	}
	if !strings.Contains(log.String(), "other servers run, and have no quorum now") {
		t.Errorf("the server that is left was not asked again: %s", log.String())
	}
}

// toldRestored waits until the control plane's events tell of so many restores, of the last one in these words.
func (c *crew) toldRestored(over, count int, words string) {
	c.t.Helper()
	eventually(c.t, func() error {
		var told []string
		for _, e := range events(c.t, c.servers[over]) {
			if e.Code == quorum.CodeRestored {
				told = append(told, e.Message)
			}
		}
		if len(told) != count || !strings.HasPrefix(told[count-1], words) {
			return fmt.Errorf("told of restores: %q", told)
		}
		return nil
	})
}
