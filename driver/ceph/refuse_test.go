package ceph

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
)

// In a cluster of which nothing is there, a fault in what is declared refuses everything, and says what to do.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason api.Reason
		bad    func(w *world)
		want   []string
	}{
		{"too few hosts", api.ReasonInsufficientNodes, func(w *world) { w.nodes = w.nodes[:2] }, []string{
			"3 mons need 3 hosts", "the cluster has StorageNodes for 2 hosts (h1, h2)", "add 1 StorageNode or lower spec.ceph.mon.count to 1",
		}},
		{
			"an even number of mons", api.ReasonInvalidSpec,
			func(w *world) { w.cluster.Spec.Ceph.Mon.Count = 2 },
			[]string{"spec.ceph.mon.count is 2 but must be odd"},
		},
		{"selector selects too few", api.ReasonInsufficientNodes, func(w *world) {
			w.cluster.Spec.Ceph.Mon.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelHostname: "h2"}}
		}, []string{"hostSelector selects 1 host (h2)", "label more hosts or lower spec.ceph.mon.count to 1"}},
		{"selector of one mon selects what cannot be used", api.ReasonInsufficientNodes, func(w *world) {
			w.cluster.Spec.Ceph.Mon = api.CephMonSpec{Count: 1, HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelHostname: "h2"}}}
			w.cluster.Spec.Network.Public, w.hosts[1].Status.Addresses = "10.0.0.0/24", []string{"10.9.0.2"}
		}, []string{"a mon needs a host, but spec.ceph.mon.hostSelector selects no host usable now: label more hosts"}},
		{"a mounted device", api.ReasonDeviceUnavailable, func(w *world) {
			d := w.device("wwn-20")
			d.Availability, d.Reasons = api.DeviceUnavailable, []string{"It is mounted at /data."}
		}, []string{"device wwn-20 on host h2 cannot be used: It is mounted at /data. If its data is not needed, free the device"}},
		{"an OSD of another cluster", api.ReasonDeviceUnavailable, func(w *world) {
			d := w.device("wwn-20")
			d.Availability, d.Reasons = api.DeviceUnavailable, []string{"it holds osd.3 of Ceph cluster x"}
			d.Ceph = &api.DeviceCeph{FSID: "x", OSDUUID: ids.OSD(worldUID, "h2", "wwn-20")}
		}, []string{"it holds osd.3 of Ceph cluster x"}},
		{"another OSD of this cluster", api.ReasonDeviceUnavailable, func(w *world) {
			d := w.device("wwn-20")
			d.Availability = api.DeviceUnavailable
			d.Ceph = &api.DeviceCeph{FSID: worldUID, OSDUUID: ids.OSD(worldUID, "h1", "wwn-20")}
		}, []string{"it is not empty"}},
		{
			"a device that is not there", api.ReasonDeviceUnavailable,
			func(w *world) { w.nodes[1].Spec.Devices = []string{"wwn-99"} },
			[]string{"wwn-99", "h2"},
		},
		{
			"a device named twice", api.ReasonDeviceUnavailable,
			func(w *world) { w.nodes[1].Spec.Devices = []string{"wwn-20", "/dev/sdb"} },
			[]string{"same device"},
		},
		{
			"two nodes name one device", api.ReasonDeviceUnavailable,
			func(w *world) { w.node(2, "wwn-20").Name = "n9" },
			[]string{"claimed by"},
		},
		{
			"no address in the public network", api.ReasonNodeUnusable,
			func(w *world) { w.cluster.Spec.Network.Public = "10.1.0.0/24" },
			[]string{"10.1.0.0/24", "its addresses: 10.0.0.2"},
		},
		{
			"no address in the cluster network", api.ReasonNodeUnusable,
			func(w *world) { w.cluster.Spec.Network.Cluster = "10.1.0.0/24" },
			[]string{
				"host h2 has no address in the cluster network 10.1.0.0/24; its addresses: 10.0.0.2",
			},
		},
		{
			"an address of someone else", api.ReasonNodeUnusable,
			func(w *world) { w.nodes[1].Spec.StorageNetwork.IPs = []string{"10.0.0.3"} },
			[]string{
				"10.0.0.3, which is not an address of host h2",
			},
		},
		{
			"both kinds of addresses", api.ReasonInvalidSpec,
			func(w *world) { w.hosts[1].Status.Addresses = []string{"fd00::2"} },
			[]string{"use either IPv4 or IPv6"},
		},
		{"a mon of another cluster", api.ReasonConflict, func(w *world) {
			w.others = []*api.Daemon{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "x-mon-a"},
				Spec: api.DaemonSpec{
					Cluster: "x", Type: TypeMon, ID: "a", Host: "h2", Parameters: map[string]string{ParamAddress: "10.0.0.2"},
				},
			}}
		}, []string{"on host h2, mon.a of cluster prod/x listens on 10.0.0.2 port 3300 already"}},
		{"keys of an earlier cluster", api.ReasonConflict, func(w *world) {
			w.secrets["c-key-mon"] = secret{annotations: map[string]string{
				AnnotationEntity: entityMon, AnnotationFSID: "old", AnnotationClusterUID: "another",
			}}
		}, []string{"Secret c-key-mon belongs to an earlier cluster of this name (fsid old), whose data was retained"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := threeHosts()
			tt.bad(w)
			p := w.plan()
			if !p.Refused || !p.Empty() || p.Recheck != 0 || p.Done {
				t.Errorf("refused %v, empty %v, recheck %v", p.Refused, p.Empty(), p.Recheck)
			}
			if !decidedFor(p, api.VerdictRefuse, tt.reason) {
				t.Errorf("nothing is refused for the reason %s: %+v", tt.reason, p.Decisions)
			}
			all := strings.Join(decisions(p, api.VerdictRefuse), "\n")
			for _, want := range tt.want {
				if !strings.Contains(all, want) {
					t.Errorf("%q is not said in:\n%s", want, all)
				}
			}
			if p.Status.Status != api.StorageOffline || p.Status.Message == "" {
				t.Errorf("status: %+v", p.Status)
			}
			for _, d := range p.Decisions {
				if d.Verdict == api.VerdictDo {
					t.Errorf("a refused plan does something: %+v", d)
				}
			}
		})
	}
}

