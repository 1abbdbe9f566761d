package ceph

import (
	"fmt"
	"slices"
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
