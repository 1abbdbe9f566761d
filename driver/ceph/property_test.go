package ceph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
)

// drawWorld makes a random world: hosts that are there or not, with disks in all conditions, and nodes that name some.
func drawWorld(t *rapid.T) *fakeWorld {
	w := newWorld(rapid.SampledFrom([]int32{1, 1, 3, 3, 5, 2}).Draw(t, "mons"), rapid.Int32Range(1, 3).Draw(t, "mgrs"))
	for i := range rapid.IntRange(0, 6).Draw(t, "hosts") {
		h := w.host(i+1, rapid.IntRange(0, 3).Draw(t, "disks"))
		for d := range h.Status.Devices {
			if rapid.IntRange(0, 12).Draw(t, "used") == 0 {
				h.Status.Devices[d].Availability, h.Status.Devices[d].Reasons = api.DeviceUnavailable, []string{"it has data"}
			}
		}
		if rapid.IntRange(0, 12).Draw(t, "silent") == 0 {
			h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
		}
	}
	for i := range len(w.hosts) + rapid.IntRange(0, 1).Draw(t, "absent hosts") {
		if rapid.IntRange(0, 9).Draw(t, "no node") != 0 {
			drawNode(t, w, i+1)
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "selector") {
	case 0:
		w.cluster.Spec.Ceph.Mon.HostSelector = &metav1.LabelSelector{}
	case 1:
		drawPlacement(t, w)
	}
	if rapid.IntRange(0, 3).Draw(t, "filesystem") == 0 {
		w.filesystems = append(w.filesystems, filesystemOf("home", func(f *api.Filesystem) {
			f.Spec.ActiveMDS = rapid.Int32Range(1, 3).Draw(t, "active MDS")
			f.Spec.Placement.Pattern = rapid.SampledFrom([]string{"", "", "h*", "h[12]", "x*"}).Draw(t, "placement")
			f.Spec.MetadataPool.Replicated = &api.PoolReplicated{Size: rapid.Int32Range(1, 4).Draw(t, "copies")}
		}))
	}
	if rapid.IntRange(0, 3).Draw(t, "object stores") == 0 {
		w.objects = []api.Resource{storeOf("s3"), storeOf("two"), userOf("app", "s3")}
	}
	f := withFake(w)
	for i := range f.hosts {
		if rapid.IntRange(0, 3).Draw(t, "labelled") == 0 {
			drawLocation(t, f, i+1)
		}
	}
	return f
}

// drawPlacement places mons and mgrs on some of the hosts.
func drawPlacement(t *rapid.T, w *world) {
	ceph := w.cluster.Spec.Ceph
	ceph.Mon.HostSelector = nil
	some := rapid.SampledFrom([]string{"", "h*", "h[1-4]", "h[23456]", "h3", "x*"})
	ceph.Mon.Placement, ceph.Mgr.Placement = byPattern(some.Draw(t, "mon placement")), byPattern(some.Draw(t, "mgr placement"))
}

// drawLocation labels a host with where it is, which may contradict what others are labelled with.
func drawLocation(t *rapid.T, f *fakeWorld, i int) {
	for _, level := range []string{"rack", "datacenter", "zone"} {
		if name := rapid.SampledFrom([]string{"", "", "a", "b", "c", "h2"}).Draw(t, level); name != "" {
			f.at(i, level+"="+name)
		}
	}
}

func drawNode(t *rapid.T, w *world, i int) {
	n := w.node(i)
	for d := range rapid.IntRange(0, 3).Draw(t, "devices") {
		name := fmt.Sprintf("wwn-%d%d", i, d)
		if rapid.IntRange(0, 4).Draw(t, "by path") == 0 {
			name = fmt.Sprintf("/dev/sd%c", 'b'+d)
		}
		n.Spec.Devices = append(n.Spec.Devices, name)
	}
	if rapid.IntRange(0, 15).Draw(t, "twice") == 0 {
		n.Spec.Devices = append(n.Spec.Devices, fmt.Sprintf("wwn-%d0", i))
	}
	if rapid.IntRange(0, 15).Draw(t, "foreign address") == 0 {
		n.Spec.StorageNetwork.IPs = []string{"192.168.9.9"}
	}
}

// drawLeaving has devices of a node leave, or stay after all.
func drawLeaving(t *rapid.T, s *api.StorageNodeSpec) {
	entries := append([]string{"nothing"}, s.Devices...)
	s.Exclude = rapid.SampledFrom([][]string{nil, nil, {rapid.SampledFrom(entries).Draw(t, "entry")}}).Draw(t, "exclude")
	s.Replace = rapid.SampledFrom([][]string{nil, {rapid.SampledFrom(entries).Draw(t, "entry")}}).Draw(t, "replace")
}

// disturb changes the world as its surroundings do.
func disturb(t *rapid.T, f *fakeWorld) {
	if len(f.hosts) == 0 {
		return
	}
	i := rapid.IntRange(1, len(f.hosts)).Draw(t, "which")
	switch rapid.IntRange(0, 22).Draw(t, "event") {
	case 0:
		j := len(f.hosts) + 1
		f.host(j, 2)
		f.node(j, fmt.Sprintf("wwn-%d0", j)).Name = fmt.Sprintf("m%d", j)
	case 1:
		f.cluster.Spec.Ceph.Mgr.Count = rapid.Int32Range(1, 4).Draw(t, "mgrs")
	case 2:
		f.cluster.Spec.Ceph.Mon.Count = rapid.SampledFrom([]int32{1, 3, 5}).Draw(t, "mons")
	case 3:
		if names := slices.Sorted(maps.Keys(f.daemons)); len(names) > 0 {
			name := rapid.SampledFrom(names).Draw(t, "breaks")
			f.broken[name] = !f.broken[name]
		}
	case 4: // a Daemon is deleted by hand, and its agent has cleaned up
		if names := slices.Sorted(maps.Keys(f.daemons)); len(names) > 0 {
			delete(f.daemons, rapid.SampledFrom(names).Draw(t, "lost"))
		}
	case 5:
		if len(f.nodes) > 0 {
			f.nodes = slices.Delete(f.nodes, 0, 1)
		}
	case 6:
		f.hosts[i-1].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	case 7:
		f.hosts[i-1].Status.Conditions = nil
	case 8:
		f.ceph.Stick(rapid.IntRange(0, 6).Draw(t, "stuck"), rapid.Bool().Draw(t, "is stuck"))
	case 11, 12:
		disturbFilesystem(t, f)
	case 13, 14:
		disturbStores(t, f)
	case 15, 16:
		drawLocation(t, f, i)
	case 17, 18:
		if len(f.nodes) > 0 {
			drawLeaving(t, &f.nodes[rapid.IntRange(0, len(f.nodes)-1).Draw(t, "node")].Spec)
		}
	case 19:
		drawPlacement(t, f.world)
	case 20:
		if names := slices.Sorted(maps.Keys(f.daemons)); len(names) > 0 {
			f.asks(rapid.SampledFrom(names).Draw(t, "leaves"), api.AnnotationLeave)
		}
	case 21:
		if names := slices.Sorted(maps.Keys(f.daemons)); len(names) > 0 {
			stopAsked(t, f, rapid.SampledFrom(names).Draw(t, "stops"))
		}
	case 22:
		for _, d := range f.daemons {
			delete(d.Annotations, api.AnnotationStop)
		}
	case 9, 10:
		f.hosts[i-1].Spec.Mode = rapid.SampledFrom([]api.HostMode{"", api.HostActive, api.HostMaintenance, api.HostMaintenance, api.HostDrain}).Draw(t, "mode")
	}
}

// stopAsked has a daemon stopped as an Action does, if Ceph can do without it.
func stopAsked(t *rapid.T, f *fakeWorld, name string) {
	v := f.view()
	v.Restart = name
	system, err := f.driver.Observe(t.Context(), v, f)
	if err != nil {
		t.Fatal(err)
	}
	v.System = system
	if d := f.daemons[name]; d.Spec.State == api.WantRunning && len(f.planAt(v, f.now).AgainstRestart(name)) == 0 {
		f.asks(name, api.AnnotationStop)
	}
}

func disturbFilesystem(t *rapid.T, f *fakeWorld) {
	if len(f.filesystems) == 0 {
		return
	}
	x := f.filesystems[0]
	switch rapid.IntRange(0, 4).Draw(t, "filesystem event") {
	case 0:
		x.Spec.ActiveMDS = rapid.Int32Range(1, 3).Draw(t, "active MDS")
	case 1:
		x.Spec.StandbyMDS = numberOf(rapid.Int32Range(0, 2).Draw(t, "standby MDS"))
	case 2:
		x.Spec.Placement.Pattern = rapid.SampledFrom([]string{"", "h*", "h[23]"}).Draw(t, "placement")
	case 3:
		f.mounted = []cephreport.Mount{{Entity: "app", Path: "/mnt"}}[:rapid.IntRange(0, 1).Draw(t, "mounted")]
	case 4:
		now := metav1.NewTime(f.now)
		x.DeletionTimestamp, x.Spec.DeletionPolicy = &now, rapid.SampledFrom([]api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe}).Draw(t, "policy")
	}
}

