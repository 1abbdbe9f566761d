package ceph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// ruin is a cluster whose mons are lost, as a store: what its agents find is told beforehand.
type ruin struct {
	engine.Store
	*fakeWorld
	action *api.Action
	stores map[string]monstore.State // by mon
	newest map[string]string         // by OSD
	asked  []string
}

var whole = monstore.State{Joined: true, Version: 40}

// newRuin has lost the stores of all mons but some.
func newRuin(t *testing.T, w *world, params map[string]api.ActionParameter, left map[string]monstore.State) *ruin {
	r := &ruin{fakeWorld: withFake(w), stores: left, newest: map[string]string{"osd.0": "7", "osd.1": "9", "osd.2": "9", "osd.3": "10"}}
	r.settle(t)
	for _, id := range []string{"a", "b", "c"} {
		if !left[id].Whole() {
			r.broken["c-mon-"+id] = true
		}
	}
	r.agents()
	r.action = &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "recover", UID: "token"},
		Spec:       api.ActionSpec{Kind: RecoverKind, Cluster: "c", Target: "storagecluster/c", Parameters: params},
		Status:     api.ActionStatus{State: api.ActionRunning},
	}
	for _, name := range (Recoverer{}).Kind().Steps {
		r.action.Status.Steps = append(r.action.Status.Steps, api.ActionStep{Name: name, State: api.StepPending})
	}
	return r
}

// View implements engine.Store.
func (r *ruin) View(context.Context, types.NamespacedName) (*engine.View, error) {
	v := r.view()
	v.Actions = []api.Action{*r.action}
	return v, nil
}

// Secrets implements engine.Store.
func (r *ruin) Secrets(types.NamespacedName) engine.SecretReader { return r.world }

// PutDaemon implements engine.Store.
func (r *ruin) PutDaemon(_ context.Context, _ *api.StorageCluster, change engine.DaemonChange) error {
	if err := specWritten(r.daemons[change.Daemon.Name], &change.Daemon); err != nil {
		return err
	}
	r.daemons[change.Daemon.Name] = change.Daemon.DeepCopy()
	return nil
}

// RemoveDaemon implements engine.Store.
func (r *ruin) RemoveDaemon(_ context.Context, _, name string) error {
	delete(r.daemons, name)
	return nil
}

// Ask implements engine.Store: it answers as the agents would.
func (r *ruin) Ask(_ context.Context, d *api.Daemon, cmd engine.Command) (string, error) {
	if d.Status.State != api.DaemonStopped {
		return "", errors.New(d.Name + " is not stopped")
	}
	switch cmd.Verb {
	case monstore.VerbLook:
		return r.stores[d.Spec.ID].Encode(), nil
	case monstore.VerbNewest:
		if r.newest[label(d)] == "" {
			return "", errors.New("its disk is broken")
		}
		return r.newest[label(d)], nil
	}
	r.asked = append(r.asked, label(d)+" gives to "+cmd.Params[monstore.ParamMon])
	return "given", nil
}

// work is what agents and Ceph do about what a step wrote.
func (r *ruin) work() {
	for _, d := range r.daemonsOf(TypeMon) {
		if o, err := monstore.ParseOrder(d.Spec.Parameters[monstore.ParamRecover]); err == nil && d.Spec.State == api.WantPrepared && o.Way != monstore.Back {
			r.ceph.SetMonmap(d.Spec.ID)
			delete(r.broken, d.Name)
		}
	}
	r.agents()
}

// step carries on one step until it is done, each time by a leader that knows nothing, and has it done once more.
func (r *ruin) step(t *testing.T, s *api.ActionStep) error {
	t.Helper()
	s.State = api.StepRunning
	for n := 0; ; n++ {
		if x := (Recoverer{r, r.driver}); n > 40 {
			t.Fatalf("step %s does not end: %+v", s.Name, s)
		} else if p, err := x.Step(t.Context(), r.action, s.Name); errors.Is(err, action.ErrRefused) {
			return err
		} else if err != nil || p.Done {
			t.Logf("%s: %s %v", s.Name, p.Message, err)
			if p.Done && s.Message == "" {
				s.Message = "done once"
				continue
			}
			if p.Done {
				s.State = api.StepDone
				return nil
			}
		}
		r.work()
		r.roundBeside(t)
	}
}

// roundBeside is an orchestration while the action is under way.
func (r *ruin) roundBeside(t *testing.T) {
	t.Helper()
	v, err := r.View(t.Context(), types.NamespacedName{})
	if err != nil {
		t.Fatal(err)
	}
	v.System, _ = r.driver.Observe(t.Context(), v, r.world)
	if err := r.apply(t.Context(), v, r.planAt(v, r.now)); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Second)
}

