package serves

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// well is a cluster in which all is as it should be.
func well() *Facts {
	at := crushmap.Place{Class: "hdd", Weight: 1, Buckets: map[string]string{"host": "h2", "root": "default"}}
	return &Facts{
		Now: now, Fresh: time.Minute, Monmap: []string{"a", "b", "c"}, Quorum: []string{"a", "b", "c"},
		ActiveMgr: "x", Mgrs: []string{"x", "y"},
		OSDs:  map[int]OSD{2: {Up: true, In: true, Placed: true, Place: at, Weight: "0.00098"}},
		Takes: []crushmap.Take{{Root: "default"}}, MDS: map[string]Rank{"home-a": {Filesystem: "home", State: "up:active"}},
		Standbys: []string{"home-b"}, Listed: map[string][]string{"rgw": {"s3-a"}, "rbd-mirror": {"m-a"}},
	}
}

func daemon(kind, id string) *api.Daemon {
	started := metav1.NewMicroTime(now.Add(-time.Hour))
	d := &api.Daemon{Spec: api.DaemonSpec{
		Type: "ceph-" + kind, ID: id, Host: "h2", State: api.WantRunning,
		Command: []string{"ceph-" + kind, "--mds_join_fs=home"},
	}}
	d.Status.State, d.Status.Started = api.DaemonRunning, &started
	return d
}

// osd changes what is said of osd.2.
func osd(change func(*OSD)) func(*Facts) {
	return func(f *Facts) {
		o := f.OSDs[2]
		change(&o)
		f.OSDs[2] = o
	}
}

