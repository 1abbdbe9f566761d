package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestStatusFigures holds what 'holdfast status' shows of a real cluster beside 'ceph -s':
// capacity, data, placement groups, what clients do, and a recovery with its rate and its end. What
// changes every second is not in the API.
func TestStatusFigures(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 2)
	spec := home.SpecFor(b.Lab, 3, 1, 2)
	spec.Interval = "1s"
	b.mustApply(spec.YAML() + poolYAML("web"))
	b.await("Ceph to be well", func() error { return b.health(3, 6) })
	b.showsClients()
	b.asCephSays()
	b.showsRecovery()
	b.idleStatus()
}

// statusJSON is what 'holdfast status -o json' prints of a cluster.
type statusJSON struct {
	State   api.StorageState
	Health  string
	Figures *api.StorageFigures
	Ceph    *api.CephStatus
}

func (b *bed) statusJSON() (s statusJSON, err error) {
	out, err := b.Holdfast("status", "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err == nil && s.Figures == nil {
		err = errors.New("there are no figures")
	}
	return s, err
}

// showsClients has a client write, and waits until status shows how much.
func (b *bed) showsClients() {
	b.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Holdfast("ceph", "shell", "--", "rados", "-p", "web", "bench", "15", "write", "-b", "65536", "-t", "4",
			"--no-cleanup")
		ended <- err
	}()
	b.await("status to show what a client writes", func() error {
		s, err := b.statusJSON()
		if err != nil {
			return err
		}
		if io := s.Figures.ClientIO; io == nil || io.WritesPerSecond == 0 || io.WriteBytesPerSecond < 65536 {
			return fmt.Errorf("clients: %+v", io)
		}
		return nil
	})
	if out := b.run("status"); !strings.Contains(out, "  clients: read ") {
		b.Errorf("status while a client writes:\n%s", out)
	}
	if err := <-ended; err != nil {
		b.Fatalf("rados bench: %v", err)
	}
}

// pgMap is the part pgmap of 'ceph -s'.
type pgMap struct {
	Total     int64 `json:"bytes_total"`
	Used      int64 `json:"bytes_used"`
	Available int64 `json:"bytes_avail"`
	Data      int64 `json:"data_bytes"`
	Objects   int64 `json:"num_objects"`
	PGs       int32 `json:"num_pgs"`
}

// asCephSays compares the figures with Ceph's.
func (b *bed) asCephSays() {
	b.Helper()
	b.await("the figures to be those of ceph -s", func() error {
		var ceph struct{ PGMap pgMap }
		if err := json.Unmarshal([]byte(b.ceph("-s", "-f", "json")), &ceph); err != nil {
			return err
		}
		s, err := b.statusJSON()
		if err != nil {
			return err
		}
		f, want, pgs := s.Figures, ceph.PGMap, int32(0)
		for _, g := range f.PlacementGroups {
			pgs += g.Count
		}
		near := func(a, b int64) bool { return max(a-b, b-a) <= want.Total/50 }
		if f.RawBytes != want.Total || !near(f.UsedBytes, want.Used) || !near(f.AvailableBytes, want.Available) ||
			!near(f.DataBytes, want.Data) || max(f.Objects-want.Objects, want.Objects-f.Objects) > 5 || pgs != want.PGs ||
			f.Objects < 100 {
			return fmt.Errorf("status says %+v, and ceph -s %+v", f, want)
		}
		return nil
	})
	b.Logf("status of a cluster that is well:\n%s", b.run("status"))
	b.Logf("as YAML:\n%s", b.run("status", "-o", "yaml"))
}

// showsRecovery takes an OSD out: its data moves to another one of its host.
func (b *bed) showsRecovery() {
	b.Helper()
	for _, option := range []string{"osd_recovery_sleep", "osd_recovery_sleep_hdd", "osd_recovery_sleep_ssd"} {
		b.ceph("config", "set", "osd", option, "0.3")
	}
	b.ceph("osd", "out", "2")
	b.await("status to show the recovery and its end", func() error {
		s, err := b.statusJSON()
		if err != nil {
			return err
		}
		r := s.Figures.Recovery
		if r == nil || r.SecondsLeft == 0 || r.ObjectsPerSecond == 0 || r.TotalCopies < r.DegradedCopies+r.MisplacedCopies {
			return fmt.Errorf("recovery: %+v", r)
		}
		return nil
	})
	b.Logf("status while data moves:\n%s\nceph -s:\n%s", b.run("status", "--color=always"), b.ceph("-s"))
	b.await("the StorageStatus to have the recovery", func() error { return b.published(true) })
	for _, option := range []string{"osd_recovery_sleep", "osd_recovery_sleep_hdd", "osd_recovery_sleep_ssd"} {
		b.ceph("config", "rm", "osd", option)
	}
	b.ceph("osd", "in", "2")
	b.await("Ceph to be well", func() error { return b.health(3, 6) })
	b.await("the StorageStatus to have no recovery", func() error { return b.published(false) })
}

// published says whether the StorageStatus has a recovery. It never has what clients do.
func (b *bed) published(recovery bool) error {
	s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
	if err != nil {
		return err
	}
	f := s.Status.Figures
	if f == nil || (f.Recovery != nil) != recovery || f.ClientIO != nil {
		return fmt.Errorf("the StorageStatus has %+v", f)
	}
	return nil
}

// idleStatus orchestrates a cluster in which nothing happens: its StorageStatus is not written.
func (b *bed) idleStatus() {
	b.Helper()
	b.await("five orchestrations to write nothing", func() error {
		before, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
		if err != nil {
			return err
		}
		for range 5 {
			b.run("orchestrate", "ceph", "--wait")
			b.run("status")
		}
		after, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
		if err == nil && after.ResourceVersion != before.ResourceVersion {
			err = fmt.Errorf("written: %+v, and now %+v", before.Status.Figures, after.Status.Figures)
		}
		return err
	})
}
