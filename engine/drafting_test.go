package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

func TestPlan_Want(t *testing.T) {
	text, now := "x", metav1.NewTime(time.Unix(0, 0))
	spec := api.DaemonSpec{Host: "h1", State: api.WantRunning, Parameters: map[string]string{"a": "1", "b": "1"}, OnRemoval: api.DeletionRetain}
	have := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: spec}
	gone := have.DeepCopy()
	gone.DeletionTimestamp = &now
	changed := func(change func(*api.DaemonSpec)) api.Daemon {
		d := have.DeepCopy()
		change(&d.Spec)
		return *d
	}
	noted := func(state api.WantedState, memory ...string) api.Daemon {
		d := changed(func(s *api.DaemonSpec) { s.State = state })
		for _, name := range memory {
			leadermemory.Set(&d, name, "1")
		}
		return d
	}
	remembers := noted(api.WantRunning, "flaps")
	for _, test := range []struct {
		have *api.Daemon
		want api.Daemon
		said string
	}{
		{&remembers, *remembers.DeepCopy(), ""},
		{have, noted(api.WantRunning, "flaps", "drain"), "Do: the leader's memory of it changes (drain, flaps)"},
		{
			&remembers, noted(api.WantStopped, "drain"),
			"Do: desired state changes from Running to Stopped, the leader's memory of it changes (drain, flaps)",
		},
		{nil, *have, "Do: toy is needed on host h1"},
		{have, *have.DeepCopy(), ""},
		{gone, *have, "Wait: being removed from host h1; created again afterwards"},
		{have, changed(func(s *api.DaemonSpec) { s.State = api.WantStopped }), "Do: desired state changes from Running to Stopped"},
		{have, changed(func(s *api.DaemonSpec) { s.Parameters = map[string]string{"a": "2", "c": ""} }), "Do: its parameters change (a, b, c)"},
		{have, changed(func(s *api.DaemonSpec) { s.StopOrder = 3 }), "Do: its stop order or timeout changes"},
		{have, changed(func(s *api.DaemonSpec) {
			s.Command, s.Devices, s.OnRemoval = []string{"x"}, []api.DaemonDevice{{ID: "x"}}, api.DeletionWipe
			s.Files = []api.DaemonFile{{Sources: []api.FileSource{{Text: &text}}}}
		}), "Do: its command changes (used from its next start), its files change (used from its next start), its devices change, " +
			"its deletionPolicy changes from Retain to Wipe"},
	} {
		p := &Plan{}
		p.Want("daemon/d", "toy", test.have, test.want)
		var said []string
		for _, d := range p.Decisions {
			said = append(said, string(d.Verdict)+": "+d.Message)
		}
		if diff := cmp.Diff(test.said, strings.Join(said, "\n")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if writes := strings.HasPrefix(test.said, "Do"); writes != (len(p.Daemons) == 1) || writes && p.Daemons[0].New != (test.have == nil) {
			t.Errorf("%q: %+v", test.said, p.Daemons)
		}
		if len(p.Daemons) == 1 && !leadermemory.Same(&p.Daemons[0].Daemon, &test.want) {
			t.Errorf("%q: written with the memory %v", test.said, p.Daemons[0].Daemon.Annotations)
		}
	}
}

// What stops to be started again says why, and what else changes of it.
func TestPlan_Restart(t *testing.T) {
	have := &api.Daemon{Spec: api.DaemonSpec{Host: "h1", State: api.WantRunning}}
	for want, change := range map[string]func(*api.DaemonSpec){
		"restart, because of x": func(*api.DaemonSpec) {},
		"restart, because of x, its command changes (used from its next start)": func(s *api.DaemonSpec) { s.Command = []string{"x"} },
	} {
		next := *have.DeepCopy()
		next.Spec.State = api.WantStopped
		change(&next.Spec)
		p := &Plan{}
		p.Restart("daemon/d", have, next, "of x")
		if len(p.Daemons) != 1 || p.Daemons[0].Reason != want || p.Decisions[0].Message != want {
			t.Errorf("%+v %+v; want %q", p.Daemons, p.Decisions, want)
		}
	}
}

