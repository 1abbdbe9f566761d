package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// upheaval changes everything that events tell of, step by step; after each step the cluster is looked at once.
var upheaval = []struct {
	what string
	do   func(l *lab, ctx context.Context) error
}{
	{"nothing", func(*lab, context.Context) error { return nil }},
	{"a disk is pulled", func(l *lab, ctx context.Context) error { return l.RemoveDisk(ctx, "h1", "disk-1") }},
	{"an agent falls silent", func(l *lab, ctx context.Context) error { return l.SilenceAgent(ctx, "h2", true) }},
	{"a disk moves", func(l *lab, ctx context.Context) error {
		return l.ChangeHost(ctx, "h3", func(s *api.HostStatus) { s.Devices[0].Path = "/dev/sdx" })
	}},
	{"agent reconnected", func(l *lab, ctx context.Context) error { return l.SilenceAgent(ctx, "h2", false) }},
	{"a daemon ends", func(l *lab, ctx context.Context) error {
		return l.changeDaemon(ctx, "t-toy-n2", func(s *api.DaemonStatus) {
			s.State, s.LastExit, s.Restarts = api.DaemonBackOff, &api.DaemonExit{Reason: "exit code 1"}, s.Restarts+1
		})
	}},
	{"it runs again", func(l *lab, ctx context.Context) error {
		return l.changeDaemon(ctx, "t-toy-n2", func(s *api.DaemonStatus) { s.State = api.DaemonRunning })
	}},
	{"a node is added", func(l *lab, ctx context.Context) error { return l.Create(ctx, toyNode("n9", "h3")) }},
	{"a node is removed", func(l *lab, ctx context.Context) error { return l.Delete(ctx, toyNode("n3", "h3")) }},
	{"the spec is changed", func(l *lab, ctx context.Context) error {
		c := l.cluster()
		c.Spec.Interval.Duration = time.Minute
		return l.Update(ctx, c)
	}},
	{"a volume is declared", func(l *lab, ctx context.Context) error { return l.Create(ctx, volumeOf("v")) }},
	{"it is looked at again", func(l *lab, ctx context.Context) error { return l.Tick(ctx) }},
	{"its spec is changed", func(l *lab, ctx context.Context) error {
		v := volumeOf("v")
		if err := l.Get(ctx, v); err != nil {
			return err
		}
		v.Spec.Size = resource.MustParse("2Gi")
		return l.Update(ctx, v)
	}},
	{"it cannot be made", func(l *lab, ctx context.Context) error {
		v := volumeOf("v")
		if err := l.Get(ctx, v); err != nil {
			return err
		}
		v.Status.Conditions = []metav1.Condition{{Type: api.ResourceAccepted, Status: metav1.ConditionFalse, Message: "too\tlarge"}}
		return l.UpdateStatus(ctx, v)
	}},
	{"it is deleted", func(l *lab, ctx context.Context) error { return l.Delete(ctx, volumeOf("v")) }},
	{"it is looked at again", func(l *lab, ctx context.Context) error { return l.Tick(ctx) }},
	{"and again", func(l *lab, ctx context.Context) error { return l.Tick(ctx) }},
	{"an action is asked for", func(l *lab, ctx context.Context) error { return l.Create(ctx, actionOn("h1")) }},
	{"it runs", func(l *lab, ctx context.Context) error { return l.moveAction(ctx, api.ActionRunning) }},
	{"one is asked for on a host that is not used", func(l *lab, ctx context.Context) error { return l.Create(ctx, actionOn("h9")) }},
	{"it is done", func(l *lab, ctx context.Context) error { return l.moveAction(ctx, api.ActionDone) }},
	{"it is looked at again", func(l *lab, ctx context.Context) error { return l.Tick(ctx) }},
	{"the action is removed", func(l *lab, ctx context.Context) error { return l.Delete(ctx, actionOn("h1")) }},
	{"it is asked for anew", func(l *lab, ctx context.Context) error { return l.Create(ctx, actionOn("h1")) }},
	{"the mode is changed", func(l *lab, ctx context.Context) error {
		c := l.cluster()
		c.Spec.Mode = api.ClusterObserved
		return l.Update(ctx, c)
	}},
	{"the cluster is deleted", func(l *lab, ctx context.Context) error { return l.Delete(ctx, l.cluster()) }},
}

