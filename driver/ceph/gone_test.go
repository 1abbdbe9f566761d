package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestGone_returns: whenever a host that is drained because it was said to be gone is back, no disk of it is wiped: neither when it gets its mode
// back, nor when its StorageNode was moved or deleted meanwhile, so that its OSDs go on leaving.
func TestGone_returns(t *testing.T) {
	for name, then := range map[string]func(f *fakeWorld){
		"it stays drained": func(*fakeWorld) {},
		"it gets its mode back": func(f *fakeWorld) {
			f.hosts[3].Spec.Mode = api.HostActive
			engine.KeepDisks(&f.hosts[3], false)
		},
		"its node was deleted": func(f *fakeWorld) {
			f.hosts[3].Spec.Mode = api.HostActive
			f.nodes = f.nodes[:3]
		},
	} {
		for rounds := range 14 {
			t.Run(fmt.Sprintf("%s, after %d rounds", name, rounds), func(t *testing.T) {
				f := withFake(fourHosts())
				f.cluster.Spec.DeletionPolicy = api.DeletionWipe
				f.settle(t)
				f.powerOff(4, 11*time.Minute)
				f.settle(t)
				f.hosts[3].Spec.Mode = api.HostDrain
				engine.KeepDisks(&f.hosts[3], true)
				for range rounds {
					f.agents()
					f.round(t)
				}
				f.powerOn(4)
				f.agents() // they do at once what they were told
				then(f)
				f.settle(t)
				if f.device("wwn-40").Ceph == nil {
					t.Error("its disk was wiped")
				}
			})
		}
	}
}

// TestGone_wasToBeWiped: what a drain with a named plan has told a daemon is taken back before the daemon is removed from a host that is then said to be gone.
func TestGone_wasToBeWiped(t *testing.T) {
	f := withFake(fourHosts())
	f.cluster.Spec.DeletionPolicy = api.DeletionWipe
	f.settle(t)
	f.hosts[3].Spec.Mode = api.HostDrain
	d := f.osdOn("h4")
	f.until(t, "it is to be wiped", func() bool { return d().Spec.OnRemoval == api.DeletionWipe })
	f.powerOff(4, 11*time.Minute)
	going := func() bool {
		_, p, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(p.Remove, func(r engine.Removal) bool { return r.Name == d().Name })
	}
	f.until(t, "it is about to be removed", going)
	engine.KeepDisks(&f.hosts[3], true)
	f.until(t, "it is removed", func() bool {
		if going() && d().Spec.OnRemoval == api.DeletionWipe {
			t.Error("it is removed before it was told that its disk is kept")
		}
		return d().DeletionTimestamp != nil
	})
}

// TestGone_keyOfItsMgr: the machine of a host that was taken out may come back and start the mgr that it had. None that comes later has its name with its
// key, or Ceph would take each for the other one that was started again, and change the active mgr for ever.
func TestGone_keyOfItsMgr(t *testing.T) {
	f := withFake(fourHosts())
	f.settle(t)
	seen := map[string]int{} // the round in which each mgr was seen last, by its name and key
	for round := range 4 {
		for name, d := range f.daemons {
			if d.Spec.Type != TypeMgr {
				continue
			}
			who := name + " " + string(f.secrets["c-key-mgr."+d.Spec.ID].data[secretKey])
			if last, was := seen[who]; was && last != round-1 {
				t.Errorf("round %d: %s on %s has the key that it had in round %d", round, name, d.Spec.Host, last)
			}
			seen[who] = round
		}
		f.mode(4, []api.HostMode{api.HostDrain, api.HostActive}[round%2])
		f.cluster.Spec.Ceph.Mgr.Count = []int32{2, 3, 3, 2}[round]
		f.settle(t)
	}
	if kept := len(slices.DeleteFunc(slices.Collect(maps.Keys(f.secrets)), func(name string) bool { return !strings.Contains(name, "mgr") })); kept > 4 {
		t.Errorf("%d keys of mgrs are kept", kept)
	}
}

// osdOn finds the OSD on a host, each time anew.
func (f *fakeWorld) osdOn(host string) func() *api.Daemon {
	return func() *api.Daemon {
		for _, d := range f.daemons {
			if d.Spec.Type == TypeOSD && d.Spec.Host == host {
				return d
			}
		}
		return &api.Daemon{}
	}
}
