package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/engine/stats"
)

// recorder is a service manager that notes when it is called, and does what it is told.
type recorder struct {
	do func(ctx context.Context, e *engine.RefreshEvent) error

	mu      sync.Mutex
	calls   []string
	at      []time.Duration
	begin   time.Time
	now     map[string]int
	most    int
	closed  bool
	overlap bool
}

func (r *recorder) Name() string { return string(sim.ToyType) }

func (r *recorder) RefreshKeys() []engine.RefreshKey {
	return []engine.RefreshKey{{Kind: engine.KindCluster}, {Kind: engine.KindNode}, {Kind: engine.KindDaemon}}
}

func (r *recorder) HandleRefresh(ctx context.Context, e *engine.RefreshEvent) error {
	name := e.Cluster.Name
	r.mu.Lock()
	r.calls = append(r.calls, name+": "+e.Reason)
	r.at = append(r.at, time.Since(r.begin))
	r.overlap = r.overlap || r.now[name] > 0
	r.now[name]++
	sum := 0
	for _, n := range r.now {
		sum += n
	}
	r.most = max(r.most, sum)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.now[name]--
		r.mu.Unlock()
	}()
	if r.do != nil {
		return r.do(ctx, e)
	}
	return nil
}

func (r *recorder) Close() error {
	r.closed = true
	return nil
}

func (r *recorder) times() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Duration(nil), r.at...)
}

// runScheduler starts the scheduler on a store with cluster "t" and waits for the first run to end.
func runScheduler(t *testing.T, l *lab, r *recorder) (counts *stats.Stats, stop func()) {
	t.Helper()
	r.begin, r.now = time.Now(), map[string]int{}
	counts = &stats.Stats{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- engine.Run(ctx, engine.Config{
			Store: l.Memory, Managers: []engine.ServiceManager{r}, Log: l.orch.Log, Parallel: 3, Stats: counts,
		})
	}()
	synctest.Wait()
	return counts, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestRun_expectedOrchestration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		var expected []time.Duration
		r.do = func(context.Context, *engine.RefreshEvent) error {
			next := l.cluster().Status.NextOrchestration
			if next == nil {
				t.Error("the work started before the next orchestration was written")
				return nil
			}
			expected = append(expected, next.Sub(r.begin))
			return nil
		}
		_, stop := runScheduler(t, l, r)
		time.Sleep(15 * time.Second)
		// A run because of a change leaves the expected one where it is.
		l.must(l.Create(t.Context(), toyNode("n9", "h1")))
		time.Sleep(time.Second)
		// Hosts are none of this manager's business.
		l.must(l.RemoveDisk(t.Context(), "h1", "disk-1"))
		time.Sleep(9 * time.Second)
		stop()
		want := []time.Duration{0, 10 * time.Second, 15*time.Second + 5*time.Millisecond, 20 * time.Second}
		if got := r.times(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("runs at %v, want %v", got, want)
		}
		wantNext := []time.Duration{10 * time.Second, 20 * time.Second, 20 * time.Second, 30 * time.Second}
		if fmt.Sprint(expected) != fmt.Sprint(wantNext) {
			t.Errorf("expected orchestrations at %v, want %v", expected, wantNext)
		}
		if n := l.Writes(); n != 3 {
			t.Errorf("%d writes, want one for each interval", n)
		}
		if !r.closed {
			t.Error("the service manager was not closed")
		}
	})
}

func TestRun_debounces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		_, stop := runScheduler(t, l, r)
		defer stop()
		for i := range 100 {
			l.must(l.Create(t.Context(), toyNode(fmt.Sprintf("m%d", i), "h1")))
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(time.Second)
		// 200 ms of changes, a run each 50 ms, and one after the last.
		if n := len(r.times()) - 1; n < 4 || n > 5 {
			t.Errorf("%d runs, want 4 or 5", n)
		}
	})
}

func TestRun_oneClusterAtATimeManySideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = func(context.Context, *engine.RefreshEvent) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		for i := range 5 {
			l.must(l.Create(t.Context(), toyCluster(fmt.Sprintf("c%d", i))))
		}
		_, stop := runScheduler(t, l, r)
		for i := range 50 {
			l.must(l.Create(t.Context(), toyNodeOf(fmt.Sprintf("m%d", i), "t")))
			time.Sleep(10 * time.Millisecond)
		}
		stop()
		if r.overlap || r.most != 3 {
			t.Errorf("overlap %v, %d runs at once, want 3", r.overlap, r.most)
		}
	})
}