// checkMDS: each MDS of a filesystem has a host of its own.
func checkMDS(t *rapid.T, f *fakeWorld) {
	on := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		if d := f.daemons[name]; d.Spec.Type == TypeMDS && d.DeletionTimestamp == nil {
			if other := on[d.Spec.Host]; other != "" {
				t.Fatalf("%s and %s are both on %s", name, other, d.Spec.Host)
			}
			on[d.Spec.Host] = name
		}
	}
}

// roundChecked runs one orchestration and checks its plan.
func roundChecked(t *rapid.T, f *fakeWorld) *engine.Plan {
	v := f.view()
	system, err := f.driver.Observe(t.Context(), v, f)
	if err != nil {
		t.Fatal(err)
	}
	v.System = system
	untouched := f.view()
	untouched.System = system
	p := f.planAt(v, f.now)
	if diff := cmp.Diff(untouched, v, cmpopts.IgnoreUnexported(engine.View{})); diff != "" {
		t.Fatalf("Plan changed its input:\n%s", diff)
	}
	if diff := cmp.Diff(p, f.planAt(v, f.now)); diff != "" {
		t.Fatalf("two plans of one view differ:\n%s", diff)
	}
	if p.Refused && (!p.Empty() || p.Done || p.Finished || p.Recheck != 0) {
		t.Fatalf("a refused plan has more in it: %+v", p)
	}
	if p.Refused && len(f.daemons) > 0 {
		t.Fatalf("a cluster that exists is refused as a whole: %v", decisions(p))
	}
	checkUnmoved(t, f, p)
	if err := f.apply(t.Context(), v, p); err != nil {
		t.Fatal(err)
	}
	checkSafe(t, f)
	checkMDS(t, f)
	checkGateways(t, f)
	checkStops(t, f, v, p)
	return p
}

