package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func (l *lab) request(value string) {
	l.t.Helper()
	c := l.cluster()
	c.Annotations = map[string]string{api.AnnotationOrchestrate: value}
	l.must(l.Update(l.t.Context(), c))
}

// TestRequest: a run that is asked for comes at once, also when runs fail and the next is a minute away, and its report can be
// told from the one before although both say the same. That it was asked for costs one write, not one in each run.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, r := newLab(t), &recorder{}
		r.do = l.orch.HandleRefresh
		_, stop := runScheduler(t, l, r)
		defer stop()
		l.must(l.Run(t.Context(), 50*time.Millisecond, 2*time.Second))
		l.Fail = func(operation, _ string) error {
			if operation == "View" {
				return errors.New("no luck")
			}
			return nil
		}
		l.must(l.Run(t.Context(), time.Second, 10*time.Minute))
		first := l.cluster().Status
		l.request("one")
		time.Sleep(10 * time.Millisecond)
		failed := l.cluster().Status
		if failed.OrchestratedRequest != "one" || !failed.Report.Started.After(first.Report.Started.Time) {
			t.Errorf("request %q, report of %s", failed.OrchestratedRequest, failed.Report.Started)
		}
		l.Fail = nil
		l.request("two")
		time.Sleep(100 * time.Millisecond)
		mended, before := l.cluster().Status, l.Writes()
		if mended.OrchestratedRequest != "two" || mended.Report.Outcome != api.OutcomeUnchanged {
			t.Errorf("request %q, outcome %s", mended.OrchestratedRequest, mended.Report.Outcome)
		}
		l.must(l.Run(t.Context(), time.Second, time.Minute))
		if n := l.Writes() - before; n != 6 {
			t.Errorf("%d writes in a minute after the request, want one each interval", n)
		}
	})
}
