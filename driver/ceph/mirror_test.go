package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/test/situations"
)

func mirrorOf(name string, change ...func(*api.RBDMirror)) *api.RBDMirror {
	m := &api.RBDMirror{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1, UID: types.UID("uid-" + name)}}
	m.Spec = api.RBDMirrorSpec{Cluster: "c", Pools: []api.RBDMirrorPool{{Name: "vms"}}}
	for _, f := range change {
		f(m)
	}
	return m
}

func vms() *api.Pool {
	p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "vms", Generation: 1}}
	p.Spec = api.PoolSpec{Cluster: "c", Application: "rbd", DeletionPolicy: api.DeletionRetain}
	return p
}

// mirrorReport is what the agent of an rbd-mirror says.
func (w *world) mirrorReport(d *api.Daemon) string {
	r := rbdmirror.Report{PID: d.Status.PID, Up: true, Pools: map[string]rbdmirror.Pool{}}
	for _, name := range strings.Fields(d.Spec.Parameters[rbdmirror.ParamPools]) {
		pool, ok := w.mirrored[name]
		if !ok {
			pool.Mode = "disabled"
		}
		if !w.unasked {
			r.Pools[name] = pool
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mirrorPool does what the agents of rbd-mirror do.
func (w *world) mirrorPool(cmd engine.Command) {
	if w.mirrored == nil {
		w.mirrored = map[string]rbdmirror.Pool{}
	}
	pool := w.mirrored[cmd.Params[rbdmirror.ParamPool]]
	switch cmd.Verb {
	case rbdmirror.VerbEnable:
		pool.Mode, pool.Health = cmd.Params[rbdmirror.ParamMode], "OK"
	case rbdmirror.VerbImport:
		pool.Peers = []rbdmirror.Peer{{UUID: "u", Site: "b", Direction: "rx-only"}}
	}
	w.mirrored[cmd.Params[rbdmirror.ParamPool]] = pool
}

func (w *world) token(name, fsid string) {
	text := rbdmirror.Token{FSID: fsid, ClientID: "rbd-mirror-peer", Key: "k", MonHost: "[v2:10.9.9.9:3300]"}.Encode()
	if fsid == "" {
		text = "nonsense"
	}
	w.secrets[name] = secret{data: map[string][]byte{api.SecretEntryToken: []byte(text)}}
}

func (w *world) mirror(name string) *api.RBDMirror {
	i := slices.IndexFunc(w.objects, func(o api.Resource) bool { return o.ResourceKind() == "RBDMirror" && o.GetName() == name })
	return w.objects[i].(*api.RBDMirror)
}

func (w *world) mirrorsOn() string {
	var all []string
	for _, d := range w.daemons {
		if d.Spec.Type == rbdmirror.Type {
			all = append(all, fmt.Sprintf("%s@%s %s", d.Spec.ID, d.Spec.Host, d.Spec.State))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// A pool is mirrored by a daemon with a key of its own, fetches from the cluster of the token, and goes on when its host leaves; with the RBDMirror go its
// daemons and keys.
func TestMirror(t *testing.T) {
	f := poolsOn(3, vms())
	f.token("site-b", "1111")
	f.objects = append(f.objects, mirrorOf("dr", func(m *api.RBDMirror) { m.Spec.Pools[0].PeerSecret = "site-b" }))
	p := f.settle(t)
	if s := f.mirror("dr").Status; s.State != api.ResourceOnline || s.Daemons != "1/1" || s.Summary != "vms OK" || !slices.Equal(s.Pools[0].Peers, []string{"b rx-only"}) || !p.Done {
		t.Fatalf("%+v, %v: %v", f.mirror("dr").Status, f.mirrorsOn(), decisions(p))
	}
	if text := string(f.secrets["c-key-client.rbd-mirror.dr-a"].data[secretKeyring]); !strings.Contains(text, "profile rbd-mirror, allow command 'config-key set' with key prefix rbd/mirror/") {
		t.Errorf("keyring %s", text)
	}
	if !f.ceph.Knows("client.rbd-mirror.dr-a") || !f.ceph.Knows(rbdmirror.PeerEntity) {
		t.Error("Ceph does not have the keys")
	}
	if token, err := MirrorTokenOf(t.Context(), f.view(), f); err != nil || !strings.HasPrefix(token, "eyJ") {
		t.Errorf("%s, %v", token, err)
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
	_, host, _ := strings.Cut(strings.Fields(f.mirrorsOn())[0], "@")
	for i := range f.hosts {
		if f.hosts[i].Name == host {
			f.mode(i+1, api.HostMaintenance)
		}
	}
	f.settle(t)
	if s := f.mirror("dr").Status; s.State != api.ResourceOnline && s.State != api.ResourceDegraded || strings.Count(f.mirrorsOn(), "Running") != 1 {
		t.Errorf("in maintenance: %+v, %s", s, f.mirrorsOn())
	}
	f.drop(f.mirror("dr"))
	f.settle(t)
	for name := range f.secrets {
		if strings.Contains(name, "mirror") {
			t.Errorf("Secret %s is left", name)
		}
	}
	if len(f.objects) > 0 || f.mirrorsOn() != "" || f.ceph.Knows(rbdmirror.PeerEntity) || f.ceph.Knows("client.rbd-mirror.dr-a") {
		t.Errorf("left: %v, %s", f.objects, f.mirrorsOn())
	}
	if f.mirrored["vms"].Mode != "image" {
		t.Error("the mirroring of the pool was ended")
	}
}

// The schedule of a pool is the one that is declared, and ends with that. What a person has scheduled for a pool without one is left alone.
func TestMirror_schedule(t *testing.T) {
	f := poolsOn(3, vms())
	f.objects = append(f.objects, mirrorOf("dr"))
	want := func(interval, schedules string) {
		t.Helper()
		f.mirror("dr").Spec.Pools[0].SnapshotInterval = interval
		if p := f.settle(t); f.ceph.Schedules("vms") != schedules || !p.Done || f.mirror("dr").Status.State != api.ResourceOnline {
			t.Fatalf("with %q: %s, want %s; %+v", interval, f.ceph.Schedules("vms"), schedules, f.mirror("dr").Status)
		}
	}
	f.ceph.Schedule("vms", "30m")
	want("", "[30m]")
	want("60m", "[1h]")
	want("6h", "[6h]")
	f.ceph.Schedule("vms", "1d")
	want("6h", "[6h]")
	want("", "[]")
	if s := f.mirror("dr").Status.Pools[0].SnapshotInterval; s != "" {
		t.Errorf("the status still says %s", s)
	}
	f.ceph.Schedule("vms", "6h")
	want("", "[6h]") // it was set by a person since
}

// A schedule that was set ends when no interval is wanted any more, however far the change to another interval had come: some rounds, and perhaps one more
// whose commands failed.
func TestMirror_scheduleCutShort(t *testing.T) {
	for _, first := range []string{"", "1h"} {
		for rounds := range 4 {
			for _, failing := range []bool{false, true} {
				t.Run(fmt.Sprintf("from %q, %d rounds, then a failing one: %v", first, rounds, failing), func(t *testing.T) {
					f := poolsOn(3, vms())
					f.objects = append(f.objects, mirrorOf("dr", func(m *api.RBDMirror) { m.Spec.Pools[0].SnapshotInterval = first }))
					f.settle(t)
					f.mirror("dr").Spec.Pools[0].SnapshotInterval = "30m"
					for range rounds {
						f.round(t)
					}
					if failing {
						f.roundWithoutCommands(t)
					}
					f.mirror("dr").Spec.Pools[0].SnapshotInterval = ""
					if f.settle(t); f.ceph.Schedules("vms") != "[]" || f.mirror("dr").Status.Pools[0].SnapshotInterval != "" {
						t.Errorf("%s is left, and the status says %+v", f.ceph.Schedules("vms"), f.mirror("dr").Status.Pools)
					}
				})
			}
		}
	}
}

func (f *fakeWorld) roundWithoutCommands(t *testing.T) {
	t.Helper()
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Commands = nil
	if err := f.apply(t.Context(), v, p); err != nil {
		t.Fatal(err)
	}
}

// A token that is another one than the pool has its peer by is told, with what to do. When the peer is gone, it is taken.
func TestMirror_otherToken(t *testing.T) {
	f := poolsOn(3, vms())
	f.token("site-b", "1111")
	f.objects = append(f.objects, mirrorOf("dr", func(m *api.RBDMirror) { m.Spec.Pools[0].PeerSecret = "site-b" }))
	f.settle(t)
	before := f.mirror("dr").Status.Pools[0].PeerToken
	if len(before) != 16 {
		t.Fatalf("%+v", f.mirror("dr").Status)
	}
	f.token("site-b", "2222")
	f.settle(t)
	if s := f.mirror("dr").Status; s.State != api.ResourceDegraded || s.Pools[0].PeerToken != before || !strings.Contains(s.Message, "rbd mirror pool peer remove vms u'") {
		t.Errorf("with another token: %+v", s)
	}
	f.token("site-b", "1111")
	if f.settle(t); f.mirror("dr").Status.State != api.ResourceOnline {
		t.Errorf("with the token of before: %+v", f.mirror("dr").Status)
	}
	f.token("site-b", "2222")
	f.settle(t)
	pool := f.mirrored["vms"]
	pool.Peers = nil
	f.mirrored["vms"] = pool
	if f.settle(t); f.mirror("dr").Status.State != api.ResourceOnline || f.mirror("dr").Status.Pools[0].PeerToken == before {
		t.Errorf("after the peer was removed: %+v", f.mirror("dr").Status)
	}
}

// What was scheduled for a pool, and the token of its peer, are known after a report that says nothing of it.
func TestMirror_unasked(t *testing.T) {
	f := poolsOn(3, vms())
	f.token("site-b", "1111")
	f.objects = append(f.objects, mirrorOf("dr", func(m *api.RBDMirror) {
		m.Spec.Pools[0].PeerSecret, m.Spec.Pools[0].SnapshotInterval = "site-b", "1h"
	}))
	f.settle(t)
	before := f.mirror("dr").Status.Pools[0]
	f.token("site-b", "2222")
	f.mirror("dr").Spec.Pools[0].SnapshotInterval = ""
	f.unasked = true
	f.agents()
	f.round(t)
	s := f.mirror("dr").Status
	want := []api.RBDMirrorPoolStatus{{Name: "vms", SnapshotInterval: "1h", PeerToken: before.PeerToken}}
	if diff := cmp.Diff(want, s.Pools); diff != "" || s.State != api.ResourceDegraded || !strings.Contains(s.Message, "state unknown yet") {
		t.Errorf("unasked: %s %s (-want +got):\n%s", s.State, s.Message, diff)
	}
	f.unasked = false
	f.settle(t)
	if s := f.mirror("dr").Status; s.Pools[0].PeerToken != before.PeerToken || !strings.Contains(s.Message, "rbd mirror pool peer remove vms u'") {
		t.Errorf("with another token: %+v", s)
	}
	if got := f.ceph.Schedules("vms"); got != "[]" {
		t.Errorf("what was scheduled is left: %s", got)
	}
}

func TestMirror_refused(t *testing.T) {
	peer := func(m *api.RBDMirror) { m.Spec.Pools[0].PeerSecret = "site-b" }
	for name, tt := range map[string]struct {
		change func(*fakeWorld)
		mirror *api.RBDMirror
		want   string
	}{
		"no Secret":      {func(*fakeWorld) {}, mirrorOf("dr", peer), "Secret site-b of type holdfast.io/rbd-mirror-token does not exist"},
		"no token":       {func(f *fakeWorld) { f.token("site-b", "") }, mirrorOf("dr", peer), "not a bootstrap token"},
		"its own token":  {func(f *fakeWorld) { f.token("site-b", worldUID) }, mirrorOf("dr", peer), "has the token of this cluster"},
		"no package":     {func(f *fakeWorld) { f.install("16.2.15"); f.withoutMirror() }, mirrorOf("dr"), "'apt-get install rbd-mirror'"},
		"no host":        {func(*fakeWorld) {}, mirrorOf("dr", func(m *api.RBDMirror) { m.Spec.Placement.Hosts = []string{"h9"} }), "placement selects no host"},
		"in two of them": {func(f *fakeWorld) { f.objects = append(f.objects, mirrorOf("other")) }, mirrorOf("dr"), "RBDMirror other also has pool vms"},
	} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(3, vms())
			f.settle(t)
			tt.change(f)
			f.objects = append(f.objects, tt.mirror)
			p := f.settle(t)
			if got := word(decisions(p, api.VerdictRefuse), "rbdmirror/dr"); !strings.Contains(got, tt.want) || strings.Contains(f.mirrorsOn(), "dr-") || f.mirror("dr").Status.State != api.ResourcePending {
				t.Errorf("refused for %q: %s, %+v", got, f.mirrorsOn(), f.mirror("dr").Status)
			}
		})
	}
}

func (f *fakeWorld) withoutMirror() {
	for i := range f.hosts {
		delete(f.hosts[i].Status.Packages, rbdmirror.Type)
	}
}

// A pool that is not there is waited for.
func TestMirror_waitsForPool(t *testing.T) {
	f := poolsOn(3)
	f.objects = append(f.objects, mirrorOf("dr"))
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictWait), "rbdmirror/dr"); !strings.Contains(got, "pool vms does not exist in Ceph yet") {
		t.Errorf("%q", got)
	}
	f.pools = append(f.pools, *vms())
	if f.settle(t); f.mirror("dr").Status.State != api.ResourceOnline {
		t.Errorf("%+v", f.mirror("dr").Status)
	}
}

// TestMirror_noWrites: an RBDMirror says of its pool that it takes no writes, with the cause and
// the next step.
func TestMirror_noWrites(t *testing.T) {
	f := poolsOn(3, vms())
	f.objects = append(f.objects, mirrorOf("dr"))
	f.settle(t)
	f.byHand(t, "osd set", map[string]any{"key": "pausewr"})
	f.settle(t)
	if s := f.mirror("dr").Status; s.State != api.ResourceDegraded || s.Reason != api.ReasonClientsPaused ||
		!strings.HasPrefix(s.Message, "pool vms is Degraded: ") ||
		!strings.Contains(s.Next, situations.Get("mirror-no-writes").Next) {
		t.Errorf("%+v", s)
	}
	f.byHand(t, "osd unset", map[string]any{"key": "pausewr"})
	f.settle(t)
	if s := f.mirror("dr").Status; s.State != api.ResourceOnline || s.Reason != "" || s.Message+s.Next != "" {
		t.Errorf("afterwards: %+v", s)
	}
}
