package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, now, done string
		report          bool
		want            bool
	}{
		{"no run since", "2", "1", true, false},
		{"no run ever", "2", "", false, false},
		{"the run of this request", "2", "2", true, true},
		{"the run of a later request", "3", "3", true, true},
		{"a later request, and no run since", "3", "1", true, false},
		{"the annotation was removed", "", "", true, false},
	} {
		c := &api.StorageCluster{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.AnnotationOrchestrate: tt.now}},
			Status:     api.StorageClusterStatus{OrchestratedRequest: tt.done},
		}
		if tt.report {
			c.Status.Report = &api.OrchestrationReport{}
		}
		if got := answers(c, "2"); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestOrchestrate: a cluster that is looked at every hour is looked at now, by a real engine with a Ceph in memory. What cannot be is
// refused.
func TestOrchestrate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	b.withCeph()
	b.expectInput(strings.Replace(manifestOn("h1", "h2", "h3"), "interval: 1s", "interval: 1h", 1), "apply -f - --wait --timeout 5m", exitOK)

	began := time.Now()
	b.expect("orchestrate c", exitOK, "storagecluster/c: orchestration requested; follow it with 'holdfast status c'")
	asked := b.answered()
	if asked.Started.Time.Before(began.Truncate(time.Microsecond)) {
		t.Errorf("the run began at %s, before it was asked for at %s", asked.Started, began)
	}
	b.expect("orchestrate c --wait --timeout 5m", exitOK, "Unchanged by s1, in ")
	if again := b.answered(); !again.Started.After(asked.Started.Time) || again.Outcome != api.OutcomeUnchanged {
		t.Errorf("after the run of %s the second one is %+v", asked.Started, again)
	}
	b.expect("orchestrate d", exitRefused, "storagecluster/d does not exist in namespace default", "see 'holdfast get storageclusters -A'")

	c := &api.StorageCluster{}
	b.must(b.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, c))
	paused := c.DeepCopy()
	paused.Spec.Mode = api.ClusterPaused
	b.must(b.client.Patch(t.Context(), paused, client.MergeFrom(c)))
	b.expect("orchestrate c --wait", exitRefused, "storagecluster/c is paused: set spec.mode")
}

// TestOrchestrate_noLeader: who waits while nobody leads is told so when the time is over.
func TestOrchestrate_noLeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	stop := b.answersPlans()
	b.expectInput(manifestOn("h1", "h2", "h3"), "apply -f -", exitOK)
	stop()
	b.expect("orchestrate c --wait --timeout 1s", exitTimeout, "storagecluster/c: the requested run has not ended after 1s: check that a server leads")
}

// answered waits until the run has ended that was asked for last, and returns its report.
func (b *bench) answered() *api.OrchestrationReport {
	b.Helper()
	c := &api.StorageCluster{}
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, c))
		if c.Status.OrchestratedRequest == c.Annotations[api.AnnotationOrchestrate] && c.Status.Report != nil {
			return c.Status.Report
		}
	}
	b.Fatalf("nobody looked at the cluster although that was asked for: %+v", c.Status)
	return nil
}
