package e2e

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestHostAddress gives a host with a mon and an OSD another address, for good, while a client writes. The OSD takes
// the new address when a user restarts it, and another mon, with the new address, replaces the mon on the same host.
func TestHostAddress(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	b.StartAgent(t, 2, b.Token(t, "agent"))
	b.StartAgent(t, 3, b.Token(t, "agent"))
	b.AwaitHosts(t, 3)
	spec := home.SpecFor(lab, 3, 3, 1)
	spec.Interval, spec.ReplaceAfter = "2s", "30s"
	b.mustApply(spec.YAML())
	client := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })

	h := lab.Host(3)
	old, moved := h.IP, strings.TrimSuffix(h.IP, ".13")+".43"
	h.Run(t, t.Context(), "ip", "address", "del", old+"/24", "dev", "eth0")
	h.Run(t, t.Context(), "ip", "address", "add", moved+"/24", "dev", "eth0")
	b.saidOutside("host/h3", "another mon replaces mon.c after 30s")
	if out := b.run("why", "host/h3"); !strings.Contains(out, moved) ||
		!strings.Contains(out, "holdfast daemon restart osd.") {
		t.Errorf("why host/h3: %s", out)
	}
	osd := "osd." + b.daemon(b.osdOn(h.Disk(0).ID())).Spec.ID
	b.run("daemon", "restart", osd, "--force", "--wait")
	b.run("daemon", "restart", b.daemonOf(3, "ceph-mgr").Name, "--force", "--wait")
	b.await("another mon in the place of mon.c", func() error { return b.mons("a", "b", "d") })
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	if d := b.daemon("ceph-mon-d"); d.Spec.Host != "h3" || d.Spec.Parameters["address"] != moved {
		t.Errorf("mon.d is on %s at %s", d.Spec.Host, d.Spec.Parameters["address"])
	}
	b.await("nothing to be changed outside", func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
		if err == nil && len(s.Status.ChangedOutside) > 0 {
			err = fmt.Errorf("%v", s.Status.ChangedOutside)
		}
		return err
	})
	if dump := b.ceph("osd", "dump"); strings.Contains(dump, old+":") || !strings.Contains(dump, moved+":") {
		t.Errorf("the map of the OSDs:\n%s", dump)
	}
	b.await("nothing to listen on the old address", func() error {
		if out := h.Run(t, t.Context(), "ss", "-Hltn", "src", old); out != "" {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	client.goesOn(t)
	client.end(t)
	b.noOrphans()
}
