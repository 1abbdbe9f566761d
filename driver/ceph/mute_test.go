package ceph

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// noQuorum is a connection to mons that have no quorum.
type noQuorum struct{}

func (noQuorum) Mon(context.Context, any, []byte) ([]byte, error) { return nil, rados.ErrNoAnswer }
func (noQuorum) Mgr(context.Context, any, []byte) ([]byte, error) { return nil, rados.ErrNoAnswer }
func (noQuorum) Close() error                                     { return nil }

// alone is a connection to a mon that is out of the quorum: it answers for its own state, and nobody answers what needs the others. It notes how long that
// was waited for.
type alone struct {
	noQuorum
	waited *[]time.Duration
}

func (a alone) Mon(ctx context.Context, cmd any, _ []byte) ([]byte, error) {
	if cmd.(command)["prefix"] == "status" {
		return []byte(`{"fsid": "f", "quorum_names": []}`), nil
	}
	end, _ := ctx.Deadline()
	*a.waited = append(*a.waited, time.Until(end))
	return nil, rados.ErrNoAnswer
}

// monsSay are the decisions on mons of a plan.
func monsSay(p *engine.Plan) (all []string) {
	for _, d := range p.Decisions {
		if strings.HasPrefix(d.Object, "mon.") {
			all = append(all, string(d.Verdict)+" "+d.Object+": "+d.Message)
		}
	}
	return all
}

// When a quorum is lost although the mons run, those are named that do not answer, and what helps; no mon is as wanted.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mute    []string
		change  func(f *fakeWorld)
		message string
		said    []string
	}{
		{"two hang", []string{"b", "c"}, nil, "waiting for 2 of 3 mons to form a quorum: mon.b on h2, mon.c on h3 do not answer", []string{
			"Wait mon.a: it runs and answers, but the mons have no quorum: mon.b on h2, mon.c on h3 do not answer",
			"Wait mon.b: its process runs but does not answer, so it is not in the quorum: restart it with 'holdfast daemon restart c-mon-b --force'",
			"Wait mon.c: its process runs but does not answer, so it is not in the quorum: restart it with 'holdfast daemon restart c-mon-c --force'",
		}},
		{
			"one hangs, one failed",
			[]string{"b"},
			func(f *fakeWorld) { f.daemons["c-mon-c"].Status.State = api.DaemonFailed },
			"waiting for 2 of 3 mons to form a quorum: 2 run; missing: mon.c on h3; mon.b on h2 does not answer",
			[]string{
				"Wait mon.a: it runs and answers, but the mons have no quorum: mon.b on h2 does not answer",
				"Wait mon.b: its process runs but does not answer, so it is not in the quorum: restart it with 'holdfast daemon restart c-mon-b --force'",
			},
		},
		{
			"one of a silent host",
			[]string{"b"},
			func(f *fakeWorld) { f.silence(2, time.Hour) },
			"waiting for 2 of 3 mons to form a quorum: mon.b on h2 does not answer",
			[]string{
				"Wait mon.a: it runs and answers, but the mons have no quorum: mon.b on h2 does not answer",
				"Wait mon.b: it does not answer, and the agent of host h2 is disconnected: check that the machine is on",
				"Wait mon.c: it runs and answers, but the mons have no quorum: mon.b on h2 does not answer",
			},
		},
		{"one just started again", []string{"b"}, func(f *fakeWorld) {
			f.daemons["c-mon-b"].Status.Started = &metav1.MicroTime{Time: f.now.Add(-time.Second)}
		}, "waiting for 2 of 3 mons to form a quorum", []string{
			"Wait mon.a: it runs, but the mons have no quorum: check the network between their hosts, and the clocks; the end of its log: 'holdfast logs c-mon-a'",
			"Wait mon.b: it has just started; the mons have no quorum yet",
			"Wait mon.c: it runs, but the mons have no quorum: check the network between their hosts, and the clocks; the end of its log: 'holdfast logs c-mon-c'",
		}},
		{"none can be reached", []string{"a", "b", "c"}, nil, "waiting for 2 of 3 mons to form a quorum: mon.a on h1, mon.b on h2, mon.c on h3 do not answer", []string{
			"Wait mon.a: no mon answers, although their processes run: check that the leader reaches the network of the mons; if it does, the mons hang: restart it with 'holdfast daemon restart c-mon-a --force'",
			"Wait mon.b: no mon answers, although their processes run: check that the leader reaches the network of the mons; if it does, the mons hang: restart it with 'holdfast daemon restart c-mon-b --force'",
			"Wait mon.c: no mon answers, although their processes run: check that the leader reaches the network of the mons; if it does, the mons hang: restart it with 'holdfast daemon restart c-mon-c --force'",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			for _, d := range f.daemons {
				d.Status.Started = &metav1.MicroTime{Time: f.now.Add(-time.Hour)}
			}
			if tt.change != nil {
				tt.change(f)
			}
			v, _, err := f.observed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v.System = &Observation{Error: "no answer", Mute: tt.mute}
			p := f.planAt(v, f.now)
			if p.Status.Status != api.StorageOffline || p.Status.Message != tt.message {
				t.Errorf("%s: %q, want %q", p.Status.Status, p.Status.Message, tt.message)
			}
			if got := monsSay(p); !slices.Equal(got, tt.said) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.said, "\n"))
			}
		})
	}
}

