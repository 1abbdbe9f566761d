package ceph

import (
	"context"
	"testing"
)

// TestPlan_noMembers: a host that reports no address, while no mon's Daemon is left and Ceph answers, ends no planning.
func TestPlan_noMembers(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	v, _, err := f.observed(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	kept := v.Daemons[:0:0]
	for _, d := range v.Daemons {
		if d.Spec.Type != TypeMon {
			kept = append(kept, d)
		}
	}
	v.Daemons = kept
	f.planAt(v, f.now)
	v.Hosts[0].Status.Addresses = nil
	f.planAt(v, f.now)
}
