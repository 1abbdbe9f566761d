package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestCephByHand changes Ceph itself: the place of an OSD, its key, the map of the mons and the key of
// client.admin. Each change is put back or waits for a user, and an event says so.
func TestCephByHand(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.AwaitHosts(t, 3)
	spec := home.SpecFor(lab, 3, 2, 1)
	spec.Interval = "2s"
	b.mustApply(spec.YAML())
	b.await("Ceph to be well", func() error { return b.health(3, 3) })

	b.ceph("osd", "crush", "rm", "osd.1")
	b.saidOutside("osd.1", "CRUSH does not have it")
	b.await("osd.1 to have its place", func() error {
		if out := b.ceph("osd", "find", "1"); !strings.Contains(out, `"host": "h2"`) {
			return fmt.Errorf("%s", out)
		}
		return b.health(3, 3)
	})
	key := b.ceph("auth", "get-key", "osd.1")
	b.ceph("auth", "rm", "osd.1")
	b.endOf("ceph-osd-1")
	b.saidOutside("osd.1", "its key was removed")
	b.await("osd.1 to be back with its key", func() error { return b.health(3, 3) })
	if now := b.ceph("auth", "get-key", "osd.1"); now != key {
		t.Error("osd.1 has another key")
	}
	b.run("ceph", "shell", "--", "bash", "-c", // noup goes with the OSD; without it osd.2 can be up again too soon
		"ceph osd set-group noup osd.2 && ceph osd down 2 && ceph osd purge 2 --force --yes-i-really-mean-it")
	b.saidOutside("osd.2", "registered again")
	b.await("osd.2 to be back", func() error { return b.health(3, 3) })
	b.monsByHand(lab)
	b.adminKeyByHand()
	b.noOrphans()
}

// saidOutside waits for the event of a change that was made outside.
func (b *bed) saidOutside(object, message string) {
	b.Helper()
	b.await("the event of "+object, func() error {
		if !slices.ContainsFunc(b.events(), func(e api.ClusterEvent) bool {
			return e.Code == "CHANGED_OUTSIDE" && e.Object == object && strings.Contains(e.Message, message)
		}) {
			return fmt.Errorf("none says %q", message)
		}
		return nil
	})
}

// endOf ends the process of a daemon, which its agent starts again.
func (b *bed) endOf(name string) {
	b.Helper()
	d := b.daemon(name)
	b.hostNamed(d.Spec.Host).Run(b, b.Context(), "kill", "-9", strconv.Itoa(int(d.Status.PID)))
}

// monsByHand removes a mon and adds one that there is not.
func (b *bed) monsByHand(lab *hosts.Lab) {
	b.Helper()
	b.ceph("mon", "rm", "b")
	b.saidOutside("mon.b", "removed from Ceph's map")
	b.await("another mon in its place", func() error { return b.mons("a", "c", "d") })
	b.ceph("mon", "add", "x", lab.Host(2).IP+":7789")
	b.saidOutside("mon.x", "Holdfast does not run it")
	if out := b.run("why", "mon.x"); !strings.Contains(out, "ceph mon remove x") {
		b.Errorf("why mon.x: %s", out)
	}
	b.ceph("mon", "rm", "x")
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}

// adminKeyByHand gives client.admin another key, and has another server lead, which has to connect anew.
func (b *bed) adminKeyByHand() {
	b.Helper()
	b.run("ceph", "shell", "--", "bash", "-c", `k=$(mktemp) && ceph-authtool -C "$k" -n client.admin --gen-key `+
		`--cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' --cap mds 'allow *' && ceph auth import -i "$k"`)
	leader := b.leader()
	b.Server(leader).Kill(b)
	b.StartServer(b, leader)
	b.await("the key that Holdfast keeps to be taken", func() error { return b.health(3, 3) })
	b.saidOutside("client.admin", "refuses the key of client.admin")
}