// In a cluster that exists, a fault concerns only what it is a fault of.
func TestRefused_oneDevice(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	d := f.device("wwn-11")
	d.Availability, d.Reasons = api.DeviceUnavailable, []string{"it has an ext4 file system"}
	f.nodes[0].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-11")
	f.nodes[1].Spec.Devices = append(f.nodes[1].Spec.Devices, "wwn-21")
	p := f.settle(t)
	if p.Refused || f.daemons["c-osd-3"] == nil || f.daemons["c-osd-3"].Spec.Devices[0].ID != "wwn-21" || f.daemons["c-osd-4"] != nil {
		t.Errorf("refused %v, daemons %v", p.Refused, slices.Sorted(maps.Keys(f.daemons)))
	}
	if p.Done || p.Status.Status != api.StorageDegraded || !contains(p.Status.Reasons, "it has an ext4 file system") {
		t.Errorf("status: %+v", p.Status)
	}
	if c := f.nodes[0].Status.Conditions[0]; c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "ext4") {
		t.Errorf("node: %+v", c)
	}
	if n := len(f.nodes[0].Status.Devices); n != 1 {
		t.Errorf("%d devices are recorded, want the accepted one only", n)
	}
}

func TestWaits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reason api.Reason
		with   func(w *world)
		want   string
	}{
		{
			"no nodes", api.ReasonInsufficientNodes,
			func(w *world) { w.nodes = nil }, "the cluster has no StorageNode yet",
		},
		{"a host that has not joined", api.ReasonNotReady, func(w *world) { w.hosts = w.hosts[:2] }, "check that the host has joined"},
		{"a silent agent", api.ReasonAgentDisconnected, func(w *world) {
			w.hosts[2].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
		}, "agent of host h3 disconnected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := threeHosts()
			tt.with(w)
			p := w.plan()
			if p.Refused || !p.Empty() || p.Done || !contains(decisions(p, api.VerdictWait), tt.want) {
				t.Errorf("refused %v, empty %v: %v", p.Refused, p.Empty(), decisions(p))
			}
			if !decidedFor(p, api.VerdictWait, tt.reason) {
				t.Errorf("nothing waits for the reason %s: %+v", tt.reason, p.Decisions)
			}
			if p.Status.Status != api.StorageOffline || !contains(p.Status.Reasons, tt.want) {
				t.Errorf("status: %+v", p.Status)
			}
		})
	}
}