func (r *ruin) recover(t *testing.T) error {
	t.Helper()
	for i := range r.action.Status.Steps {
		if err := r.step(t, &r.action.Status.Steps[i]); err != nil {
			return err
		}
	}
	r.action.Status.State = api.ActionDone
	return nil
}

var fromOSDs = map[string]api.ActionParameter{RecoverFrom: "osds"}

func TestRecover(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]api.ActionParameter
		left   map[string]monstore.State
		change func(*ruin)
		mons   []string
		asked  []string
	}{
		"the survivor": {nil, map[string]monstore.State{"c": whole}, nil, []string{"c@h3", "d@h1", "e@h2"}, nil},
		"the one that knows the most": {
			map[string]api.ActionParameter{RecoverForce: hosts.Yes},
			map[string]monstore.State{"a": whole, "b": {Joined: true, Version: 50}},
			func(r *ruin) { r.broken["c-mon-a"] = true; r.agents() },
			[]string{"b@h2", "d@h1", "e@h3"},
			nil,
		},
		"none that is half copied": {nil, map[string]monstore.State{"a": whole, "b": {Joined: true, Syncing: true, Version: 50}}, nil, []string{"a@h1", "d@h2", "e@h3"}, nil},
		"the OSDs":                 {fromOSDs, nil, nil, []string{"b@h2", "d@h1", "e@h3"}, []string{"osd.1 gives to default.c-mon-b"}},
		"the OSDs that can be asked": {
			map[string]api.ActionParameter{RecoverFrom: "osds", RecoverForce: hosts.Yes},
			nil,
			func(r *ruin) { delete(r.newest, "osd.1") },
			[]string{"c@h3", "d@h1", "e@h2"},
			[]string{"osd.2 gives to default.c-mon-c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuin(t, threeHosts(), tt.params, tt.left)
			if tt.change != nil {
				tt.change(r)
			}
			if err := (Recoverer{r, r.driver}).Check(t.Context(), r.action); err != nil {
				t.Fatal(err)
			}
			if err := r.recover(t); err != nil {
				t.Fatal(err)
			}
			r.checkMons(t, tt.mons...)
			if diff := cmp.Diff(tt.asked, slices.Compact(r.asked)); diff != "" {
				t.Errorf("whom OSDs gave their maps (-want +got):\n%s", diff)
			}
			for _, d := range r.daemons {
				if d.Spec.State != api.WantRunning {
					t.Errorf("%s is wanted %s", d.Name, d.Spec.State)
				}
			}
		})
	}
}

// TestRecover_takenOver: what an earlier version noted in the specs is known after the mons were
// recovered, and stands in none of theirs any more.
func TestRecover_takenOver(t *testing.T) {
	r := newRuin(t, threeHosts(), nil, map[string]monstore.State{"c": whole})
	r.fromSpec()
	if err := r.recover(t); err != nil {
		t.Fatal(err)
	}
	r.checkMons(t, "c@h3", "d@h1", "e@h2")
	for _, d := range r.daemonsOf(TypeMon) {
		if newest := memory.Of(d, memory.MonNewest); newest != "e" || len(notesIn(d)) > 0 {
			t.Errorf("of %s mon.%s is noted as the newest; its spec has %v", d.Name, newest, notesIn(d))
		}
	}
}

// What works on OSDs stops with them, and is started again in the end.
func TestRecover_services(t *testing.T) {
	w := threeHosts()
	w.filesystems, w.objects = append(w.filesystems, filesystemOf("home")), append(w.objects, storeOf("s3"))
	r := newRuin(t, w, fromOSDs, nil)
	serving := func() (running, all int) {
		for _, d := range r.daemons {
			if slices.Contains(servingTypes, d.Spec.Type) {
				if all++; d.Status.State == api.DaemonRunning {
					running++
				}
			}
		}
		return running, all
	}
	if err := r.step(t, &r.action.Status.Steps[0]); err != nil {
		t.Fatal(err)
	}
	if running, all := serving(); running > 0 || all != 4 {
		t.Errorf("%d of %d run while OSDs are read", running, all)
	}
	if err := r.recover(t); err != nil {
		t.Fatal(err)
	}
	r.action.Status.State = api.ActionDone
	r.settle(t)
	if running, all := serving(); running != all || all != 4 {
		t.Errorf("%d of %d run in the end", running, all)
	}
}

// Where the OSD with the newest map has no mon beside it, one is made there.
func TestRecover_onAnotherHost(t *testing.T) {
	r := newRuin(t, fourHosts(), fromOSDs, nil)
	if err := r.recover(t); err != nil {
		t.Fatal(err)
	}
	r.checkMons(t, "d@h4", "e@h1", "f@h2")
	if want := []string{"osd.3 gives to default.c-mon-d"}; !slices.Equal(slices.Compact(r.asked), want) {
		t.Errorf("%q, want %q", r.asked, want)
	}
}

