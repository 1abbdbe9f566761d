package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/engine"
)

// TestStats brings a cluster up, lets runs fail and take long, and looks at what was counted.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		var ill atomic.Bool
		r.do = func(ctx context.Context, e *engine.RefreshEvent) error {
			if !ill.Load() {
				return l.orch.HandleRefresh(ctx, e)
			}
			time.Sleep(700 * time.Millisecond)
			return errors.New("no luck")
		}
		stats, stop := runScheduler(t, l, r)
		time.Sleep(100 * time.Millisecond)
		events, err := l.Events(t.Context(), toyKey)
		l.must(err)
		if n := stats.Events.Load(); n == 0 || n != int64(len(events)) {
			t.Errorf("%d events were counted, and %d are there", n, len(events))
		}
		if ended := stats.Ended(); ended["Changed"].Count == 0 {
			t.Errorf("what was done: %v", ended)
		}
		ill.Store(true)
		failedBefore := stats.Ended()["Failed"].Count
		time.Sleep(11*time.Second - 300*time.Millisecond)
		failed := stats.Ended()["Failed"]
		if failed.Count == failedBefore || failed.Up[500*time.Millisecond] != failedBefore || failed.Up[time.Second] != failed.Count {
			t.Errorf("failures: %+v", failed)
		}
		stop()
		if diff := cmp.Diff([]int64{0, stats.Failed.Load()}, []int64{stats.Running.Load(), int64(stats.Ended()["Failed"].Count)}); diff != "" {
			t.Errorf("running and failed when all is over:\n%s", diff)
		}
	})
}

// TestStats_waiting has more clusters due than may run at once.
func TestStats_waiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		for _, name := range []string{"u", "v", "w", "x"} {
			c := l.cluster().DeepCopy()
			c.ResourceVersion, c.UID, c.Name = "", "", name
			l.must(l.Create(t.Context(), c))
		}
		r.do = func(context.Context, *engine.RefreshEvent) error {
			time.Sleep(time.Second)
			return nil
		}
		stats, stop := runScheduler(t, l, r)
		defer stop()
		time.Sleep(500 * time.Millisecond)
		if running, waiting := stats.Running.Load(), stats.Waiting.Load(); running != 3 || waiting != 2 {
			t.Errorf("%d run and %d wait, want 3 and 2", running, waiting)
		}
		time.Sleep(2 * time.Second)
		if running, waiting := stats.Running.Load(), stats.Waiting.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d run and %d wait when all have run", running, waiting)
		}
	})
}

// TestStats_commands: a run with a command that failed counts as failed, like one that ended by an
// error. The log has a line when the runs begin to fail, when they fail for another reason and when
// they fail no longer.
func TestStats_commands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		var log bytes.Buffer
		l.orch.Log = slog.New(slog.NewTextHandler(&log, nil))
		runs, failures := 0, []string{"no room", "no room", "no room", "no key", "no key", ""}
		r.do = func(_ context.Context, e *engine.RefreshEvent) error {
			text := failures[min(runs, len(failures)-1)]
			runs++
			e.Outcome, e.Recheck = "Unchanged", time.Second
			if text != "" {
				e.Outcome, e.Failure = "Failed", errors.New(text)
			}
			return nil
		}
		stats, stop := runScheduler(t, l, r)
		time.Sleep(20 * time.Second)
		stop()
		if n := stats.Failed.Load(); n != 5 {
			t.Errorf("%d runs were counted as failed, and 5 did", n)
		}
		var got []string
		for line := range strings.Lines(log.String()) {
			if _, text, ok := strings.Cut(line, "msg=\"orchestration "); ok {
				got = append(got, text[strings.Index(text, "failures="):len(text)-1])
			}
		}
		want := []string{`failures=1 error="no room"`, `failures=4 error="no key"`, "failures=5"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log:\n%s\n%s", diff, log.String())
		}
	})
}
