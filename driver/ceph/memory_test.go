package ceph

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

var allNotes = []memory.Name{
	memory.MonNewest, memory.MonAvoid, memory.Drain, memory.CrushWeight, memory.WasOut, memory.Flaps,
	memory.HeldSince, memory.LostSince,
}

// forNoAgent are parameters that no agent reads. They say what the daemon's files were made of, and
// change with these. ParamCrushPlaced is not among them: it is written once, when CRUSH is seen to have
// the OSD, which may be between two changes of the rest.
var forNoAgent = []string{ParamConfig, ParamCrushHost, ParamMonHosts}

// specWritten checks of each spec that any test of this package has written that the leader keeps
// nothing of its own in it, and that it is not written for such notes of an earlier version, or for
// parameters that say to the leader what the rest of the spec was made of.
func specWritten(have, want *api.Daemon) error {
	if have == nil {
		have = &api.Daemon{}
	}
	for name, value := range notesIn(want) {
		if old, kept := notesIn(have)[name]; !kept || old != value {
			return fmt.Errorf("the spec of %s is given the leader's note %s=%q", want.Name, name, value)
		}
	}
	was, is := have.DeepCopy(), want.DeepCopy()
	for _, d := range []*api.Daemon{was, is} {
		maps.DeleteFunc(d.Spec.Parameters, func(name, _ string) bool {
			_, note := notesIn(d)[name]
			return note || slices.Contains(forNoAgent, name)
		})
	}
	if was.Spec.Equal(&is.Spec) && !have.Spec.Equal(&want.Spec) {
		return fmt.Errorf("the spec of %s is written for what its agent does not need: %v, was %v",
			want.Name, want.Spec.Parameters, have.Spec.Parameters)
	}
	return nil
}

// notesIn are the notes in the spec of a daemon.
func notesIn(d *api.Daemon) map[string]string {
	notes := map[string]string{}
	for _, name := range allNotes {
		if value, is := d.Spec.Parameters[string(name)]; is && value != memory.Replace {
			notes[string(name)] = value
		}
	}
	return notes
}

// fromSpec has all notes stand in the specs, as versions before 2026-11-26 wrote them.
func (f *fakeWorld) fromSpec() {
	for _, d := range f.daemons {
		for _, name := range allNotes {
			if value, known := leadermemory.Get(d, string(name)); known {
				d.Spec.Parameters[string(name)] = value
				leadermemory.Drop(d, string(name))
			}
		}
	}
}

// hasNoted says whether something is noted under a name of any daemon.
func (f *fakeWorld) hasNoted(name memory.Name) bool {
	for _, d := range f.daemons {
		if memory.Of(d, name) != "" {
			return true
		}
	}
	return false
}

// notesInSpecs are the notes in the specs of all daemons, by the daemons' names.
func (f *fakeWorld) notesInSpecs() map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, d := range f.daemons {
		if notes := notesIn(d); len(notes) > 0 {
			all[name] = notes
		}
	}
	return all
}