// What can still be a quorum, or may know more than what is left, is not given up.
func TestRecover_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		params map[string]api.ActionParameter
		left   map[string]monstore.State
		change func(*ruin)
		want   string
	}{
		"a quorum answers":          {nil, map[string]monstore.State{"a": whole, "b": whole}, nil, "the mons answer: a, b form a quorum"},
		"a majority is whole":       {nil, map[string]monstore.State{"a": whole, "b": whole}, func(r *ruin) { r.broken["c-mon-a"] = true; r.agents() }, "2 of 3 mons have a whole store"},
		"nothing is whole":          {nil, nil, nil, "with --from osds"},
		"a mon is whole":            {fromOSDs, map[string]monstore.State{"a": whole}, nil, "the store of mon.a on host h1 is whole"},
		"a host is silent":          {nil, map[string]monstore.State{"a": whole}, func(r *ruin) { r.powerOff(2, time.Hour) }, "the agents of h2 are disconnected"},
		"a host that is there":      {map[string]api.ActionParameter{RecoverLost: "h2"}, map[string]monstore.State{"a": whole}, nil, "host h2 is not lost"},
		"from somewhere else":       {map[string]api.ActionParameter{RecoverFrom: "memory"}, nil, nil, `not from "memory"`},
		"the cluster is observed":   {nil, nil, func(r *ruin) { r.cluster.Spec.Mode = api.ClusterObserved }, "set it to Active"},
		"the cluster is to be gone": {nil, nil, func(r *ruin) { r.cluster.DeletionTimestamp = &metav1.Time{} }, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuin(t, threeHosts(), tt.params, tt.left)
			if tt.change != nil {
				tt.change(r)
			}
			x := Recoverer{r, r.driver}
			err := x.Check(t.Context(), r.action)
			if err == nil {
				err = r.recover(t)
			}
			if !errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// One that is cancelled before the new mon serves leaves all as it was: the stores are put back, and the plans start the daemons again.
func TestRecover_undone(t *testing.T) {
	r := newRuin(t, threeHosts(), fromOSDs, nil)
	x, steps := Recoverer{r, r.driver}, r.action.Status.Steps
	members := monset.Of(r.view().Daemons)
	for i := range 3 {
		if err := r.step(t, &steps[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := 2; i >= 0; i-- {
		steps[i].State = api.StepUndoing
		for done := false; !done; r.work() {
			p, err := x.Undo(t.Context(), r.action, steps[i].Name)
			if err != nil {
				t.Fatal(err)
			}
			done = p.Done
		}
	}
	if got := r.daemons["c-mon-b"].Spec.Parameters[monstore.ParamRecover]; got != "token back" {
		t.Errorf("the order in mon.b's Daemon: %q", got)
	}
	r.action.Status.State = api.ActionCancelled
	r.roundBeside(t)
	if diff := cmp.Diff(members, monset.Of(r.view().Daemons)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	for _, name := range slices.Sorted(maps.Keys(r.daemons)) {
		if d := r.daemons[name]; d.Spec.State != api.WantRunning || d.Spec.Parameters[monstore.ParamRecover] != "" {
			t.Errorf("%s is wanted %s, %v", name, d.Spec.State, d.Spec.Parameters)
		}
	}
}

// TestRecoverWords: the dry run on a cluster whose mons answer names nothing to confirm. What the
// leader saw last is not taken for an answer once it is stale, or while the leader fails before it
// asks.
func TestRecoverWords(t *testing.T) {
	r := newRuin(t, threeHosts(), nil, nil)
	view, err := r.View(t.Context(), types.NamespacedName{Namespace: r.action.Namespace, Name: r.action.Spec.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	answers := func() *api.StorageStatus {
		s := &api.StorageStatus{}
		s.Status.Health, s.Status.Ceph = "HEALTH_OK", &api.CephStatus{Quorum: []string{"a", "b"}}
		return s
	}
	view.Cluster.Status.Report = &api.OrchestrationReport{Outcome: api.OutcomeUnchanged}
	view.Status = answers()
	if lines, err := Words(view, r.action.Spec); !errors.Is(err, action.ErrRefused) || len(lines) > 0 {
		t.Errorf("the mons answer: %v, %v", lines, err)
	}
	view.Status.Status.StaleSince = &metav1.Time{Time: time.Now()}
	if _, err := Words(view, r.action.Spec); err != nil {
		t.Errorf("they answer no longer: %v", err)
	}
	view.Status = answers()
	view.Cluster.Status.Report.Outcome = api.OutcomeFailed
	if _, err := Words(view, r.action.Spec); err != nil {
		t.Errorf("the leader fails: %v", err)
	}
}