func volumeOf(name string) *api.Volume {
	return &api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: api.VolumeSpec{Cluster: "t", Size: resource.MustParse("1Gi")}}
}

func actionOn(host string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "on-" + host}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/" + host, Host: host},
	}
}

// moveAction gives the action on h1 a state.
func (l *lab) moveAction(ctx context.Context, to api.ActionState) error {
	a := actionOn("h1")
	if err := l.Get(ctx, a); err != nil {
		return err
	}
	a.Status.State = to
	return l.UpdateStatus(ctx, a)
}

func (l *lab) changeDaemon(ctx context.Context, name string, change func(*api.DaemonStatus)) error {
	d := &api.Daemon{}
	d.Namespace, d.Name = "default", name
	if err := l.Get(ctx, d); err != nil {
		return err
	}
	change(&d.Status)
	return l.UpdateStatus(ctx, d)
}

// TestTold_leadersTellWhatOneWould: with another leader for each single run, the events are those that one leader tells.
func TestTold_leadersTellWhatOneWould(t *testing.T) {
	one := toldBy(t, func(int) bool { return false })
	if n := len(one); n < 20 {
		t.Fatalf("only %d events", n)
	}
	each := toldBy(t, func(int) bool { return true })
	if diff := cmp.Diff(one, each); diff != "" {
		t.Errorf("one leader and many (-one +many):\n%s", diff)
	}
}

// toldBy returns the events of the upheaval, with a new leader before those steps that change says.
func toldBy(t *testing.T, change func(step int) bool) (told []string) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		for i, step := range upheaval {
			time.Sleep(time.Second)
			if err := step.do(l, t.Context()); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			for range 3 {
				if change(i) {
					l.orch = &engine.Orchestrator{Store: l.Memory, Driver: l.toy, Leader: l.orch.Leader + "x", Log: l.orch.Log}
				}
				if _, err := l.refresh(); err != nil {
					t.Fatalf("%s: %v", step.what, err)
				}
			}
		}
		for _, line := range l.events() {
			if !strings.HasPrefix(line, "LEADER_CHANGED") {
				told = append(told, line)
			}
		}
	})
	return told
}

// TestTold_notKnown: what cannot be compared is not told, and not lost.
func TestTold_notKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		events := len(l.events())
		l.orch = &engine.Orchestrator{Store: l.Memory, Driver: l.toy, Leader: "s1", Log: l.orch.Log}
		l.must(l.RemoveDisk(t.Context(), "h1", "disk-1"))
		l.Fail = func(op, _ string) error { return failOn(op, "Told") }
		if _, err := l.refresh(); err == nil || !strings.Contains(err.Error(), "while reading the event journal") {
			t.Errorf("error = %v", err)
		}
		if n := len(l.events()) - events; n != 0 {
			t.Errorf("%d events were told without knowing what was told before", n)
		}
		l.Fail = nil
		_, err := l.refresh()
		l.must(err)
		if lines := strings.Join(l.events()[events:], "\n"); strings.Count(lines, "DEVICE_GONE host/h1/disk-1") != 1 {
			t.Errorf("events:\n%s", lines)
		}
	})
}

// TestTellStuck: what is wrong with an action on a host is told to the clusters that use the host, and to no other.
func TestTellStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.settle()
		before := len(l.events())
		for _, a := range []*api.Action{
			{ObjectMeta: metav1.ObjectMeta{Name: "on-host"}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/h1", Host: "h1"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/h9", Host: "h9"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "another-cluster's"}, Spec: api.ActionSpec{Kind: "x", Target: "x", Cluster: "t"}},
		} {
			if err := engine.TellStuck(t.Context(), l.Memory, a, errors.New("too long"), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		all, err := l.Events(t.Context(), toyKey)
		l.must(err)
		want := "host.drain of host/h1 is stuck; Holdfast retries it: too long"
		if told := l.events()[before:]; !slices.Equal(told, []string{"ACTION_STUCK action/on-host"}) || all[len(all)-1].Message != want {
			t.Errorf("told %q, %q", told, all[len(all)-1].Message)
		}
	})
}
