package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/pki"
)

func actionIn(namespace, name string, change ...func(*api.Action)) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       api.ActionSpec{Kind: "test.one", Target: "none/x"},
	}
	for _, c := range change {
		c(a)
	}
	return a
}

func clusterIn(namespace, name string, approval api.Approval) *api.StorageCluster {
	return &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Approval: approval, Interval: metav1.Duration{Duration: 10 * time.Second},
			Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}, Mgr: api.CephMgrSpec{Count: 1}},
		},
	}
}

// expectError checks that an error holds these words, or that there is none when they are empty.
func expectError(t *testing.T, what string, err error, words string) {
	t.Helper()
	if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
		t.Errorf("%s: got %v, want %q", what, err, words)
	}
}

// TestActions_admission: who asks, whether it has to be approved and who approved is the server's word, over real TLS.
func TestActions_admission(t *testing.T) {
	s, config := sharedServer(t)
	admin, ctx := newClient(t, s.Config()), t.Context()
	ns := newNamespace(t, admin)
	jo := as(t, s, config, pki.Leaf{User: "jo", Groups: []string{"holdfast:admins"}})
	viewer := as(t, s, config, pki.Leaf{User: "vi", Groups: []string{"holdfast:viewers"}})
	for _, o := range []client.Object{
		clusterIn(ns, "strict", api.ApprovalRequired), clusterIn(ns, "easy", ""),
		&api.Host{ObjectMeta: metav1.ObjectMeta{Name: ns + "-idle"}},
	} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	busy := newClient(t, newHost(t, s, config, ns+"-busy").config)
	daemon := daemonOn(ns, "d", ns+"-busy", "s")
	daemon.Spec.Cluster = "strict"
	if err := admin.Create(ctx, daemon); err != nil {
		t.Fatal(err)
	}
	of := func(cluster, host string, asked api.Approval) func(*api.Action) {
		return func(a *api.Action) {
			a.Spec.Cluster, a.Spec.Host, a.Spec.Approval, a.Spec.Requester = cluster, host, asked, "somebody else"
			a.Annotations = map[string]string{api.AnnotationApprover: "somebody else"}
		}
	}
	for name, test := range map[string]struct {
		change func(*api.Action)
		want   api.Approval
		err    string
	}{
		"policy":         {of("strict", "", ""), api.ApprovalRequired, ""},
		"weakened":       {of("strict", "", api.ApprovalGranted), api.ApprovalRequired, ""},
		"no-policy":      {of("easy", "", ""), api.ApprovalGranted, ""},
		"asked-for":      {of("easy", "", api.ApprovalRequired), api.ApprovalRequired, ""},
		"host-busy":      {of("", ns+"-busy", ""), api.ApprovalRequired, ""},
		"host-idle":      {of("", ns+"-idle", ""), api.ApprovalGranted, ""},
		"easy-host-busy": {of("easy", ns+"-busy", ""), api.ApprovalRequired, ""},
		"no-cluster":     {of("nine", "", ""), "", "there is no storagecluster nine in namespace " + ns},
		"no-host":        {of("", "nine", ""), "", "host nine does not exist: see 'holdfast get hosts'"},
	} {
		a := actionIn(ns, name, test.change)
		err := jo.Create(ctx, a)
		expectError(t, name, err, test.err)
		if err == nil && (a.Spec.Approval != test.want || a.Spec.Requester != "jo" || a.Annotations[api.AnnotationApprover] != "") {
			t.Errorf("%s: created as %+v, annotations %v", name, a.Spec, a.Annotations)
		}
	}
	const hosts = "a host has only the rights that its agent needs; for anything else ask an administrator"
	command := func(a *api.Action) { of("strict", ns+"-busy", "")(a); a.Spec.Kind = api.ActionServiceCommand }
	expectError(t, "a command by an administrator", jo.Create(ctx, actionIn(ns, "command", command)), "only the leader creates a service.command")
	expectError(t, "a command by a host", busy.Create(ctx, actionIn(ns, "command", command)), hosts)
	own := actionIn(ns, "command", command)
	expectError(t, "a command by a server", admin.Create(ctx, own), "")
	if own.Spec.Approval != api.ApprovalGranted {
		t.Errorf("the command of a server is created as %+v", own.Spec)
	}
	look := actionIn(ns, "look", of("strict", ns+"-busy", ""), func(a *api.Action) { a.Spec.Kind = action.DaemonLog })
	expectError(t, "a look into a log", jo.Create(ctx, look), "")
	if look.Spec.Approval != api.ApprovalGranted {
		t.Errorf("the look into a log is created as %+v", look.Spec)
	}
	expectError(t, "creating by a viewer", viewer.Create(ctx, actionIn(ns, "viewers")), "ask an administrator")

	set := func(c client.Client, name, patch string) error {
		return c.Patch(ctx, actionIn(ns, name), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	state := func(name string, state api.ActionState) {
		t.Helper()
		if err := admin.Status().Patch(ctx, actionIn(ns, name), client.RawPatch("application/merge-patch+json", []byte(`{"status":{"state":"`+string(state)+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	const grant, reject, cancel = `{"spec":{"approval":"Granted"}}`, `{"spec":{"approval":"Rejected"}}`, `{"spec":{"want":"Cancelled"}}`
	expectError(t, "approval by a viewer", set(viewer, "policy", grant), "ask an administrator")
	for what, patch := range map[string]string{"approval": grant, "rejection": reject, "cancel": cancel} {
		expectError(t, what+" by a host", set(busy, "policy", patch), hosts)
	}
	expectError(t, "pretending an approver", set(jo, "policy", `{"metadata":{"annotations":{"`+api.AnnotationApprover+`":"boss"}}}`), "")
	expectError(t, "approval", set(jo, "policy", grant), "")
	var got api.Action
	if err := admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "policy"}, &got); err != nil || got.Annotations[api.AnnotationApprover] != "jo" {
		t.Errorf("approved: %v, annotations %v", err, got.Annotations)
	}
	expectError(t, "rejection", set(jo, "weakened", reject), "")
	expectError(t, "approval of what was rejected", set(jo, "weakened", grant), "it was rejected: create another one")
	state("asked-for", api.ActionRunning)
	expectError(t, "rejection of what runs", set(jo, "asked-for", reject), "it is already Running")
	expectError(t, "cancel of what runs", set(jo, "asked-for", cancel), "")
	state("host-busy", api.ActionFailed)
	expectError(t, "approval of what has ended", set(jo, "host-busy", grant), "it has already ended as Failed")
	expectError(t, "cancel of what has ended", set(jo, "host-busy", cancel), "cannot cancel it: it has already ended as Failed")
}

// TestActions_host: a host sees its own actions, and writes the status of those that it carries out, in its turn.
func TestActions_host(t *testing.T) {
	s, config := sharedServer(t)
	admin, ctx := newClient(t, s.Config()), t.Context()
	ns := newNamespace(t, admin)
	h1, h2 := ns+"-h1", ns+"-h2"
	agent := newClient(t, newHost(t, s, config, h1).config)
	newHost(t, s, config, h2)
	create := func(name, host string, status api.ActionStatus) {
		t.Helper()
		a := actionIn(ns, name, func(a *api.Action) { a.Spec.Host = host })
		if err := admin.Create(ctx, a); err != nil {
			t.Fatal(err)
		}
		a.Status = status
		if err := admin.Status().Update(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	turn := api.ActionStatus{State: api.ActionNew, Executor: api.ByAgent}
	create("mine", h1, turn)
	create("theirs", h2, turn)
	create("leaders", h1, api.ActionStatus{State: api.ActionRunning, Executor: api.ByLeader})
	create("waits", h1, api.ActionStatus{State: api.ActionPendingSchedule, Executor: api.ByAgent})
	if err := agent.List(ctx, &api.ActionList{}); err == nil {
		t.Error("a host listed all actions")
	}
	list := &api.ActionList{}
	if err := agent.List(ctx, list, client.MatchingFields{"spec.host": h1}); err != nil || len(list.Items) != 3 {
		t.Errorf("its own actions: %d, %v", len(list.Items), err)
	}
	for _, test := range []struct{ name, patch, err string }{
		{"theirs", `{"status":{"state":"Running"}}`, "the action is for host"},
		{"leaders", `{"status":{"state":"Done"}}`, "the leader carries the action out"},
		{"waits", `{"status":{"state":"Running"}}`, "it is not its host's turn"},
		{"mine", `{"status":{"state":"Lost"}}`, "a host cannot make an action Lost"},
		{"mine", `{"status":{"approver":"me"}}`, "status.approver"},
		{"mine", `{"status":{"state":"Running","message":"at work"}}`, ""},
		{"mine", `{"status":{"state":"Done"}}`, ""},
		{"mine", `{"status":{"state":"Running"}}`, "it is not its host's turn"},
	} {
		err := agent.Status().Patch(ctx, actionIn(ns, test.name), client.RawPatch("application/merge-patch+json", []byte(test.patch)))
		expectError(t, test.name+" "+test.patch, err, test.err)
	}
	if err := agent.Create(ctx, actionIn(ns, "new")); err == nil {
		t.Error("a host created an action")
	}
	expectError(t, "cancel by a host", agent.Patch(ctx, actionIn(ns, "mine"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"want":"Cancelled"}}`))), "ask an administrator")
}

// TestActions_frozen: what was asked for and approved stays what it is. The times are as good as before however they are written.
func TestActions_frozen(t *testing.T) {
	s, _ := sharedServer(t)
	admin, ctx := newClient(t, s.Config()), t.Context()
	ns := newNamespace(t, admin)
	hour := metav1.Duration{Duration: time.Hour}
	for name, change := range map[string]func(*api.Action){
		"plain": func(*api.Action) {}, "timed": func(a *api.Action) { a.Spec.Timeout, a.Spec.ExpiresAfter = hour, hour },
	} {
		if err := admin.Create(ctx, actionIn(ns, name, change)); err != nil {
			t.Fatal(err)
		}
	}
	const frozen = "of an Action only spec.approval and spec.want can be changed"
	for _, test := range []struct{ name, patch, err string }{
		{"plain", `{"spec":{"timeout":"1s"}}`, frozen},
		{"plain", `{"spec":{"expiresAfter":"1000h"}}`, frozen},
		{"timed", `{"spec":{"timeout":"2h"}}`, frozen},
		{"timed", `{"spec":{"timeout":null}}`, frozen},
		{"timed", `{"spec":{"expiresAfter":null}}`, frozen},
		{"timed", `{"spec":{"parameters":{"force":"Yes"}}}`, frozen},
		{"timed", `{"spec":{"timeout":"60m","expiresAfter":"3600s"}}`, ""},
		{"plain", `{"spec":{"timeout":null,"expiresAfter":"0s"}}`, ""},
		{"timed", `{"spec":{"want":"Cancelled"}}`, ""},
	} {
		err := admin.Patch(ctx, actionIn(ns, test.name), client.RawPatch("application/merge-patch+json", []byte(test.patch)))
		expectError(t, test.name+" "+test.patch, err, test.err)
	}
}

// TestPlans_requester: who makes a Plan, and in which groups, is the server's word: what it comes to is looked at with their
// rights.
func TestPlans_requester(t *testing.T) {
	s, config := sharedServer(t)
	ns := newNamespace(t, newClient(t, s.Config()))
	jo := as(t, s, config, pki.Leaf{User: "jo", Groups: []string{"holdfast:admins"}})
	p := &api.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plan"}, Spec: api.PlanSpec{
		Manifest: "x", Requester: "somebody else", Groups: []string{"system:masters"},
	}}
	if err := jo.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.Requester != "jo" || slices.Contains(p.Spec.Groups, "system:masters") || !slices.Contains(p.Spec.Groups, "holdfast:admins") {
		t.Errorf("it was made as %+v", p.Spec)
	}
	p.Status = api.PlanStatus{State: api.PlanProposed, Proposal: &api.PlanProposal{Leader: "s1", Report: "one"}}
	if err := jo.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{
		`[{"op":"remove","path":"/status"}]`, `[{"op":"remove","path":"/status/proposal"}]`,
		`[{"op":"replace","path":"/status/proposal/report","value":"two"}]`,
	} {
		err := jo.Status().Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch)))
		expectError(t, patch, err, "the answer of the leader cannot be changed")
	}
	applied := client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"Applied"}}`))
	if err := jo.Status().Patch(t.Context(), p.DeepCopy(), applied); err != nil {
		t.Error(err)
	}
	viewer := as(t, s, config, pki.Leaf{User: "vi", Groups: []string{"holdfast:viewers"}})
	p = &api.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "viewers"}, Spec: api.PlanSpec{Manifest: "x"}}
	expectError(t, "a plan of a viewer", viewer.Create(t.Context(), p), "ask an administrator")
}

// TestPlans_groups: a Plan holds all groups of its requester, or is refused with the reason.
func TestPlans_groups(t *testing.T) {
	s, config := sharedServer(t)
	ns := newNamespace(t, newClient(t, s.Config()))
	try := func(name string, groups ...string) (*api.Plan, error) {
		plan := &api.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: api.PlanSpec{Manifest: "x"}}
		c := as(t, s, config, pki.Leaf{User: "jo", Groups: append([]string{"holdfast:admins"}, groups...)})
		return plan, c.Create(t.Context(), plan)
	}
	many := make([]string, 255)
	for i := range many {
		many[i] = fmt.Sprint("g", i)
	}
	plan, err := try("fits", many[:254]...) // with admins and system:authenticated
	expectError(t, "256 groups", err, "")
	if len(plan.Spec.Groups) != 256 {
		t.Errorf("the Plan holds %d groups", len(plan.Spec.Groups))
	}
	_, err = try("many", many...)
	expectError(t, "257 groups", err,
		"cannot record the 257 groups of user jo: a Plan has room for 256; use credentials with fewer groups")
	_, err = try("long", strings.Repeat("g", 257))
	expectError(t, "a long group", err, "cannot record a group of user jo with 257 characters")
}
