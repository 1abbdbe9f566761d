package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const askedPool = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: archive}\nspec: {cluster: none}\n"

// TestAsk_byObject: whoever can make a Plan has the leader say what comes of it, without the command line, and the command
// line carries it out.
func TestAsk_byObject(t *testing.T) {
	t.Parallel()
	p := newHome(t, "byobject")
	plan := &api.Plan{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "archive"}, Spec: api.PlanSpec{Manifest: askedPool},
	}
	if err := p.Create(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	p.answered(t, plan)
	a := plan.Status.Proposal
	if plan.Status.State != api.PlanProposed || a.Count != 1 || a.Risk != api.RiskNone || len(a.Destroys) > 0 ||
		!strings.Contains(a.Report, "pool/byobject/archive  new") || len(a.Notes) != 1 || a.Notes[0].Reason != api.NoteNoCluster {
		t.Errorf("the answer is %+v", plan.Status)
	}
	p.must(t, exitOK, "", []string{"apply", "--plan", "archive"}, "pool/archive created")
	if err := p.Get(t.Context(), client.ObjectKeyFromObject(plan), plan); err != nil || plan.Status.State != api.PlanApplied || plan.Status.Proposal == nil {
		t.Errorf("afterwards it is %+v (%v)", plan.Status, err)
	}
	bad := &api.Plan{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "bad"}, Spec: api.PlanSpec{Manifest: "kind: Pool"},
	}
	if err := p.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	p.answered(t, bad)
	if bad.Status.State != api.PlanFailed || !strings.Contains(bad.Status.Message, "document 1 of the manifest has no apiVersion") {
		t.Errorf("a manifest that is none: %+v", bad.Status)
	}
	p.must(t, exitRefused, "", []string{"apply", "--plan", "bad"}, "plan bad failed: document 1")
}

// answered waits until the leader has said something of a plan.
func (p *person) answered(t *testing.T, plan *api.Plan) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); plan.Status.State == ""; time.Sleep(20 * time.Millisecond) {
		if err := p.Get(t.Context(), client.ObjectKeyFromObject(plan), plan); err != nil || time.Now().After(end) {
			t.Fatalf("plan %s has no answer (%v)", plan.Name, err)
		}
	}
}

// TestAsk_noLeader: without a leader nobody says what would come of a change, and nothing is changed. There is no second way.
func TestAsk_noLeader(t *testing.T) {
	b := newBench(t)
	before := answerWithin
	answerWithin = time.Second
	t.Cleanup(func() { answerWithin = before })
	for _, command := range []string{"apply -f -", "plan -f -", "plan -f - --dry-run"} {
		b.expectInput(askedPool, command, exitFailed, "the leader made no plan within 1s; nothing was changed", "'holdfast doctor'")
	}
	var pools api.PoolList
	b.must(b.client.List(b.Context(), &pools))
	if len(pools.Items) > 0 || b.plans() > 0 {
		t.Errorf("%d pools and %d plans are there", len(pools.Items), b.plans())
	}
}

// TestAsk_viewer: who may write nothing is told so, and asks nobody.
func TestAsk_viewer(t *testing.T) {
	t.Parallel()
	newHome(t, "asviewer")
	v := newMember(t, "asviewer", "vi", "holdfast:viewers")
	v.must(t, exitRefused, askedPool, []string{"plan", "-f", "-"}, "viewers may read, and read no secrets; for anything else ask an administrator")
	if n := v.plans(t); n > 0 {
		t.Errorf("%d plans are there", n)
	}
}

// TestAsk_secrets: what is secret in a file is in no Plan at any time, and in no Secret when the command is over.
func TestAsk_secrets(t *testing.T) {
	t.Parallel()
	p := newHome(t, "asksecrets")
	const value = "very-secret-value"
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {key: " + value + "}\n---\n"
	g := globals{kubeconfig: p.kubeconfig}
	c, err := g.client()
	if err != nil {
		t.Fatal(err)
	}
	watch, err := c.Watch(t.Context(), &api.PlanList{}, client.InNamespace(p.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	p.must(t, exitOK, secret+askedPool, []string{"plan", "-f", "-", "--dry-run"}, "secret/asksecrets/s      new", "(hidden)", "pool/asksecrets/archive  new")
	p.must(t, exitRefused, secret+askedPool, []string{"plan", "-f", "-"}, "a plan cannot contain a Secret")
	p.must(t, exitOK, secret+askedPool, []string{"apply", "-f", "-"}, "secret/s created", "pool/archive created")
	p.must(t, exitOK, strings.Replace(secret, value, value+"2", 1), []string{"apply", "-f", "-"}, "secret/s configured")
	answers := 0
	for gone := 0; gone < 4; {
		event := <-watch.ResultChan()
		text, err := json.Marshal(event.Object)
		if err != nil || strings.Contains(string(text), value) || strings.Contains(string(text), "dmVyeS1zZWNyZX") {
			t.Fatalf("a plan holds the secret (%v):\n%s", err, text)
		}
		if plan, ok := event.Object.(*api.Plan); ok && event.Type == "DELETED" {
			gone++
			if plan.Status.Proposal != nil {
				answers++
			}
		}
	}
	if answers != 4 {
		t.Errorf("%d plans of 4 were answered", answers)
	}
	var left corev1.SecretList
	if err := p.List(t.Context(), &left, client.InNamespace(p.namespace)); err != nil || len(left.Items) != 1 {
		t.Errorf("%d secrets are left (%v)", len(left.Items), err)
	}
}

// TestAsk_olderPlan: a plan that a program made which found the answer out itself is compared and carried out like any other.
func TestAsk_olderPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "older")
	plan := &api.Plan{}
	key := client.ObjectKey{Namespace: p.namespace, Name: p.planned(t, p.manifest("ceph: {}"))}
	if err := p.Get(t.Context(), key, plan); err != nil {
		t.Fatal(err)
	}
	older := func(name, digest string) {
		a := plan.Status.Proposal
		o := &api.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, Spec: plan.Spec}
		o.Spec.PlanContent = a.PlanContent
		if o.Spec.Digest = digest; digest != a.Digest {
			o.Spec.Changes = a.Changes[1:]
		}
		if err := p.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	older("plan-other", "something else")
	p.must(t, exitRefused, "", []string{"apply", "--plan", "plan-other"}, "this would happen now, but is not in the plan")
	older("plan-same", plan.Status.Proposal.Digest)
	p.must(t, exitOK, "", []string{"apply", "--plan", "plan-same"}, "storagecluster/c created")
	if got := p.state(t, "plan-same"); got != api.PlanApplied {
		t.Errorf("the plan is %s", got)
	}
}