// readRecorded are the notes in the specs of the worlds of these tests as Holdfast made them before
// 2026-11-26 (commit 53b063c).
func readRecorded(t *testing.T) (recorded map[string]map[string]map[string]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/notes-in-spec.json")
	if err == nil {
		err = json.Unmarshal(data, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return recorded
}

// rounded lets the world go on for some rounds.
func (f *fakeWorld) rounded(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		f.agents()
		f.round(t)
		f.now = f.now.Add(recheckLater)
	}
}

// noted is a world in which the leader has noted something, and what happens to that world
// afterwards.
type noted struct {
	names []memory.Name
	world func(*testing.T) *fakeWorld
	then  func(*testing.T, *fakeWorld)
	// want is what the leader does then because of the note: a command, or the beginning of a line.
	want string
}

// drained is a world in which osd.3 leaves host h4, as far as is wanted.
func drained(t *testing.T, before func(*fakeWorld), until func(*fakeWorld) bool) *fakeWorld {
	t.Helper()
	f := withFake(fourHosts())
	f.cluster.Spec.Ceph.Mgr.Count = 1
	f.settle(t)
	before(f)
	f.settle(t)
	f.mode(4, api.HostDrain)
	f.until(t, "it is drained so far", func() bool { return until(f) })
	return f
}

// fewerMons is a world with five mons, of which two are to leave.
func fewerMons(t *testing.T) *fakeWorld {
	t.Helper()
	f := fiveHosts()
	f.cluster.Spec.Ceph.Mon.Count = 5
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Count = 3
	return f
}

func notedWorlds() map[string]noted {
	weightless := func(f *fakeWorld) bool { return drains(f.daemons["c-osd-3"]) && f.ceph.Weight(3) == 0 }
	takenBack := func(t *testing.T, f *fakeWorld) { f.mode(4, api.HostActive); f.rounded(t, 12) }
	return map[string]noted{
		"the name of a mon that has left": {
			[]memory.Name{memory.MonNewest},
			func(t *testing.T) *fakeWorld { f := fewerMons(t); f.settle(t); return f },
			func(t *testing.T, f *fakeWorld) { f.cluster.Spec.Ceph.Mon.Count = 5; f.rounded(t, 20) }, "mon.g on",
		},
		"a mon leaves": {
			[]memory.Name{memory.Drain},
			func(t *testing.T) *fakeWorld {
				f := fewerMons(t)
				f.until(t, "a mon leaves", func() bool {
					return slices.ContainsFunc(f.daemonsOf(TypeMon), func(d *api.Daemon) bool {
						return drains(d) && d.DeletionTimestamp == nil
					})
				})
				return f
			},
			func(t *testing.T, f *fakeWorld) { f.rounded(t, 20) }, verbMonRemove,
		},
		"a mon kept failing on a host": {
			[]memory.Name{memory.MonAvoid},
			func(t *testing.T) *fakeWorld {
				f := withFake(fourHosts())
				f.settle(t)
				f.powerOff(1, time.Hour)
				f.broken["c-mon-d"] = true
				f.rounded(t, 10)
				f.now = f.now.Add(waits.Default().MonJoin)
				f.rounded(t, 10)
				return f
			},
			func(t *testing.T, f *fakeWorld) {
				f.rounded(t, 10)
				f.now = f.now.Add(waits.Default().MonAvoid)
				f.rounded(t, 30)
			}, "no new mon on host h4 until",
		},
		"an OSD leaves, and is to stay after all": {
			[]memory.Name{memory.Drain, memory.CrushWeight},
			func(t *testing.T) *fakeWorld {
				return drained(t, func(f *fakeWorld) { f.ceph.Stick(3, true) }, weightless)
			}, takenBack, verbReweight,
		},
		"an OSD leaves that was out": {
			[]memory.Name{memory.Drain, memory.CrushWeight, memory.WasOut},
			func(t *testing.T) *fakeWorld {
				out := func(f *fakeWorld) { f.ceph.Stick(3, true); f.ask(t, "osd out", "ids", []string{"3"}) }
				return drained(t, out, weightless)
			}, takenBack, verbReweight,
		},
		"an OSD is empty": {
			[]memory.Name{memory.Drain, memory.CrushWeight},
			func(t *testing.T) *fakeWorld {
				stopped := func(f *fakeWorld) bool { return f.daemons["c-osd-3"].Status.State == api.DaemonStopped }
				return drained(t, func(*fakeWorld) {}, stopped)
			},
			func(t *testing.T, f *fakeWorld) { f.rounded(t, 12) }, verbOSDPurge,
		},
		"an OSD went down again and again": {
			[]memory.Name{memory.Flaps},
			func(t *testing.T) *fakeWorld {
				f := withFake(twoDisks())
				f.settle(t)
				f.bounce(t, "c-osd-7", flapCount-1, time.Minute)
				return f
			},
			func(t *testing.T, f *fakeWorld) { f.bounce(t, "c-osd-7", 1, 0); f.rounded(t, 5) }, "osd.7 on h4 Stopped",
		},
		"an OSD is held back": {
			[]memory.Name{memory.Flaps, memory.HeldSince},
			func(t *testing.T) *fakeWorld {
				f := withFake(twoDisks())
				f.settle(t)
				f.bounce(t, "c-osd-7", flapCount, time.Minute)
				f.settle(t)
				return f
			},
			func(t *testing.T, f *fakeWorld) {
				f.now = f.now.Add(time.Hour)
				f.rounded(t, 5)
				f.start(f.daemons["c-osd-7"])
				f.now = f.now.Add(time.Minute)
				f.rounded(t, 5)
			}, "held back since 2026-01-02T",
		},
		"a host is lost": {
			[]memory.Name{memory.LostSince},
			func(t *testing.T) *fakeWorld {
				f := withFake(twoDisks())
				f.settle(t)
				f.nodes = f.nodes[:3]
				f.rounded(t, 2)
				return f
			},
			func(t *testing.T, f *fakeWorld) { f.rounded(t, 30) }, verbReweight + " osd.6",
		},
	}
}

// follow returns what happens in a world from now on: each command and removal, and how each daemon
// is wanted and what is noted of it. What the plans say of that is left out where it speaks of spec
// and memory.
func (f *fakeWorld) follow(t *testing.T, then func(*testing.T, *fakeWorld)) (told []string) {
	t.Helper()
	f.specs = map[string]int{}
	f.applied = func(p *engine.Plan) {
		for _, c := range p.Commands {
			told = append(told, c.Verb+" "+c.Object)
		}
		for _, r := range p.Remove {
			told = append(told, "remove "+r.Name)
		}
		told = append(told, decisions(p, api.VerdictWait, api.VerdictSkip, api.VerdictRefuse)...)
		for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
			d := f.daemons[name]
			line := fmt.Sprintln(label(d), "on", d.Spec.Host, d.Spec.State, d.Spec.OnRemoval,
				d.Spec.Parameters[ParamMonmap], d.DeletionTimestamp != nil)
			for _, note := range allNotes {
				line += fmt.Sprintln("", note, memory.Of(d, note))
			}
			told = append(told, line)
		}
	}
	then(t, f)
	for _, name := range slices.Sorted(maps.Keys(f.specs)) {
		told = append(told, fmt.Sprintln("spec of", name, "written", f.specs[name]))
	}
	return told
}

