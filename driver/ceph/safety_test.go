package ceph

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// TestSafety lets administrators give hosts modes as they like, machines die, agents fall silent and leaders be cut off in the
// middle of their writes, and checks in each round what must hold whatever comes. When everything is well again, so is Ceph.
func TestSafety(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkWell(t, troubled(t, func(*fakeWorld) {}))
	})
}

// troubled is a world in which much went wrong, and which is at rest with everything well again.
// beside is done in each round.
func troubled(t *rapid.T, beside func(*fakeWorld)) *fakeWorld {
	f := drawLargerWorld(t)
	for range rapid.IntRange(5, 30).Draw(t, "rounds") {
		if rapid.IntRange(0, 2).Draw(t, "trouble") == 0 {
			trouble(t, f)
		}
		beside(f)
		if rapid.IntRange(0, 3).Draw(t, "agents act") > 0 {
			f.agents()
		}
		roundSafe(t, f, rapid.IntRange(0, 5).Draw(t, "cut off") == 0)
		f.now = f.now.Add(recheckLater)
	}
	for i := range f.hosts {
		f.powerOn(i + 1)
		f.mode(i+1, api.HostActive)
	}
	for id := range f.ceph.OSDs() {
		f.ceph.Stick(id, false)
		f.ceph.Use(id, 0)
	}
	rest(t, f)
	return f
}

// drawLargerWorld is a cluster at rest, of hosts with two disks each; in some its data is spread over the racks that these are in.
func drawLargerWorld(t *rapid.T) *fakeWorld {
	w := newWorld(rapid.SampledFrom([]int32{1, 3, 3, 5}).Draw(t, "mons"), 2)
	for i := range rapid.IntRange(5, 7).Draw(t, "hosts") {
		w.host(i+1, 2)
		w.node(i+1, "wwn-"+strconv.Itoa(i+1)+"0", "wwn-"+strconv.Itoa(i+1)+"1")
	}
	f := withFake(w)
	racks := rapid.SampledFrom([]int{0, 3, 4}).Draw(t, "racks")
	for i := range f.hosts {
		if racks > 0 {
			f.at(i+1, "rack=r"+strconv.Itoa(i%racks))
		}
	}
	if racks > 0 {
		w.pools = append(w.pools, *replicated("p", 3, rackPool))
		f.ceph.SpreadOver(nil)
	}
	rest(t, f)
	f.fewestMons = f.cluster.Spec.Ceph.Mon.Count
	return f
}

// rest lets things go on until nothing has changed for some rounds: the mgr's report lags behind by some.
func rest(t *rapid.T, f *fakeWorld) {
	for idle := 0; idle < 4; f.now = f.now.Add(recheckLater) {
		f.agents()
		before := f.writes
		roundSafe(t, f, false)
		if idle++; f.writes != before {
			idle = 0
		}
	}
}

// trouble is one thing that people or machines do.
func trouble(t *rapid.T, f *fakeWorld) {
	i := rapid.IntRange(1, len(f.hosts)).Draw(t, "host")
	name := f.hosts[i-1].Name
	switch rapid.SampledFrom([]string{"mode", "mode", "mode", "off", "mute", "back", "back", "time", "stick", "stick", "let go", "mons", "fill", "fill"}).Draw(t, "what") {
	case "mode":
		f.mode(i, rapid.SampledFrom([]api.HostMode{api.HostActive, api.HostMaintenance, api.HostDrain}).Draw(t, "mode"))
	case "off":
		f.powerOff(i, rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Minute, time.Hour}).Draw(t, "since"))
		f.agents() // Ceph notices
	case "mute":
		f.mute[name] = true
		f.silence(i, rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "since"))
	case "back":
		f.powerOn(i)
	case "time":
		f.now = f.now.Add(12 * time.Minute)
	case "stick":
		for disk := range 2 {
			f.ceph.Stick(2*(i-1)+disk, rapid.IntRange(0, 2).Draw(t, "stuck") > 0)
		}
	case "let go": // as the action does that removes a dead host
		for _, key := range slices.Sorted(maps.Keys(f.daemons)) {
			if d := f.daemons[key]; d.Spec.Host == name && f.off[name] && d.DeletionTimestamp != nil {
				delete(f.daemons, key)
			}
		}
	case "fill":
		for disk := range 2 {
			f.ceph.Use(2*(i-1)+disk, int64(rapid.IntRange(0, 70).Draw(t, "percent"))*f.ceph.Size()/100)
		}
	case "mons":
		f.cluster.Spec.Ceph.Mon.Count = rapid.SampledFrom([]int32{1, 3, 5}).Draw(t, "mons")
		f.fewestMons = min(f.fewestMons, f.cluster.Spec.Ceph.Mon.Count)
	}
}