// causes are what keeps daemons from serving, with what is said of each.
var causes = map[string]struct {
	kind, id string
	change   func(*Facts)
	state    api.ServiceState
	reason   api.Reason
	next     string
}{
	"a mon":            {"mon", "c", func(*Facts) {}, "", "", ""},
	"an OSD":           {"osd", "2", func(*Facts) {}, "", "", ""},
	"the active mgr":   {"mgr", "x", func(*Facts) {}, "", "", ""},
	"an active MDS":    {"mds", "home-a", func(*Facts) {}, "", "", ""},
	"a gateway":        {"rgw", "s3-a", func(*Facts) {}, "", "", ""},
	"an rbd-mirror":    {"rbd-mirror", "m-a", func(*Facts) {}, "", "", ""},
	"another type":     {"exporter", "a", func(*Facts) {}, "", "", ""},
	"nothing is asked": {"mds", "home-a", func(f *Facts) { *f = Facts{Now: now} }, "", "", ""},

	"a mon that hangs": {
		"mon", "c", func(f *Facts) { f.Quorum, f.Mute = []string{"a", "b"}, []string{"c"} },
		api.OutOfService, api.ReasonDaemonHangs, "'holdfast daemon restart mon.c'",
	},
	"a mon without a way": {
		"mon", "c", func(f *Facts) { f.Quorum = []string{"a", "b"} },
		api.OutOfService, api.ReasonNotInQuorum, "check the network between host h2",
	},
	"no quorum":     {"mon", "c", func(f *Facts) { f.Quorum = nil }, "", "", ""},
	"a mon removed": {"mon", "c", func(f *Facts) { f.Quorum, f.Monmap = f.Quorum[:2], f.Monmap[:2] }, "", "", ""},

	"a standby mgr":      {"mgr", "y", func(*Facts) {}, api.ServiceStandby, api.ReasonStandby, ""},
	"a mgr that hangs":   {"mgr", "z", func(*Facts) {}, api.OutOfService, api.ReasonDaemonHangs, "restart mgr.z'"},
	"mgrs are not asked": {"mgr", "z", func(f *Facts) { f.Mgrs = nil }, "", "", ""},

	"marked out": {
		"osd", "2", osd(func(o *OSD) { o.In = false }),
		api.OutOfService, api.ReasonMarkedOut, "'holdfast ceph osd in 2'",
	},
	"it leaves": {"osd", "2", osd(func(o *OSD) { o.In, o.Leaves = false, true }), "", "", ""},
	"noin": {
		"osd", "2", func(f *Facts) { osd(func(o *OSD) { o.In = false })(f); f.Flags = []string{"noin"} },
		api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd unset noin'",
	},
	"its own noin": {
		"osd", "2", osd(func(o *OSD) { o.In, o.State = false, []string{"noin"} }),
		api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd rm-noin 2'",
	},
	"noin of its host": {"osd", "2", func(f *Facts) {
		osd(func(o *OSD) { o.In, o.Place.Buckets = false, map[string]string{"host": "h2"} })(f)
		f.Checks = flags("host h3 has flags noin", "host h2 has flags noout,noin")
	}, api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd unset-group noin h2'"},
	"noup of its class": {"osd", "2", func(f *Facts) {
		osd(func(o *OSD) { o.Up, o.Place.Class = false, "hdd" })(f)
		f.Checks = flags("device class 'hdd' has flags noup")
	}, api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd unset-group noup hdd'"},
	"noup of another host": {"osd", "2", func(f *Facts) {
		osd(func(o *OSD) { o.Up, o.Place.Buckets = false, map[string]string{"host": "h2"} })(f)
		f.Checks = flags("host h3 has flags noup")
	}, api.OutOfService, api.ReasonDaemonHangs, "'holdfast daemon restart osd.2'"},
	"no weight": {
		"osd", "2", osd(func(o *OSD) { o.Place.Weight = 0 }),
		api.OutOfService, api.ReasonZeroWeight, "'holdfast ceph osd crush reweight osd.2 0.00098'",
	},
	"no place": {"osd", "2", osd(func(o *OSD) { o.Placed = false }), "", "", ""},
	"no rule": {
		"osd", "2", func(f *Facts) { f.Takes[0].Class = "ssd" },
		api.OutOfService, api.ReasonNotUsed, "declare a Pool with deviceClass hdd",
	},
	"no pool": {"osd", "2", func(f *Facts) { f.Takes = nil }, "", "", ""},
	"an OSD that hangs": {
		"osd", "2", osd(func(o *OSD) { o.Up = false }),
		api.OutOfService, api.ReasonDaemonHangs, "'holdfast daemon restart osd.2'",
	},
	"noup": {
		"osd", "2", func(f *Facts) { osd(func(o *OSD) { o.Up = false })(f); f.Flags = []string{"noup"} },
		api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd unset noup'",
	},
	"its own noup": {
		"osd", "2", osd(func(o *OSD) { o.Up, o.State = false, []string{"noup"} }),
		api.OutOfService, api.ReasonFlagSet, "'holdfast ceph osd rm-noup 2'",
	},
	"full": {
		"osd", "2", osd(func(o *OSD) { o.State = []string{"full", "nearfull"} }),
		api.OutOfService, api.ReasonFull, "set-full-ratio",
	},
	"backfillfull": {
		"osd", "2", osd(func(o *OSD) { o.State = []string{"backfillfull"} }),
		api.ServiceLimited, api.ReasonBackfillFull, "add a device",
	},
	"nearfull": {
		"osd", "2", osd(func(o *OSD) { o.State = []string{"nearfull"} }),
		api.ServiceLimited, api.ReasonNearFull, "'holdfast ceph osd df'",
	},
	"not registered": {"osd", "7", func(*Facts) {}, "", "", ""},

	"a standby MDS": {"mds", "home-b", func(*Facts) {}, api.ServiceStandby, api.ReasonStandby, ""},
	"fs fail": {
		"mds", "home-b", func(f *Facts) { f.Closed = []string{"home"} },
		api.OutOfService, api.ReasonNotJoinable, "'holdfast ceph fs set home joinable true'",
	},
	"an MDS that hangs": {
		"mds", "home-c", func(*Facts) {},
		api.OutOfService, api.ReasonDaemonHangs, "restart mds.home-c'",
	},
	"laggy": {
		"mds", "home-a", func(f *Facts) { f.MDS["home-a"] = Rank{"home", "up:active", true} },
		api.OutOfService, api.ReasonDaemonHangs, "restart mds.home-a'",
	},
	"replay": {
		"mds", "home-a", func(f *Facts) { f.MDS["home-a"] = Rank{Filesystem: "home", State: "up:replay"} },
		api.OutOfService, api.ReasonTakingOver, "wait",
	},

	"a gateway that Ceph does not list": {
		"rgw", "s3-b", func(*Facts) {},
		api.OutOfService, api.ReasonNotListed, "'holdfast daemon restart rgw.s3-b'",
	},
	"a gateway that hangs": {
		"rgw", "s3-a", func(f *Facts) { f.Unanswered = func(*api.Daemon) string { return "late" } },
		api.OutOfService, api.ReasonDaemonHangs, "'holdfast daemon restart rgw.s3-a'",
	},
	"an rbd-mirror that Ceph does not list": {
		"rbd-mirror", "m-b", func(*Facts) {},
		api.OutOfService, api.ReasonNotListed, "'holdfast daemon restart rbd-mirror.m-b'",
	},
}

// TestOf: each cause has its reason and its next step, and a daemon that serves has none.
func TestOf(t *testing.T) {
	for name, tt := range causes {
		f, d := well(), daemon(tt.kind, tt.id)
		tt.change(f)
		got := f.Of(d)
		if got == nil {
			got = &api.DaemonService{}
		}
		if got.State != tt.state || got.Reason != tt.reason || !strings.Contains(got.Next, tt.next) {
			t.Errorf("%s: %+v", name, got)
		}
		if tt.state == api.OutOfService && got.Reason == api.ReasonDaemonHangs {
			*d.Status.Started = metav1.NewMicroTime(now.Add(-time.Second))
			if fresh := f.Of(d); fresh != nil {
				t.Errorf("%s: it has just been started: %+v", name, fresh)
			}
		}
	}
}

// TestOf_takeover: an MDS that takes over for long needs a user, who has to evict a client where it waits for one.
func TestOf_takeover(t *testing.T) {
	for state, next := range map[string]string{
		"up:replay":       "'holdfast daemon restart mds.home-a'",
		"up:resolve":      "'holdfast daemon restart mds.home-a'",
		"up:clientreplay": "'holdfast ceph tell mds.home-a client ls'",
	} {
		f, d := well(), daemon("mds", "home-a")
		f.MDS["home-a"] = Rank{Filesystem: "home", State: state}
		d.Status.Service = &api.DaemonService{Reason: api.ReasonTakingOver, Since: metav1.NewTime(now.Add(-3 * time.Minute))}
		if got := f.Of(d); got == nil || got.Reason != api.ReasonTakingOver || !strings.Contains(got.Next, next) {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

// TestListed reads the map of services of Ceph 16 with a gateway.
func TestListed(t *testing.T) {
	const text = `{"epoch":5,"services":{"rgw":{"daemons":{"summary":"","4135":{"start_epoch":5,"gid":4135,
		"metadata":{"id":"s3-a","zone_name":"s3"}}}}}}`
	m := &ServiceMap{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	if got := m.Listed()["rgw"]; len(got) != 2 || got[0] != "4135" || got[1] != "s3-a" {
		t.Errorf("%v", got)
	}
}

// flags are Ceph's warning of flags of hosts and others.
func flags(detail ...string) []api.HealthCheck {
	return []api.HealthCheck{{Code: "OSD_FLAGS", Detail: detail}}
}
