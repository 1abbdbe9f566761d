package ceph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// byHand has a person send a command to Ceph.
func (f *fakeWorld) byHand(t *testing.T, prefix string, more map[string]any, input ...byte) {
	t.Helper()
	cmd := command{"prefix": prefix}
	for name, value := range more {
		cmd[name] = value
	}
	if _, err := f.ceph.Dial(rados.Config{}).Mon(t.Context(), cmd, input); err != nil {
		t.Fatal(err)
	}
}

// outside are what a plan says was changed outside Holdfast, as "VERDICT OBJECT".
func byHands(p *engine.Plan) (all []string) {
	for _, d := range p.Decisions {
		if d.Reason == api.ReasonChangedOutside {
			all = append(all, string(d.Verdict)+" "+d.Object)
		}
	}
	return all
}

// until runs rounds and returns all that they said was changed outside.
func (f *fakeWorld) outsiders(t *testing.T, rounds int) (all []string) {
	t.Helper()
	for range rounds {
		f.agents()
		for _, s := range byHands(f.round(t)) {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		f.now = f.now.Add(recheckSoon)
	}
	return all
}

// An OSD that somebody took out of CRUSH while it runs is put back below its host, and that is told.
func TestDrift_place(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	if got := f.outsiders(t, 3); got != nil {
		t.Fatalf("nothing was changed: %v", got)
	}
	f.byHand(t, "osd crush rm", map[string]any{"name": "osd.1"})
	if got := f.outsiders(t, 3); !slices.Equal(got, []string{"Do osd.1"}) || f.ceph.HostOf(1) != "h2" {
		t.Errorf("%v, and osd.1 is below %q", got, f.ceph.HostOf(1))
	}
	if p := f.settle(t); !p.Done || byHands(p) != nil {
		t.Errorf("%v, %v", p.Status.Reasons, byHands(p))
	}
}

// Where the spec says that OSDs are placed by hand, a person is asked.
func TestDrift_placedByHand(t *testing.T) {
	f := withFake(threeHosts())
	f.cluster.Spec.Ceph.Config = map[string]api.CephOptions{"osd": {"osd_crush_update_on_start": "false"}}
	f.settle(t)
	p := f.settle(t)
	want := []string{"Wait osd.0", "Wait osd.1", "Wait osd.2"}
	if got := byHands(p); !slices.Equal(got, want) || f.ceph.HostOf(1) != "" {
		t.Errorf("%v, and osd.1 is below %q", got, f.ceph.HostOf(1))
	}
}

// The removal of an OSD that has no place in CRUSH does not wait for that.
func TestDrift_placeDrained(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.byHand(t, "osd crush rm", map[string]any{"name": "osd.3"})
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if len(f.ceph.OSDs()) != 3 || !p.Done {
		t.Errorf("OSDs %v: %v", f.ceph.OSDs(), decisions(p))
	}
}

// A drain says which flag keeps it from moving data; nothing waits for other flags.
func TestDrift_flags(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	f.byHand(t, "osd set", map[string]any{"key": "norebalance"})
	f.byHand(t, "osd set", map[string]any{"key": "noout"})
	if p := f.settle(t); !slices.Equal(byHands(p), []string{"Skip flag/noout", "Skip flag/norebalance"}) || !p.Done {
		t.Errorf("%v, %v", byHands(p), p.Status.Reasons)
	}
	f.ceph.Stick(3, true)
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if !slices.Equal(byHands(p), []string{"Wait host/h4", "Skip flag/noout", "Wait flag/norebalance"}) {
		t.Error(byHands(p))
	}
	if w := hostWord(p, "h4"); !strings.Contains(w, "ceph osd unset norebalance") {
		t.Errorf("the host waits: %q", w)
	}
	f.ceph.Stick(3, false)
	f.byHand(t, "osd unset", map[string]any{"key": "norebalance"})
	if p := f.settle(t); len(f.ceph.OSDs()) != 3 {
		t.Errorf("OSDs %v: %v", f.ceph.OSDs(), decisions(p))
	}
}

// A key that was removed, or changed, in Ceph's auth database comes back from its Secret when the daemon fails
// for it.
func TestDrift_keys(t *testing.T) {
	for entity, name := range map[string]string{"osd.1": "c-osd-1", "mgr.b": "c-mgr-b"} {
		for _, change := range []string{"removed", "changed", "its caps"} {
			t.Run(entity+" "+change, func(t *testing.T) {
				f := withFake(threeHosts())
				f.settle(t)
				f.now = f.now.Add(slow)
				switch change {
				case "removed":
					f.ceph.Unauthorize(entity)
				case "changed":
					f.ceph.Authorize(entity)
				default:
					f.byHand(t, "auth import", nil, f.secrets["c-key-"+entity].data[secretKeyring]...)
					f.byHand(t, "auth caps", map[string]any{"entity": entity, "caps": []string{"mon", "allow r"}})
				}
				f.daemons[name].Status.State = api.DaemonBackOff
				if got := byHands(f.round(t)); !slices.Equal(got, []string{"Do " + entity}) ||
					f.ceph.Key(entity) != string(f.secrets["c-key-"+entity].data[secretKey]) ||
					!maps.Equal(f.ceph.Caps(entity), cephx.Caps(entity)) {
					t.Errorf("%v, and its key is %q, with %v", got, f.ceph.Key(entity), f.ceph.Caps(entity))
				}
				if p := f.settle(t); !p.Done {
					t.Error(p.Status.Reasons)
				}
			})
		}
	}
}

// A mon that somebody took out of the map gets another one in its place; of one that Holdfast does not run a
// user is told.
func TestDrift_mons(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.byHand(t, "mon remove", map[string]any{"name": "b"})
	f.daemons["c-mon-b"].Status.State = api.DaemonBackOff
	if got := byHands(f.round(t)); !slices.Equal(got, []string{"Do mon.b"}) {
		t.Error(got)
	}
	p := f.settle(t)
	if got := f.ceph.Monmap(); !p.Done || !slices.Equal(got, []string{"a", "c", "d"}) || f.daemons["c-mon-b"] != nil {
		t.Errorf("%v, %v", got, p.Status.Reasons)
	}
	f.ceph.SetMonmap("a", "c", "d", "x")
	if p := f.settle(t); !slices.Equal(byHands(p), []string{"Wait mon.x"}) {
		t.Errorf("%v", decisions(p))
	}
	f.byHand(t, "mon remove", map[string]any{"name": "x"})
	if p := f.settle(t); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

// refusing is a Ceph that takes no other key of client.admin than its own.
type refusing struct {
	rados.Client
	f    *fakeWorld
	cfg  rados.Config
	once *bool // it has answered
}

func (r refusing) Mon(ctx context.Context, cmd any, input []byte) ([]byte, error) {
	switch wrong := r.cfg.Entity == entityAdmin && r.f.ceph.Key(entityAdmin) != r.cfg.Key; {
	case wrong && *r.once:
		return nil, rados.ErrNoAnswer // it was let in, and is not let in again
	case wrong:
		return nil, fmt.Errorf("%w: %w", rados.ErrRefused, rados.ErrNoAnswer)
	}
	*r.once = true
	return r.Client.Mon(ctx, cmd, input)
}

// Two of three mons that somebody took out of the map get others in their places, one after the other.
func TestDrift_twoMons(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.byHand(t, "mon remove", map[string]any{"name": "b"})
	f.byHand(t, "mon remove", map[string]any{"name": "c"})
	p := f.settle(t)
	if got := f.ceph.Monmap(); !p.Done || !slices.Equal(got, []string{"a", "d", "e"}) {
		t.Errorf("%v, %v", got, p.Status.Reasons)
	}
}

// The key of client.admin that somebody changed is put back, as the mons themselves; meanwhile no mon is
// blamed.
func TestDrift_adminKey(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	dial := func(cfg rados.Config) rados.Client { return refusing{f.ceph.Dial(cfg), f, cfg, new(bool)} }
	f.driver = &Driver{Dial: dial, Now: f.driver.Now}
	f.byHand(t, "auth import", nil, f.secrets["c-key-"+entityAdmin].data[secretKeyring]...)
	f.settle(t)
	f.ceph.Authorize(entityAdmin)
	for range 3 {
		f.round(t) // the client that was let in waits for ever
	}
	p := f.round(t)
	if got := byHands(p); !slices.Equal(got, []string{"Do client.admin"}) || p.Status.Status != api.StorageDegraded {
		t.Errorf("%v, %s: %v", got, p.Status.Status, p.Status.Reasons)
	}
	if strings.Contains(p.Status.Message, "quorum") {
		t.Error(p.Status.Message)
	}
	if p := f.settle(t); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

// An OSD that somebody purged is registered again, and placed.
func TestDrift_purged(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.byHand(t, "osd purge-actual", map[string]any{"id": []string{"1"}})
	if got := byHands(f.round(t)); !slices.Equal(got, []string{"Do osd.1"}) || len(f.ceph.OSDs()) != 2 {
		t.Error(got, f.ceph.OSDs())
	}
	if d := f.daemons["c-osd-1"]; d.Spec.State != api.WantStopped {
		t.Errorf("it is to be %s before Ceph knows it again", d.Spec.State)
	}
	if got := f.outsiders(t, 1); !slices.Equal(got, []string{"Do osd.1"}) || len(f.ceph.OSDs()) != 3 {
		t.Error(got, f.ceph.OSDs())
	}
	if p := f.settle(t); !p.Done || f.ceph.HostOf(1) != "h2" {
		t.Errorf("%v, and osd.1 is below %q", p.Status.Reasons, f.ceph.HostOf(1))
	}
}

// A host whose address changed while its daemons ran is named; so are mons that are not in a network that is
// declared later.
func TestDrift_addresses(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	f.hosts[3].Status.Addresses = []string{"10.0.9.4"}
	p := f.settle(t)
	if got := byHands(p); !slices.Equal(got, []string{"Wait host/h4"}) {
		t.Errorf("%v", decisions(p))
	}
	f.hosts[3].Status.Addresses = []string{"10.0.0.4"}
	f.cluster.Spec.Network.Public = "10.0.0.0/24"
	if p := f.settle(t); !p.Done {
		t.Errorf("%v", decisions(p))
	}
	for i := range f.hosts {
		f.hosts[i].Status.Addresses = append(f.hosts[i].Status.Addresses, fmt.Sprintf("10.1.0.%d", i+1))
	}
	f.cluster.Spec.Network.Public = "10.1.0.0/24"
	p = f.settle(t)
	for _, mon := range []string{"mon.a", "mon.b", "mon.c"} {
		if got := reasonOf(p, api.VerdictRefuse, mon); got != api.ReasonInvalidSpec {
			t.Errorf("%s: %q", mon, got)
		}
	}
}

// A mon whose host gave up its address is replaced by one at the new address, on the same host where there is no
// other, and not before spec.ceph.mon.replaceAfter. One that gets its address back in time stays.
func TestDrift_monsAddress(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.hosts[1].Status.Addresses = []string{"10.0.9.2"}
	f.checkMonsAfter(t, monReplaceAfter-time.Minute, "a@h1", "b@h2", "c@h3")
	f.hosts[1].Status.Addresses = []string{"10.0.0.2"}
	f.checkMonsAfter(t, time.Minute, "a@h1", "b@h2", "c@h3")
	f.hosts[1].Status.Addresses = []string{"10.0.9.2"}
	f.checkMonsAfter(t, monReplaceAfter-time.Minute, "a@h1", "b@h2", "c@h3")
	f.checkMonsAfter(t, 2*time.Minute, "a@h1", "c@h3", "d@h2")
	if at := f.daemons["c-mon-d"].Spec.Parameters[ParamAddress]; at != "10.0.9.2" {
		t.Errorf("mon.d listens on %s", at)
	}
}

func (f *fakeWorld) checkMonsAfter(t *testing.T, d time.Duration, want ...string) {
	t.Helper()
	f.monSteps(t)
	f.now = f.now.Add(d)
	f.monSteps(t)
	f.checkMons(t, want...)
}

// In a run in which no map of Ceph changed nothing more is asked than before, and nothing is written.
func TestDrift_costsNothing(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	count := func() map[string]int {
		asked := map[string]int{}
		for _, prefix := range []string{"auth get", "auth ls", "mon dump", "osd dump", "osd tree", "osd df"} {
			asked[prefix] = f.ceph.Calls(prefix)
		}
		return asked
	}
	before, writes := count(), f.writes
	f.outsiders(t, 5)
	if after := count(); !maps.Equal(before, after) || f.writes != writes {
		t.Errorf("asked %v, before %v; %d writes, before %d", after, before, f.writes, writes)
	}
}
