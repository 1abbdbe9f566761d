package gluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// inZones is a world with one node in each of these zones, and a volume of three copies.
func inZones(t *testing.T, policy api.GlusterFSZones, zones ...int32) *world {
	t.Helper()
	w := newWorld(t)
	w.cluster.Spec.GlusterFS = &api.GlusterFSSpec{Zones: policy}
	for i, zone := range zones {
		w.host(i+1, 1)
		w.node(i+1, zone)
	}
	w.volume("v", "10Gi", replica3())
	return w
}

func zonesReason(v *api.Volume) string {
	if c := meta.FindStatusCondition(v.Status.Conditions, api.VolumeZonesApart); c != nil {
		return c.Reason
	}
	return ""
}

func TestZones(t *testing.T) {
	for name, test := range map[string]struct {
		policy api.GlusterFSZones
		zones  []int32
		state  api.ResourceState
		reason string
		warned bool
	}{
		"preferred, apart":          {api.ZonesPreferred, []int32{1, 2, 3}, api.ResourceOnline, "", false},
		"preferred, two in a zone":  {api.ZonesPreferred, []int32{1, 1, 2}, api.ResourceOnline, api.ReasonZonesShared, true},
		"nobody uses zones":         {"", []int32{1, 1, 1}, api.ResourceOnline, api.ReasonZonesShared, false},
		"strict, apart":             {api.ZonesStrict, []int32{1, 1, 2, 3}, api.ResourceOnline, "", false},
		"strict, two zones":         {api.ZonesStrict, []int32{1, 1, 2}, api.ResourcePending, "", true},
		"strict, nobody uses zones": {api.ZonesStrict, []int32{1, 1, 1}, api.ResourcePending, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := inZones(t, test.policy, test.zones...)
			p := w.settle()
			s := w.vol("v").Status
			if s.State != test.state || zonesReason(w.vol("v")) != test.reason || strings.Contains(s.Message, "zone") != test.warned {
				t.Errorf("%s %q %q %v", s.State, zonesReason(w.vol("v")), s.Message, decisions(p))
			}
		})
	}
}

// Fragments may share a zone as long as the set can do without all of a zone's.
func TestZones_fragments(t *testing.T) {
	w := inZones(t, api.ZonesStrict, 1, 1, 2, 2, 3, 3)
	w.volume("d", "10Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 4, Redundancy: 2}})
	w.volume("e", "10Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 5, Redundancy: 1}})
	p := w.settle()
	if w.vol("d").Status.State != api.ResourceOnline || w.vol("e").Status.State != api.ResourcePending {
		t.Errorf("%+v %+v %v", w.vol("d").Status, w.vol("e").Status, decisions(p))
	}
}

// A drain moves no brick into a zone that has one of its set, and a node in another zone makes it possible.
func TestZones_drain(t *testing.T) {
	w := inZones(t, api.ZonesStrict, 1, 2, 3)
	w.settle()
	w.host(4, 1)
	w.node(4, 2)
	w.undeclare("n3")
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "spec.glusterfs.zones is Strict") || w.daemons["c-glusterd-n3"] == nil {
		t.Fatalf("%v", decisions(p))
	}
	w.host(5, 1)
	w.node(5, 5)
	if p := w.settle(); w.daemons["c-glusterd-n3"] != nil || zonesReason(w.vol("v")) != "" {
		t.Errorf("%v", decisions(p))
	}
}

// A volume whose zones were shared tells when they are not any more.
func TestZones_mended(t *testing.T) {
	w := inZones(t, api.ZonesPreferred, 1, 1, 2)
	w.settle()
	w.nodes[1].Spec.GlusterFS.Zone = 3
	if w.settle(); zonesReason(w.vol("v")) != api.ReasonZonesApart || w.vol("v").Status.Message != "" {
		t.Errorf("%+v", w.vol("v").Status)
	}
}
