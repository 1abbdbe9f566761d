package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// inRacks has each host's OSD in a rack of its own, and the ceph.conf of each host say so.
func inRacks(r *AdoptRequest) {
	r.Facts.Crush = map[string]Bucket{}
	for i := 1; i <= 3; i++ {
		d := r.daemonOf(fmt.Sprintf("osd.%d", i))
		d.Options[optionLocation] = fmt.Sprintf("root=default rack=r%d host=H%d", i, i)
		r.Facts.Crush[d.Label()] = Bucket{Type: "osd", In: map[string]string{"root": "default", "rack": fmt.Sprintf("r%d", i), "host": fmt.Sprintf("H%d", i)}}
	}
	r.Conf["osd"] = map[string]string{optionLocation: "root=default rack=r1 host=H1", optionUpdateOnStart: "true"}
}

// TestAdopt_places: each OSD stays where CRUSH has it, whatever the ceph.conf of the host says that
// the cluster was adopted from.
func TestAdopt_places(t *testing.T) {
	r := byHand()
	inRacks(&r)
	r.Facts.Crush["osd.2"] = Bucket{Type: "osd", In: map[string]string{"root": "fast", "host": "mine"}}
	x := Adopt(r)
	if len(x.Problems) > 0 {
		t.Fatalf("%q", x.Problems)
	}
	if config := x.Cluster.Spec.Ceph.Config; len(config) > 0 {
		t.Errorf("for all OSDs: %v", config)
	}
	want := map[string]string{"c-osd-1": "H1", "c-osd-2": "mine", "c-osd-3": "H3"}
	for _, d := range x.Daemons {
		if bucket, is := want[d.Name]; is {
			conf := *d.Spec.Files[0].Sources[0].Text
			if d.Spec.Parameters[ParamCrushHost] != bucket || !strings.Contains(conf, "crush_location = root=default host="+bucket+"\n") ||
				!strings.Contains(conf, "osd_crush_update_on_start = false\n") {
				t.Errorf("%s: %v\n%s", d.Name, d.Spec.Parameters, conf)
			}
		}
	}
	text := strings.Join(x.Notes, "\n")
	for _, want := range []string{
		"CRUSH locations of OSDs differ from the ceph.conf of their hosts, and Holdfast keeps them: osd.2 (root=default rack=r2 host=H2)\n",
		"crush_location and crush_location_hook of ceph.conf are ignored: each OSD keeps its CRUSH location",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestAdopt_differ: an option that hosts do not have alike is never taken for all; each daemon
// keeps its own, also one that the given file does not have.
func TestAdopt_differ(t *testing.T) {
	r := byHand()
	r.Conf["osd"] = map[string]string{"osd_memory_target": "2G", "osd_max_backfills": "1"}
	r.Conf["osd.3"] = map[string]string{"osd_recovery_max_active": "5"}
	r.Conf["global"]["debug_ms"] = "1"
	for i, memory := range []string{"2147483648", "4294967296", "2147483648"} {
		r.daemonOf(fmt.Sprintf("osd.%d", i+1)).Options = map[string]string{"osd_memory_target": memory, "osd_max_backfills": "1", "debug_ms": "1/1"}
	}
	for _, d := range r.Facts.Daemons {
		d.Options["debug_ms"] = "1/1"
	}
	r.daemonOf("osd.2").Options["bluestore_cache_size"] = "1000"
	r.daemonOf("osd.3").Options["osd_recovery_max_active"] = "5"
	r.daemonOf("osd.3").Options["rgw_keystone_admin_password"] = "hush"
	delete(r.daemonOf("mon.h2").Options, "debug_ms")
	x := Adopt(r)
	want := map[string]api.CephOptions{"osd": {"osd_max_backfills": "1"}}
	for _, d := range r.Facts.Daemons {
		if d.Label() != "mon.h2" {
			want[d.Label()] = api.CephOptions{"debug_ms": "1/1"}
		}
	}
	want["osd.1"]["osd_memory_target"], want["osd.2"]["osd_memory_target"], want["osd.3"]["osd_memory_target"] = "2147483648", "4294967296", "2147483648"
	want["osd.2"]["bluestore_cache_size"], want["osd.3"]["osd_recovery_max_active"] = "1000", "5"
	if diff := cmp.Diff(want, x.Cluster.Spec.Ceph.Config); diff != "" || len(x.Problems) > 0 {
		t.Errorf("%q (-want +got):\n%s", x.Problems, diff)
	}
	if !slices.ContainsFunc(x.Notes, func(s string) bool {
		return strings.HasPrefix(s, "the ceph.conf files of the hosts differ: these options are set per daemon: mon.h1 debug_ms = 1/1")
	}) {
		t.Errorf("%q", x.Notes)
	}
}

// TestHandOver_place: an OSD that an earlier version adopted is told to stay where CRUSH has it,
// too, before it is handed over.
func TestHandOver_place(t *testing.T) {
	for i := range Adopt(byHand()).Daemons {
		d := Adopt(byHand()).Daemons[i]
		before := *d.Spec.Files[0].Sources[0].Text
		delete(d.Spec.Parameters, ParamCrushPlaced)
		keepPlace(&d)
		is := strings.TrimPrefix(*d.Spec.Files[0].Sources[0].Text, before)
		if want := map[string]string{TypeOSD: "\n[" + label(&d) + "]\nosd_crush_update_on_start = false\n"}[d.Spec.Type]; is != want {
			t.Errorf("%s is told %q", d.Name, is)
		}
	}
}