// checkSafe checks what must hold at any time.
func checkSafe(t *rapid.T, f *fakeWorld) {
	monHosts, ids, devices := map[string]string{}, map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		d := f.daemons[name]
		switch d.Spec.Type {
		case TypeMon:
			if other := monHosts[d.Spec.Host]; other != "" {
				t.Fatalf("%s and %s are both on %s", name, other, d.Spec.Host)
			}
			monHosts[d.Spec.Host] = name
		case TypeOSD:
			device := d.Spec.Host + "/" + d.Spec.Devices[0].ID
			if other := ids[d.Spec.ID] + devices[device]; other != "" {
				t.Fatalf("%s has the number or the device of %s", name, other)
			}
			ids[d.Spec.ID], devices[device] = name, name
			checkStarted(t, f, d)
		}
	}
}

// checkStarted: no OSD is wanted Running before Ceph knew it.
func checkStarted(t *rapid.T, f *fakeWorld, d *api.Daemon) {
	id, err := strconv.Atoi(d.Spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if uuid := f.ceph.OSDs()[id]; d.Spec.State == api.WantRunning && uuid != d.Spec.Parameters[ParamOSDUUID] {
		t.Fatalf("%s is wanted Running, and the OSD map has uuid %q by its number", d.Name, uuid)
	}
}

// checkStops: nothing is told to stop that Ceph cannot do without, given all that is down or was told to stop before.
func checkStops(t *rapid.T, f *fakeWorld, before *engine.View, p *engine.Plan) {
	var stopped []int
	quorum := f.ceph.Quorum()
	mons := len(f.ceph.Monmap())
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		d := f.daemons[name]
		if d.Spec.State != api.WantStopped {
			continue
		}
		quorum = slices.DeleteFunc(quorum, func(id string) bool { return d.Spec.Type == TypeMon && d.Spec.ID == id })
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && d.Spec.Type == TypeOSD {
			stopped = append(stopped, id)
		}
	}
	for _, c := range p.Daemons {
		i := slices.IndexFunc(before.Daemons, func(d api.Daemon) bool { return d.Name == c.Daemon.Name })
		if i < 0 || before.Daemons[i].Spec.State != api.WantRunning || c.Daemon.Spec.State == api.WantRunning {
			continue
		}
		switch c.Daemon.Spec.Type {
		case TypeOSD: // one without data can stop whatever else is down
			id, _ := strconv.Atoi(c.Daemon.Spec.ID)
			if f.ceph.Holds(id) && !f.ceph.Usable(stopped...) {
				t.Fatalf("%s is told to stop, and data cannot be used then (told: %v): %v", c.Daemon.Name, stopped, decisions(p))
			}
		case TypeMon:
			if 2*len(quorum) <= mons {
				t.Fatalf("%s is told to stop, and %v of %d mons are left in quorum", c.Daemon.Name, quorum, mons)
			}
		}
	}
}

