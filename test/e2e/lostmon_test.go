package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestLostMon takes the power from a host with a mon while a client writes: another host gets a mon in its place, and the
// machine that comes back, with its old mon, finds its place taken.
func TestLostMon(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.StartAgent(t, 4, b.Token(t, "agent"))
	b.AwaitHosts(t, 4)
	spec := home.SpecFor(lab, 3, 2, 1)
	spec.Interval, spec.ReplaceAfter = "2s", "30s"
	b.mustApply(spec.YAML())
	client := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 4) })

	lost := b.Lab.Host(3)
	lost.PowerOff(b)
	client.goesOn(t)
	b.await("a mon in the place of mon.c", func() error { return b.mons("a", "b", "d") })
	client.goesOn(t)

	lost.PowerOn(b)
	b.StartServer(b, 3)
	b.await("Ceph to be well", func() error { return b.health(3, 4) })
	if err := b.mons("a", "b", "d"); err != nil {
		t.Error(err)
	}
	b.await("the host that is back to be tidy", func() error {
		for _, d := range b.daemons() {
			if d.Name == "ceph-mon-c" {
				return fmt.Errorf("there is still %s: %s", d.Name, d.Status.State)
			}
		}
		return nil
	})
	b.destroyMons("b")
	b.await("mon.b to know that it has to", b.says("ceph-mon-b", "the store of mon.b is lost"))
	b.await("mon.b to get everything from the others", func() error { return b.mons("a", "b", "d") })
	client.goesOn(t)
	client.end(t)
	b.noOrphans()
}

// destroyMons takes the stores from mons, and ends their processes, which would go on with the files that they have open.
func (b *bed) destroyMons(ids ...string) {
	b.Helper()
	var killed []api.Daemon
	for _, id := range ids {
		d, err := read[api.Daemon](b, 1, "daemons", "ceph-mon-"+id)
		if err != nil {
			b.Fatal(err)
		}
		killed = append(killed, d)
	}
	var wg sync.WaitGroup // at one time: the others would be a quorum for a moment
	for _, d := range killed {
		h := b.Lab.Host(b.number(d.Spec.Host))
		wg.Go(func() {
			store := h.Path(monStore(d.Spec.ID))
			kill := h.Command(context.Background(), "kill", "-9", strconv.Itoa(int(d.Status.PID)))
			if err := errors.Join(os.Rename(store, store+".destroyed"), os.RemoveAll(store+".destroyed"), kill.Run()); err != nil {
				b.Errorf("destroying mon.%s: %v", d.Spec.ID, err)
			}
		})
	}
	wg.Wait()
}

// says returns a check of what stands in the message of a daemon that cannot be made ready.
func (b *bed) says(daemon, what string) func() error {
	return func() error {
		d, err := read[api.Daemon](b, 1, "daemons", daemon)
		if err == nil && (d.Status.State != api.DaemonFailed || !strings.Contains(d.Status.Message, what)) {
			err = fmt.Errorf("%s: %s", d.Status.State, d.Status.Message)
		}
		return err
	}
}

// monStore is where the store of a mon lies on its host.
func monStore(id string) string {
	return dataDir + "/agent/daemons/default.ceph-mon-" + id + "/data/store"
}

// mons checks who is in Ceph's map of the mons, and in the quorum, and that their processes run: for some seconds after the end of
// a mon the others still count it in.
func (b *bed) mons(want ...string) error {
	out, err := b.Holdfast("ceph", "shell", "--", "ceph", "quorum_status", "-f", "json")
	if err != nil {
		return err
	}
	var s struct {
		Quorum []string `json:"quorum_names"`
		Monmap struct {
			Mons []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return fmt.Errorf("reading ceph quorum_status: %w", err)
	}
	var names []string
	for _, m := range s.Monmap.Mons {
		names = append(names, m.Name)
	}
	slices.Sort(s.Quorum)
	slices.Sort(names)
	if !slices.Equal(names, want) || !slices.Equal(s.Quorum, want) {
		return fmt.Errorf("mons %q, in quorum %q, want %q", names, s.Quorum, want)
	}
	running := b.cephProcesses()
	for _, id := range want {
		if !slices.ContainsFunc(running, func(p string) bool { return strings.HasSuffix(p, " ceph-mon "+id) }) {
			return fmt.Errorf("no process of mon.%s runs", id)
		}
	}
	return nil
}
