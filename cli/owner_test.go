package cli

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// managers are those who wrote to an object, but for its status.
func (p *person) managers(t *testing.T, o client.Object) (names []string) {
	t.Helper()
	if err := p.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	for _, m := range o.GetManagedFields() {
		if m.Subresource == "" {
			names = append(names, m.Manager)
		}
	}
	return names
}

// TestOwner_everyCommand: whatever the command, others read who changed an object.
func TestOwner_everyCommand(t *testing.T) {
	t.Parallel()
	p, kim := newHome(t, "owners"), newPerson(t, "owners", "kim")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	plan := p.planned(t, p.manifest("interval: 30s, ceph: {}"))
	action := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "owners", Name: "waits"},
		Spec:       api.ActionSpec{Kind: "daemon.restart", Target: "daemon/d", Host: "owners-1", Approval: api.ApprovalRequired},
	}
	if err := p.Create(t.Context(), action); err != nil {
		t.Fatal(err)
	}
	kim.must(t, exitOK, "", []string{"host", "label", "owners-2", "rack=r1"}, "labelled")
	kim.must(t, exitOK, "", []string{"action", "approve", "waits"}, "approved")
	kim.must(t, exitOK, "", []string{"orchestrate", "c"}, "orchestration requested")
	for _, o := range []client.Object{&api.Host{ObjectMeta: metav1.ObjectMeta{Name: "owners-2"}}, action, p.cluster(t)} {
		if names := p.managers(t, o); !slices.Contains(names, "kim") || slices.Contains(names, "holdfast-cli") {
			t.Errorf("%T %s was written by %q", o, o.GetName(), names)
		}
	}
	p.must(t, exitRefused, "", []string{"apply", "--plan", plan}, "host/owners-2 was changed by ", "kim at 20")
}

// TestOwner_noConflictWithItself: what somebody labelled is theirs to label otherwise by a file, and nobody else's.
func TestOwner_noConflictWithItself(t *testing.T) {
	t.Parallel()
	p := newHome(t, "itself")
	kim, bob := newPerson(t, "itself", "kim"), newPerson(t, "itself", "bob")
	kim.must(t, exitOK, "", []string{"host", "label", "itself-1", "rack=r1"}, "labelled")
	const file = "{apiVersion: holdfast.io/v1alpha1, kind: Host, metadata: {name: itself-1, labels: {rack: r2}}, spec: {}}"
	bob.must(t, exitRefused, file, []string{"apply", "-f", "-"}, "metadata.labels.rack: kim set it to r1", "you want r2")
	kim.must(t, exitOK, file, []string{"apply", "-f", "-"}, "host/itself-1 configured")
	h := &api.Host{}
	if err := p.Get(t.Context(), client.ObjectKey{Name: "itself-1"}, h); err != nil || h.Labels["rack"] != "r2" {
		t.Errorf("labels %v, %v", h.Labels, err)
	}
}