// checkNewOSDs: only devices that a StorageNode of the cluster names, and that nothing is on, become OSDs.
func checkNewOSDs(t *rapid.T, before *engine.View, p *engine.Plan) {
	for _, c := range p.Daemons {
		if !c.New || c.Daemon.Spec.Type != TypeOSD {
			continue
		}
		at := c.Daemon.Spec
		named := slices.ContainsFunc(engine.ResolveNodes(before), func(r engine.ResolvedNode) bool {
			return r.Host != nil && r.Host.Name == at.Host && slices.ContainsFunc(r.Devices, func(d engine.ResolvedDevice) bool {
				free := d.Device != nil && (d.Device.Availability == api.DeviceAvailable ||
					d.Device.Ceph != nil && d.Device.Ceph.OSDUUID == at.Parameters[ParamOSDUUID])
				return d.ID == at.Devices[0].ID && d.Problem == "" && free
			})
		})
		if !named {
			t.Fatalf("%s takes device %s of %s, which no StorageNode gives it", c.Daemon.Name, at.Devices[0].ID, at.Host)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawWorld(t)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			before := f.view()
			checkNewOSDs(t, before, roundChecked(t, f))
			if rapid.Bool().Draw(t, "agents act") {
				f.agents()
			}
			if rapid.IntRange(0, 2).Draw(t, "disturbed") == 0 {
				disturb(t, f)
			}
		}
		settleChecked(t, f)
	})
}

// settleChecked lets the world come to rest, and checks that a plan of what a plan has made is empty.
func settleChecked(t *rapid.T, f *fakeWorld) {
	for range 12 {
		f.agents()
		roundChecked(t, f)
		f.now = f.now.Add(recheckSoon)
	}
	for range 2 {
		f.agents()
		if p := roundChecked(t, f); !p.Empty() || len(p.Nodes) > 0 {
			t.Fatalf("the plan of a world at rest is not empty: %v, nodes %v", decisions(p), p.Nodes)
		}
	}
}

// checkUnmoved: no host is moved that Ceph has data on, whatever the driver knows of it.
func checkUnmoved(t *rapid.T, f *fakeWorld, p *engine.Plan) {
	for _, c := range p.Commands {
		for host := range c.Params {
			if c.Verb == verbCrushMove && f.ceph.Weighs(host) {
				t.Fatalf("host %s has data and is moved: %v", host, decisions(p))
			}
		}
	}
}