// Mons are asked one by one when Ceph does not answer, all at one time, and never when it does.
func TestObserve_mute(t *testing.T) {
	f := withFake(threeHosts())
	var asked atomic.Int32
	f.driver.Greet = func(context.Context, string) error {
		asked.Add(1)
		return nil
	}
	f.settle(t)
	asked.Store(0) // while they came up they did not answer
	if _, _, err := f.observed(t.Context()); err != nil || asked.Load() > 0 {
		t.Fatalf("mons of a cluster that answers were asked %d times, %v", asked.Load(), err)
	}
	together := make(chan struct{})
	f.driver = &Driver{
		Dial: func(rados.Config) rados.Client { return noQuorum{} },
		Greet: func(ctx context.Context, address string) error {
			if asked.Add(1) == 3 {
				close(together)
			}
			select {
			case <-together:
			case <-ctx.Done():
				t.Error("they are asked one after the other")
			}
			if address == "10.0.0.1:3300" {
				return nil
			}
			return errors.New("no greeting")
		},
	}
	now := testTime
	f.driver.Now = func() time.Time { return now }
	for range 2 { // the second time nobody is asked again
		if _, _, err := f.observed(t.Context()); err != nil || asked.Load() != 3 {
			t.Fatalf("they were asked %d times, %v", asked.Load(), err)
		}
	}
	now = now.Add(greetAgain)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 6 {
		t.Errorf("they were asked %d times", asked.Load())
	}
	if o := v.System.(*Observation); o.Reachable || !slices.Equal(o.Mute, []string{"b", "c"}) {
		t.Errorf("%+v", o)
	}
}

// An election is waited for once. After that, mons that have no quorum hold up nobody for long, although one of them answers the first question.
func TestObserve_alone(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	var waited []time.Duration
	f.driver = &Driver{FirstAnswer: time.Second, Dial: func(rados.Config) rados.Client { return alone{waited: &waited} }}
	v := f.view()
	c, err := f.driver.connect(t.Context(), v, f)
	if err != nil {
		t.Fatal(err)
	}
	c.answered.Store(true)
	for range 2 {
		if o, err := f.driver.Observe(t.Context(), v, f); err != nil || o.(*Observation).Reachable {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if len(waited) != 2 || waited[0] <= time.Second || waited[1] > time.Second {
		t.Errorf("waited %v, want more than a second, and then no more than that", waited)
	}
}
