package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// refused runs a command that has to be refused with exit code 3 and this reason, and to change nothing. What the engine changes of its own
// accord in just that moment, such as a daemon that it starts again, it does not change twice.
func (b *bed) refused(command, reason string) {
	b.Helper()
	refuse := func() (before, after []string) {
		before = b.declared()
		if out := b.holdfast(3, strings.Fields(command)...); !strings.Contains(out, reason) {
			b.Errorf("holdfast %s does not say %q:\n%s", command, reason, out)
		}
		return before, b.declared()
	}
	before, after := refuse()
	if !slices.Equal(before, after) {
		before, after = refuse()
	}
	compare(b, "what is declared after 'holdfast "+command+"' was refused", after, before)
}

// declared are the hosts and what is declared, with their generations and labels, what is wanted of each daemon, and the actions that are
// under way.
func (b *bed) declared() (all []string) {
	b.Helper()
	for _, kind := range []string{"hosts", "storageclusters", "storagenodes"} {
		for _, o := range list[metav1.PartialObjectMetadata](b, kind) {
			all = append(all, fmt.Sprintf("%s %s %s: %d %v %v %v", kind, o.Name, o.UID, o.Generation, o.Labels, o.Annotations, o.DeletionTimestamp))
		}
	}
	for _, d := range b.daemons() {
		all = append(all, fmt.Sprintf("daemon %s %s on %s: %s %v", d.Name, d.UID, d.Spec.Host, d.Spec.State, d.DeletionTimestamp))
	}
	for _, a := range list[api.Action](b, "actions", "-n", "holdfast-system") {
		if !a.Status.State.Final() {
			all = append(all, "action "+a.Name)
		}
	}
	return all
}

// hostTakenOut drains the fifth host, which has the place of the fourth one, and then takes it out, while the client writes. Of those
// that are left none can go.
func (b *bed) hostTakenOut(c *client) {
	h := b.Lab.Host(5)
	had := b.daemonsOn(h.Name)
	b.Logf("on host %s are %q", h.Name, had)
	if !slices.ContainsFunc(had, func(name string) bool { return strings.HasPrefix(name, "osd.") }) {
		b.Fatalf("there is no OSD on host %s", h.Name)
	}
	const declared = "the StorageNode default/ceph-h4 is on host h5; delete with --delete-nodes"
	b.refused("host remove h5", declared)
	written := c.written()
	b.wiped([]string{"host", "drain", h.Name})
	before := b.inStep(h.Name, "move-daemons")
	b.killLeader()
	b.await("the host to be drained", func() error { return b.lastAction(h.Name, api.ActionDone) })
	b.carriedOn(before)
	if err := c.writes(written)(); err != nil {
		b.Errorf("the client did not write while the host was drained: %v", err)
	}
	b.nothingOn(h, had)
	if mode := b.hostObject(h.Name).ModeOf(); mode != api.HostDrain {
		b.Errorf("the host's mode is %s after it was drained", mode)
	}
	b.refused("host remove h5", declared)
	b.holdfast(0, "host", "remove", h.Name, "--delete-nodes", "--wait", "--timeout", "3m")
	b.nothingOn(h, had)
	b.holdfast(3, "get", "host", h.Name)
	b.holdfast(3, "get", "storagenode", "ceph-h4")
	b.refused("host remove h3 --delete-nodes --wait", "cannot drain: no other host may run mon.c (spec.ceph.mon.count is 3")
}

// wiped runs a command that wipes disks in the end. It is refused, makes no action, and names its plan, which is carried out then.
func (b *bed) wiped(command []string, args ...string) {
	b.Helper()
	before := b.declared()
	plan := home.PlanIn(b, b.holdfast(3, command...))
	compare(b, "what is declared after a plan was made", b.declared(), before)
	b.holdfast(0, append([]string{"apply", "--plan", plan}, args...)...)
}

// daemonsOn are the daemons on a host, as Ceph calls them.
func (b *bed) daemonsOn(host string) (names []string) {
	b.Helper()
	for _, d := range b.daemons() {
		if d.Spec.Host == host {
			names = append(names, strings.TrimPrefix(d.Spec.Type, "ceph-")+"."+d.Spec.ID)
		}
	}
	return names
}

// nothingOn fails the test if Ceph knows anything of a host or of the daemons that it had, or if something is wanted or runs there.
func (b *bed) nothingOn(h *hosts.Host, had []string) {
	b.Helper()
	if left := append(b.daemonsOn(h.Name), b.runsOn(b.number(h.Name))...); len(left) > 0 {
		b.Errorf("on host %s there are %q", h.Name, left)
	}
	for _, item := range b.crush() {
		if item == h.Name || slices.Contains(had, item) {
			b.Errorf("%s is in Ceph's CRUSH map", item)
		}
	}
	for _, key := range b.keys() {
		if slices.Contains(had, key) {
			b.Errorf("%s has a key in Ceph's auth database", key)
		}
	}
	if dump := b.ceph("mon", "dump"); !strings.Contains(dump, b.Lab.Host(1).IP) || strings.Contains(dump, h.IP) {
		b.Errorf("the mons are not those of the other hosts:\n%s", dump)
	}
	b.unknownToCeph(h.Name)
}

// crush are the names of what is in Ceph's CRUSH map.
func (b *bed) crush() (names []string) {
	b.Helper()
	var tree struct {
		Nodes, Stray []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(b.ceph("osd", "tree", "-f", "json")), &tree); err != nil || len(tree.Nodes) == 0 {
		b.Fatalf("reading ceph osd tree: %v", err)
	}
	for _, n := range append(tree.Nodes, tree.Stray...) {
		names = append(names, n.Name)
	}
	return names
}

// unknownToCeph fails the test if Ceph lists a mon or an OSD on a host. A mgr that has ended is listed until its last beacon is 30 s old.
func (b *bed) unknownToCeph(host string) {
	b.Helper()
	var known map[string]map[string][]any
	if err := json.Unmarshal([]byte(b.ceph("node", "ls", "-f", "json")), &known); err != nil || len(known["osd"]) == 0 || len(known["mon"]) == 0 {
		b.Fatalf("reading ceph node ls: %v: %v", err, known)
	}
	for _, kind := range []string{"mon", "osd"} {
		if ids := known[kind][host]; len(ids) > 0 {
			b.Errorf("Ceph knows %s %v on host %s", kind, ids, host)
		}
	}
}
