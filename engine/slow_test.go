package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestRun_hungClustersDelayNobody: one cluster that hangs stalled the loop for all in Rook (rook.md E3, #11330), and one dead
// node made orchestration endless (rook.md A5.1). Here more clusters hang than there are places, and a change of another is
// acted on at once all the same.
func TestRun_hungClustersDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = func(ctx context.Context, e *engine.RefreshEvent) error {
			if e.Cluster.Name != "t" {
				select { // a storage system that does not answer
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
			}
			return nil
		}
		for i := range 12 {
			l.must(l.Create(t.Context(), toyCluster(fmt.Sprintf("hung%d", i))))
		}
		_, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(20 * time.Second) // from now on it is known who is slow
		for i := range 100 {
			before := r.countOf("t")
			l.must(l.Create(t.Context(), toyNodeOf(fmt.Sprintf("m%d", i), "t")))
			time.Sleep(100 * time.Millisecond)
			if r.countOf("t") == before {
				t.Fatalf("change %d was not acted on within 100 ms", i)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

func (r *recorder) countOf(cluster string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.calls {
		if strings.HasPrefix(c, cluster+":") {
			n++
		}
	}
	return n
}

// TestRun_placingThatHangs: a cluster whose daemons cannot be written holds up neither one on other hosts nor, for longer than
// a bounded while, one on the same.
func TestRun_placingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		hang := make(chan struct{})
		l.Fail = func(operation, object string) error {
			if operation == "PutDaemon" && strings.HasPrefix(object, "t-") {
				<-hang
				return errors.New("the connection broke")
			}
			return nil
		}
		r := &recorder{do: l.orch.HandleRefresh}
		_, stop := runScheduler(t, l, r) // "t" is placing daemons on h1, h2 and h3, and hangs
		defer stop()
		defer close(hang)
		l.must(l.AddHost(t.Context(), "h4", []string{"disk-4"}))
		for name, host := range map[string]string{"apart": "h4", "same": "h1"} {
			l.must(l.Create(t.Context(), toyCluster(name)))
			node := toyNode("node-"+name, host)
			node.Spec.Cluster = name
			l.must(l.Create(t.Context(), node))
		}
		l.must(l.Run(t.Context(), 100*time.Millisecond, 5*time.Second))
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "apart-toy-node-apart"}}
		l.must(l.Get(t.Context(), d))
		if d.Status.State != api.DaemonRunning {
			t.Errorf("the daemon on another host is %q", d.Status.State)
		}
		time.Sleep(10 * time.Second)
		c, err := l.Cluster(t.Context(), types.NamespacedName{Namespace: "default", Name: "same"})
		l.must(err)
		if r := c.Status.Report; r == nil || !strings.Contains(r.Error, "waiting to place daemons on h1") {
			t.Errorf("the report of the one on the same host: %+v", r)
		}
	})
}

// TestRun_timeIsMovedWhateverBecomesOfTheWork: the expected next orchestration is moved before the work, so that a cluster that
// cannot be worked on does not spin the loop (Replicante's rule), and a panic ends one run, not the leader.
func TestRun_timeIsMovedWhateverBecomesOfTheWork(t *testing.T) {
	for name, do := range map[string]func(context.Context, *engine.RefreshEvent) error{
		"error":  func(context.Context, *engine.RefreshEvent) error { return errors.New("no luck") },
		"locked": func(context.Context, *engine.RefreshEvent) error { return engine.ErrLocked },
		"panic":  func(context.Context, *engine.RefreshEvent) error { panic("boom") },
		"hangs": func(ctx context.Context, _ *engine.RefreshEvent) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t), &recorder{do: do}
				_, stop := runScheduler(t, l, r)
				time.Sleep(time.Second / 2)
				next := l.cluster().Status.NextOrchestration
				if next == nil || next.Sub(r.begin) != 10*time.Second {
					t.Errorf("expected next orchestration %v, begun %v", next, r.begin)
				}
				time.Sleep(time.Minute)
				if n := len(r.times()); n > 62 || name == "hangs" && n != 1 {
					t.Errorf("%d runs in a minute", n)
				}
				stop()
			})
		})
	}
}

// TestRun_timeThatCannotBeWritten: the expected next orchestration is kept in memory, too, so that a store that refuses it neither keeps the
// work from being done nor makes it spin. Once it can be written it is, by the next run that is due.
func TestRun_timeThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		var tries []time.Duration
		l.Fail = func(op, _ string) error {
			if op != "PutClusterStatus" {
				return nil
			}
			tries = append(tries, time.Since(r.begin))
			if time.Since(r.begin) < 25*time.Second {
				return errors.New("no luck")
			}
			return nil
		}
		_, stop := runScheduler(t, l, r)
		time.Sleep(25 * time.Second)
		if next := l.cluster().Status.NextOrchestration; next != nil {
			t.Errorf("%v was written", next)
		}
		time.Sleep(10 * time.Second)
		stop()
		want := fmt.Sprint([]time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second})
		if got := fmt.Sprint(r.times()); got != want {
			t.Errorf("runs at %v, want %v", got, want)
		}
		if got := fmt.Sprint(tries); got != want {
			t.Errorf("the time was to be written at %v, want %v", got, want)
		}
		if next := l.cluster().Status.NextOrchestration; next == nil || next.Sub(r.begin) != 40*time.Second {
			t.Errorf("expected next orchestration %v, begun %v", next, r.begin)
		}
	})
}

// TestRun_statusThatCannotBeWritten: nothing of the cluster's own status can be written, neither the time of the next orchestration nor the
// report. The work is done all the same, the run counts as failed, and is tried again after pauses.
func TestRun_statusThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		refused := 0
		l.Fail = func(op, _ string) error {
			if err := failOn(op, "PutClusterStatus"); err != nil {
				refused++
				return err
			}
			return nil
		}
		r.do = l.orch.HandleRefresh
		stats, stop := runScheduler(t, l, r)
		l.must(l.Run(t.Context(), time.Second, 10*time.Minute))
		stop()
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t-toy-n1"}}
		l.must(l.Get(t.Context(), d))
		if d.Status.State != api.DaemonRunning {
			t.Errorf("daemon %s is %q", d.Name, d.Status.State)
		}
		// A run each interval, and back-off to a minute between them: the pauses are at least half of it.
		runs := len(r.times())
		if most := 30; runs < 10 || runs > most || stats.Failed.Load() != int64(runs) {
			t.Errorf("%d runs in ten minutes, of which %d failed; want 10 to %d, and all", runs, stats.Failed.Load(), most)
		}
		if refused < runs || refused > 3*runs {
			t.Errorf("%d writes were tried in %d runs", refused, runs)
		}
	})
}

// TestRun_overdueClustersAreSpread: nobody led for a while, and the expected orchestrations of all clusters have passed. They
// run at once, and then not in step for ever.
func TestRun_overdueClustersAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		past := metav1.NewTime(time.Now().Add(-time.Hour))
		for i := range 20 {
			c := toyCluster(fmt.Sprintf("c%d", i))
			l.must(l.Create(t.Context(), c))
			c.Status.NextOrchestration = &past
			l.must(l.UpdateStatus(t.Context(), c))
		}
		_, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(11 * time.Second)
		seconds := map[time.Duration]bool{}
		for _, at := range r.times()[21:] {
			seconds[at.Truncate(time.Second)] = true
		}
		if len(seconds) < 5 {
			t.Errorf("20 clusters run in %d different seconds of an interval of ten", len(seconds))
		}
	})
}