// TestMemory_takenOver: a cluster of which an earlier version made its notes in the specs is taken
// over as it is. All goes on as if the notes were made by this version, and no spec is written once
// more.
func TestMemory_takenOver(t *testing.T) {
	recorded := readRecorded(t)
	for name, x := range notedWorlds() {
		t.Run(name, func(t *testing.T) {
			now, old := x.world(t), x.world(t)
			for _, note := range x.names {
				if !old.hasNoted(note) {
					t.Fatalf("nothing is noted as %s", note)
				}
			}
			old.fromSpec()
			if diff := cmp.Diff(recorded[name], old.notesInSpecs()); diff != "" {
				t.Fatalf("an earlier version made other notes (-it +this test):\n%s", diff)
			}
			want := now.follow(t, x.then)
			if !contains(want, x.want) {
				t.Errorf("there is no %q: the note does nothing in this test", x.want)
			}
			if diff := cmp.Diff(want, old.follow(t, x.then)); diff != "" {
				t.Errorf("a cluster that was taken over goes on otherwise (-own +taken over):\n%s", diff)
			}
		})
	}
}

// TestMemory_atRest: of a cluster at rest that is taken over nothing is written.
func TestMemory_atRest(t *testing.T) {
	f := fewerMons(t)
	f.settle(t)
	f.bounce(t, "c-osd-2", 1, time.Minute)
	f.settle(t)
	f.fromSpec()
	before := f.writes
	if f.rounded(t, 4); f.writes != before {
		t.Errorf("%d things were written: %v", f.writes-before, decisions(f.plan()))
	}
}

// TestMemory_specStays: what is noted changes no spec, whatever it is.
func TestMemory_specStays(t *testing.T) {
	flaps := func(t *testing.T, f *fakeWorld) { f.bounce(t, "c-osd-7", 3, time.Minute) }
	lost := func(t *testing.T, f *fakeWorld) { f.nodes = f.nodes[:3]; f.rounded(t, 1) }
	leaves := func(t *testing.T, f *fakeWorld) { f.withdraw(); f.ceph.Stick(7, true); f.rounded(t, 4) }
	out := func(t *testing.T, f *fakeWorld) { f.ask(t, "osd out", "ids", []string{"7"}); leaves(t, f) }
	for name, x := range map[string]struct {
		then func(*testing.T, *fakeWorld)
		note memory.Name
	}{
		"an OSD comes back":  {flaps, memory.Flaps},
		"a node is gone":     {lost, memory.LostSince},
		"a drain begins":     {leaves, memory.Drain},
		"a weight is noted":  {leaves, memory.CrushWeight},
		"it was out already": {out, memory.WasOut},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			f.specs = map[string]int{}
			x.then(t, f)
			if d := f.daemons["c-osd-7"]; memory.Of(d, x.note) == "" || len(f.specs) > 0 {
				t.Errorf("memory %v, and specs were written of %v", d.Annotations, f.specs)
			}
		})
	}
}

// forgetting is what a person may do to a cluster that is only observed: notes are gone.
func (f *fakeWorld) forgetting(names ...memory.Name) {
	for _, d := range f.daemons {
		for _, name := range names {
			leadermemory.Drop(d, string(name))
		}
	}
}

// TestMemory_lost: a note that is lost costs no data, and Ceph its quorum neither: the Ceph of
// these tests refuses to forget an OSD that it would miss, and a round fails then. docs/decisions
// says what it does cost.
func TestMemory_lost(t *testing.T) {
	for name, x := range notedWorlds() {
		t.Run(name, func(t *testing.T) {
			f := x.world(t)
			f.forgetting(x.names...)
			f.applied = func(p *engine.Plan) {
				if len(f.ceph.Quorum()) == 0 {
					t.Fatalf("there is no quorum after %v", decisions(p))
				}
			}
			x.then(t, f)
		})
	}
}