func TestRun_backsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = func(context.Context, *engine.RefreshEvent) error { return errors.New("no luck") }
		stats, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(10 * time.Minute)
		at := r.times()
		for i := 1; i < len(at); i++ {
			pause, most := at[i]-at[i-1], time.Second<<min(i-1, 6)
			if most = min(most, time.Minute); pause < most/2 || pause > most {
				t.Errorf("pause %d was %s, want %s to %s", i, pause, most/2, most)
			}
		}
		if n := stats.Failed.Load(); n != int64(len(at)) || n < 10 {
			t.Errorf("%d failures were counted in %d runs", n, len(at))
		}
		// The administrator changes the spec: that may be the cure, so it is tried at once.
		c := l.cluster()
		c.Spec.Interval.Duration = time.Minute
		before := len(r.times())
		l.must(l.Update(t.Context(), c))
		time.Sleep(10 * time.Millisecond)
		if n := len(r.times()) - before; n != 1 {
			t.Errorf("%d runs right after the spec was changed, want 1", n)
		}
	})
}

func TestRun_countsDiscardedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		l.Hold(toyKey, "s2")
		r.do = l.orch.HandleRefresh
		stats, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(3*time.Second + time.Millisecond)
		if n := stats.Discarded.Load(); n != 4 {
			t.Errorf("%d runs were discarded, want 4", n)
		}
		l.Hold(toyKey, "")
		time.Sleep(time.Second)
		if l.cluster().Status.Report == nil {
			t.Error("the lock was free for a second, and nothing was done")
		}
	})
}

func TestRun_endsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		ended := false
		r.do = func(ctx context.Context, _ *engine.RefreshEvent) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return ctx.Err()
		}
		_, stop := runScheduler(t, l, r)
		stop()
		if !ended {
			t.Error("Run returned while a run was going on")
		}
	})
}

func TestRun_forgetsClustersThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = l.orch.HandleRefresh
		_, stop := runScheduler(t, l, r)
		defer stop()
		l.must(l.Run(t.Context(), 100*time.Millisecond, 2*time.Second))
		l.must(l.Delete(t.Context(), toyCluster("t")))
		l.must(l.Run(t.Context(), 100*time.Millisecond, 2*time.Second))
		n := len(r.times())
		time.Sleep(time.Minute)
		if more := len(r.times()) - n; more != 0 {
			t.Errorf("%d runs of a cluster that is gone", more)
		}
		l.must(l.Create(t.Context(), toyCluster("t")))
		l.must(l.Run(t.Context(), 100*time.Millisecond, 2*time.Second))
		if l.cluster().Status.Report == nil {
			t.Error("a cluster made under an old name is not orchestrated")
		}
	})
}

func TestRun_boundsADriverThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		l.toy.PlanHook = func(p *engine.Plan) {
			p.Commands = []engine.Command{{Verb: "init", Object: "toy", Reason: "again and again"}}
		}
		r.do = l.orch.HandleRefresh
		_, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(time.Minute)
		if n := len(r.times()); n < 30 || n > 120 {
			t.Errorf("%d runs in a minute", n)
		}
	})
}

func TestRun_idleClusterCostsOneWriteAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = l.orch.HandleRefresh
		_, stop := runScheduler(t, l, r)
		defer stop()
		l.must(l.Run(t.Context(), 50*time.Millisecond, time.Second))
		if c := l.ready(); c.Status != "True" {
			t.Fatalf("Ready after one second = %+v", c)
		}
		before, runs := l.Writes(), len(r.times())
		l.must(l.Run(t.Context(), time.Second, time.Hour))
		if n := l.Writes() - before; n != 360 {
			t.Errorf("%d writes in an hour, want 360", n)
		}
		if n := len(r.times()) - runs; n != 360 {
			t.Errorf("%d runs in an hour, want 360", n)
		}
	})
}

func TestRun_unknownType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		c := toyCluster("x")
		c.Spec.Type = "unheard-of"
		l.must(l.Create(t.Context(), c))
		stats, stop := runScheduler(t, l, r)
		stop()
		if stats.Failed.Load() != 1 || strings.Contains(strings.Join(r.calls, "\n"), "x: ") {
			t.Errorf("%d failures, calls %q", stats.Failed.Load(), r.calls)
		}
	})
}

func toyNodeOf(name, cluster string) sim.Object {
	n := toyNode(name, "h1")
	n.Spec.Cluster = cluster
	return n
}

// blind is a store that cannot read a cluster for a while.
type blind struct {
	engine.Store
	reads, from, to int
}

func (b *blind) Cluster(ctx context.Context, cluster types.NamespacedName) (*api.StorageCluster, error) {
	if b.reads++; b.reads >= b.from && b.reads < b.to {
		return nil, errors.New("the cache is behind")
	}
	return b.Store.Cluster(ctx, cluster)
}

// TestRun_clusterThatCannotBeRead: the run that took the expected orchestration from the schedule may go well although the
// cluster could not be read before it. The interval goes on.
func TestRun_clusterThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{begin: time.Now(), now: map[string]int{}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- engine.Run(ctx, engine.Config{
				Store:    &blind{Store: l.Memory, from: 2, to: 3},
				Managers: []engine.ServiceManager{r}, Log: l.orch.Log,
			})
		}()
		time.Sleep(35 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}
		if got := r.times(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("runs at %v, want %v", got, want)
		}
	})
}