// roundSafe runs one orchestration, or the beginning of one, and checks what it did.
func roundSafe(t *rapid.T, f *fakeWorld, cut bool) {
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	quorum, monmap, busy := f.ceph.Quorum(), f.ceph.Monmap(), f.stopping()
	if cut {
		p = firstWrites(p, rapid.IntRange(0, len(p.Daemons)+len(p.Remove)+len(p.Commands)).Draw(t, "writes"))
	}
	checkPurged(t, f, p)
	checkEmptied(t, f, p)
	checkFits(t, f, p)
	if err := f.apply(t.Context(), v, p); err != nil {
		t.Fatal(err) // Ceph refuses to forget what is not empty, or is up
	}
	checkSafe(t, f)
	checkStops(t, f, v, p)
	checkOneHost(t, f, busy)
	checkOneRack(t, f)
	checkMonmap(t, f, quorum, monmap)
}

// firstWrites is what a leader does of a plan that is killed after so many writes. Daemons that rely on the commands come after these.
func firstWrites(p *engine.Plan, writes int) *engine.Plan {
	part := *p
	relies := func(c engine.DaemonChange) bool { return c.AfterCommands }
	others := slices.DeleteFunc(slices.Clone(p.Daemons), relies)
	relying := slices.DeleteFunc(slices.Clone(p.Daemons), func(c engine.DaemonChange) bool { return !relies(c) })
	part.Daemons = others[:min(writes, len(others))]
	writes -= len(part.Daemons)
	part.Remove = p.Remove[:min(writes, len(p.Remove))]
	writes -= len(part.Remove)
	part.Commands = p.Commands[:min(writes, len(p.Commands))]
	writes -= len(part.Commands)
	part.Daemons = append(part.Daemons, relying[:min(writes, len(relying))]...)
	return &part
}

// checkPurged: nothing is removed that Ceph still counts on.
func checkPurged(t *rapid.T, f *fakeWorld, p *engine.Plan) {
	for _, r := range p.Remove {
		d := f.daemons[r.Name]
		id, err := strconv.Atoi(d.Spec.ID)
		switch {
		case d.Spec.Type == TypeOSD && (err != nil || f.ceph.OSDs()[id] == d.Spec.Parameters[ParamOSDUUID]):
			t.Fatalf("%s is removed, and Ceph knows it (%v)", r.Name, err)
		case d.Spec.Type == TypeMon && slices.Contains(f.ceph.Monmap(), d.Spec.ID):
			t.Fatalf("%s is removed, and is in Ceph's map", r.Name)
		}
	}
}

// checkEmptied: an OSD that leaves for good runs as long as Ceph would miss it.
func checkEmptied(t *rapid.T, f *fakeWorld, p *engine.Plan) {
	for _, c := range p.Daemons {
		have := f.daemons[c.Daemon.Name]
		id, err := strconv.Atoi(c.Daemon.Spec.ID)
		if have == nil || err != nil || have.Spec.Type != TypeOSD || !drains(have) || !drains(&c.Daemon) || told(have) || !told(&c.Daemon) {
			continue
		}
		if f.ceph.OSDs()[id] == have.Spec.Parameters[ParamOSDUUID] && !f.ceph.Safe(id) {
			t.Fatalf("%s leaves, and is told to stop while Ceph would miss it: %v", have.Name, decisions(p))
		}
	}
}

// checkFits: what begins to leave, and all that leaves already, fits on the OSDs that are left.
func checkFits(t *rapid.T, f *fakeWorld, p *engine.Plan) {
	leaving, begins := map[string]bool{}, false
	for _, c := range p.Daemons {
		if have := f.daemons[c.Daemon.Name]; c.Daemon.Spec.Type == TypeOSD && have != nil && drains(&c.Daemon) {
			leaving[have.Name] = true
			begins = begins || !drains(have)
		}
	}
	var used, total int64
	for _, d := range f.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if err != nil || !f.ceph.Up(id) {
			continue
		}
		used += f.ceph.Used(id)
		if !leaving[d.Name] && !drains(d) {
			total += f.ceph.Size()
		}
	}
	if full := 0.9; begins && float64(used) > full*float64(total) {
		t.Fatalf("%v leave, and %d KiB are to fit into %d: %v", slices.Sorted(maps.Keys(leaving)), used, total, decisions(p))
	}
}