// Objects are declared one after the other. What is seen at first is not taken for all there is where that would matter.
func TestWaits_forMoreToBeDeclared(t *testing.T) {
	declared := metav1.NewTime(testTime)
	small := func() *world {
		w := newWorld(1, 1)
		w.host(1, 1)
		w.node(1, "wwn-10").CreationTimestamp = declared
		return w
	}
	few := func() *world {
		w := threeHosts()
		w.nodes = w.nodes[:2]
		return w
	}
	for name, make := range map[string]func() *world{"one OSD": small, "too few hosts": few} {
		w := make()
		w.cluster.CreationTimestamp = declared
		w.now = testTime.Add(time.Second / 2)
		if p := w.plan(); p.Refused || !p.Empty() || p.Recheck != 3*time.Second/2 || !contains(decisions(p, api.VerdictWait), "waiting up to 2 s for more") {
			t.Errorf("%s: at first: recheck %v, %v", name, p.Recheck, decisions(p))
		}
		w.now = testTime.Add(settleTime)
		if p := w.plan(); p.Refused == !p.Empty() || p.Recheck != 0 {
			t.Errorf("%s: later: %v", name, decisions(p))
		}
	}
	w := threeHosts()
	w.cluster.CreationTimestamp = declared
	if p := w.plan(); len(p.Daemons) != 8 {
		t.Errorf("a cluster with a place for each copy is held up: %v", decisions(p))
	}
}

// All mons were deleted by hand: a new one would make a new, empty cluster under the old OSDs.
func TestRefused_noMonIsLeft(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	for _, id := range []string{"a", "b", "c"} {
		delete(f.daemons, "c-mon-"+id)
	}
	p := f.round(t)
	if !p.Empty() || !contains(decisions(p, api.VerdictRefuse), "no mon is left, but OSDs are") || p.Status.Status != api.StorageOffline {
		t.Errorf("%v %v", daemonNames(p), decisions(p))
	}
}

// The mons that answer may be another cluster's.
func TestWrongCluster(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	v := f.view()
	v.System = &Observation{Reachable: true, FSID: "another", Health: healthOK}
	p := f.planAt(v, f.now)
	if !p.Empty() || p.Status.Status != api.StorageOffline || !contains(p.Status.Reasons, "the mons answer for another cluster (fsid another") {
		t.Errorf("%+v", p.Status)
	}
}

func TestRecheck_slowsDown(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.ceph.Warn("SOMETHING", "is odd")
	start := testTime.Add(time.Hour)
	f.daemons["c-osd-0"].CreationTimestamp = metav1.NewTime(start)
	for _, tt := range []struct {
		after, want time.Duration
	}{{time.Second, recheckSoon}, {2 * time.Minute, recheckLater}, {time.Hour, 0}} {
		f.now = start.Add(tt.after)
		if got := f.round(t).Recheck; got != tt.want {
			t.Errorf("%v after the last start: recheck %v, want %v", tt.after, got, tt.want)
		}
	}
	f.now = start.Add(time.Second)
	f.broken["c-osd-1"] = true
	f.agents()
	if got := f.round(t).Recheck; got != recheckLater {
		t.Errorf("with a failed daemon: recheck %v", got)
	}
}

func TestRefusedPlan_keepsNodeStatuses(t *testing.T) {
	w := threeHosts()
	d := w.device("wwn-20")
	d.Availability, d.Reasons = api.DeviceUnavailable, []string{"it has data"}
	p := w.plan()
	got := map[string]string{}
	for _, n := range p.Nodes {
		got[n.Name] = string(n.Status.Conditions[0].Status)
	}
	if diff := cmp.Diff(map[string]string{"n1": "True", "n2": "False", "n3": "True"}, got); diff != "" {
		t.Error(diff)
	}
}
