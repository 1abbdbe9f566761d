package cli

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// standingOf is what the engine says of a resource.
func standingOf(p *api.Pool, s kstatus.Standing) {
	p.Status.ObservedGeneration = p.Generation
	kstatus.Set(&p.Status.Conditions, p.Generation, s, time.Now())
}

// TestWait_laterRun: a resource that was refused before the write is judged by a run that began
// after the write. The test stands in for the engine, which takes its time.
func TestWait_laterRun(t *testing.T) {
	t.Parallel()
	p := newHome(t, "lacking")
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "lacking", Name: name} }
	c := &api.StorageCluster{ObjectMeta: named("c"), Spec: api.StorageClusterSpec{
		Type: api.StorageCeph, Interval: metav1.Duration{Duration: time.Minute}, Ceph: &api.CephSpec{},
	}}
	pool := &api.Pool{ObjectMeta: named("images"), Spec: api.PoolSpec{Cluster: "c"}}
	create := func(o client.Object) {
		t.Helper()
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(c)
	create(pool)
	status := func(o client.Object) {
		t.Helper()
		if err := p.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	c.Status.ObservedGeneration = c.Generation
	c.Status.Report = &api.OrchestrationReport{Started: metav1.NowMicro(), Leader: "s1", Outcome: api.OutcomeUnchanged}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: api.ClusterReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: c.Generation,
	})
	status(c)
	standingOf(pool, kstatus.Standing{Stalled: true, Reason: api.ReasonDependencyNotReady, Message: "there is no Secret s"})
	status(pool)

	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"cluster": "c"}}}
	u.SetAPIVersion(api.GroupVersion.String())
	u.SetKind("Pool")
	u.SetNamespace("lacking")
	u.SetName("images")
	wait := func() chan error {
		g := &globals{kubeconfig: p.kubeconfig, namespace: "lacking", streams: streams{out: &strings.Builder{}}}
		ended := make(chan error, 1)
		go func() {
			o := applyOptions{timeout: time.Minute}
			ended <- g.waitReady(t.Context(), p, []object{{Unstructured: u, source: "test"}}, o, newPrinter(g.out, ""))
		}()
		return ended
	}
	run := func(ended chan error, s kstatus.Standing) error {
		before := c.Status.OrchestratedRequest
		for c.Annotations[api.AnnotationOrchestrate] == before {
			select {
			case err := <-ended:
				t.Fatalf("it is judged by what was there before: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
			if err := p.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				t.Fatal(err)
			}
		}
		standingOf(pool, s)
		status(pool)
		c.Status.OrchestratedRequest = c.Annotations[api.AnnotationOrchestrate]
		status(c)
		return <-ended
	}
	still := kstatus.Standing{Stalled: true, Reason: api.ReasonInvalidSpec, Message: "the Secret s is empty"}
	if err := run(wait(), still); err == nil || !strings.Contains(err.Error(), still.Message) {
		t.Errorf("what is refused still: %v", err)
	}
	if err := run(wait(), kstatus.Standing{Ready: true, Reason: "Ready"}); err != nil {
		t.Errorf("what is ready now: %v", err)
	}
}