// stopping are the hosts with OSDs that hold data, were told to stop, and are still up.
func (f *fakeWorld) stopping() []string {
	var hosts []string
	for _, d := range f.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if err == nil && d.Spec.State == api.WantStopped && f.ceph.Serves(id) {
			hosts = append(hosts, d.Spec.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// checkOneHost: hosts are taken out of service one after the other: none begins while another one is on its way.
func checkOneHost(t *rapid.T, f *fakeWorld, before []string) {
	now := f.stopping()
	begun := slices.DeleteFunc(slices.Clone(now), func(h string) bool { return slices.Contains(before, h) })
	if len(begun) > 1 || len(begun) == 1 && len(now) > 1 {
		t.Fatalf("OSDs with data stop on %v at one time, on %v since this round", now, begun)
	}
}

// checkOneRack: where copies are spread over racks, OSDs with data are told to stop in one of them at most, since two of three copies are needed.
func checkOneRack(t *rapid.T, f *fakeWorld) {
	down := map[string][]string{}
	for _, d := range f.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if rack := f.hosts[slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == d.Spec.Host })].Labels[api.LabelRack]; rack != "" && err == nil &&
			d.Spec.State == api.WantStopped && f.ceph.Holds(id) {
			down[rack] = append(down[rack], d.Name)
		}
	}
	if len(down) > 1 {
		t.Fatalf("OSDs with data are told to stop in several racks: %v", down)
	}
}

// checkMonmap: as long as Ceph has a quorum it keeps it, also when those mons stop that were told to; its map changes by one mon
// at a time, and loses none before there is one more than is wanted.
func checkMonmap(t *rapid.T, f *fakeWorld, quorum, before []string) {
	after := f.ceph.Monmap()
	gone := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return slices.Contains(after, id) })
	if len(gone) == 0 {
		return
	}
	var left []string
	for _, id := range f.ceph.Quorum() {
		if d := f.daemons["c-mon-"+id]; d == nil || d.Spec.State == api.WantRunning {
			left = append(left, id)
		}
	}
	switch {
	case len(gone) > 1:
		t.Fatalf("mons %v leave at one time", gone)
	case 2*len(left) <= len(after):
		t.Fatalf("mon.%s left the map %v with the quorum %v, and of %v only %v are to run", gone[0], before, quorum, after, left)
	case len(after)%2 == 0 && len(after) < int(f.fewestMons):
		t.Fatalf("mon.%s left the map %v, and never fewer than %d were wanted", gone[0], before, f.fewestMons)
	}
}

// checkWell: with all hosts back, everything is there that is wanted.
func checkWell(t *rapid.T, f *fakeWorld) {
	_, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	quorum, monmap := f.ceph.Quorum(), f.ceph.Monmap()
	if !slices.Equal(quorum, monmap) || len(monmap) != int(f.cluster.Spec.Ceph.Mon.Count) {
		t.Errorf("mons %v, in quorum %v, wanted %d: %v", monmap, quorum, f.cluster.Spec.Ceph.Mon.Count, decisions(p))
	}
	if !p.Empty() || !f.ceph.Usable() || len(f.ceph.Noout()) > 0 {
		t.Errorf("all is well, and yet: %v, noout %v, %v", decisions(p), f.ceph.Noout(), p.Status.Reasons)
	}
}

// TestSafety_memoryLost: what the leader noted is lost again and again, as it may be when somebody
// edits the Daemons of a cluster that is only observed. What must hold whatever comes holds, and in
// the end Ceph has the mons that are wanted. Weights are not given back that nobody knows any more.
func TestSafety_memoryLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := troubled(t, func(f *fakeWorld) {
			if rapid.IntRange(0, 1).Draw(t, "lost") == 0 {
				lose(t, f)
			}
		})
		for range f.hosts { // one mon at a time
			endForgotten(t, f)
		}
		quorum, monmap, want := f.ceph.Quorum(), f.ceph.Monmap(), int(f.cluster.Spec.Ceph.Mon.Count)
		if !slices.Equal(quorum, monmap) || len(monmap) != want {
			_, p, _ := f.observed(t.Context())
			t.Errorf("mons %v, in quorum %v, wanted %d: %v", monmap, quorum, want, decisions(p))
		}
	})
}

// endForgotten has mons end that run and that the map has no more, as real ones do, and lets them be
// given up. Where the note is lost that they were in it, they are taken for new ones until then.
func endForgotten(t *rapid.T, f *fakeWorld) {
	for _, d := range f.daemons {
		if d.Spec.Type == TypeMon && !slices.Contains(f.ceph.Monmap(), d.Spec.ID) {
			d.Status.State = api.DaemonFailed
		}
	}
	f.now = f.now.Add(waits.Default().MonJoin)
	roundSafe(t, f, false)
	rest(t, f)
}

// lose has one note be gone, of one daemon or of all.
func lose(t *rapid.T, f *fakeWorld) {
	note := rapid.SampledFrom(allNotes).Draw(t, "note")
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		if rapid.IntRange(0, 2).Draw(t, "of "+name) > 0 {
			leadermemory.Drop(f.daemons[name], string(note))
		}
	}
}