// A cluster ends step by step: what becomes of the data is known to all daemons before the first goes.
func TestPlan_End(t *testing.T) {
	v := &View{Cluster: &api.StorageCluster{Spec: api.StorageClusterSpec{Type: "toy", DeletionPolicy: api.DeletionWipe}}}
	for _, name := range []string{"a", "b", "x"} {
		v.Daemons = append(v.Daemons, api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.DaemonSpec{Type: name, OnRemoval: api.DeletionRetain}})
	}
	e := Ending{Object: DaemonObject, Data: func(kind string) bool { return kind != "x" }, Order: []string{"b", "a"}}
	now := metav1.NewTime(time.Unix(0, 0))
	var steps []string
	for range 10 {
		p := &Plan{}
		p.End(v, e)
		for _, c := range p.Daemons {
			v.DaemonsByName()[c.Daemon.Name].Spec = c.Daemon.Spec
			steps = append(steps, fmt.Sprint(c.Daemon.Name, " ", c.Daemon.Spec.OnRemoval))
		}
		for _, r := range p.Remove {
			v.DaemonsByName()[r.Name].DeletionTimestamp = &now
			steps = append(steps, fmt.Sprint("remove ", r.Name, " ", r.Risk))
		}
		if p.Empty() && len(v.Daemons) > 0 {
			v.Daemons = append(v.Daemons[:0:0], without(v.Daemons)...)
		}
		if p.Finished {
			steps = append(steps, "finished")
			break
		}
	}
	want := []string{"a Wipe", "b Wipe", "remove x Redundancy", "remove b Data", "remove a Data", "finished"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// without are the daemons that are not being deleted.
func without(daemons []api.Daemon) (left []api.Daemon) {
	for _, d := range daemons {
		if d.DeletionTimestamp == nil {
			left = append(left, d)
		}
	}
	return left
}

func TestStatusOf(t *testing.T) {
	if s := StatusOf("toy", false, nil, []string{"n"}); s.Status != api.StorageOnline || s.Nodes != 1 || s.Message != "" {
		t.Errorf("%+v", s)
	}
	if s := StatusOf("toy", true, []string{"a", "b", "a"}, nil); s.Status != api.StorageOffline || s.Message != "a" || len(s.Reasons) != 2 {
		t.Errorf("%+v", s)
	}
	many, nodes := []string{strings.Repeat("ä", 1000)}, make([]string, 2000)
	for i := range 100 {
		many = append(many, fmt.Sprint(i))
	}
	s := StatusOf("toy", false, many, nodes)
	if s.Status != api.StorageDegraded || len(s.Reasons) != 64 || s.Reasons[63] != "and 38 more" || len(s.Message) > 1024 || s.Nodes != 1024 {
		t.Errorf("%s %d %q %d", s.Status, len(s.Reasons), s.Reasons[len(s.Reasons)-1], s.Nodes)
	}
}

// A storage system's own words may be longer than the API takes.
func TestPlan_PutResource_cutsMessages(t *testing.T) {
	was := &api.Volume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	next := was.DeepCopy()
	next.Status.Message = strings.Repeat("x", 5000)
	Accept(next, []string{strings.Repeat("y", 5000)}, time.Unix(5, 5))
	var p Plan
	p.PutResource(was, next)
	s := p.Resources[0].Resource.Common()
	c := s.Conditions[0]
	if len(s.Message) > 1024 || len(c.Message) > 1024 || c.Reason != ReasonRefused || c.LastTransitionTime.Nanosecond() != 0 {
		t.Errorf("%d bytes, condition %s of %d bytes at %v", len(s.Message), c.Reason, len(c.Message), c.LastTransitionTime)
	}
}
