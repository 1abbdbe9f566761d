package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// plans are how many plans of the namespace are kept.
func (b *bench) plans() int {
	b.Helper()
	var list api.PlanList
	b.must(b.client.List(b.Context(), &list, client.InNamespace("default")))
	return len(list.Items)
}

// TestPlan_silentCeph: while the mons do not answer nobody knows what a change comes to. It is said so, and no plan is kept; one that was made before waits.
func TestPlan_silentCeph(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	c := b.withCeph()
	manifest := manifestOn("h1", "h2", "h3")
	b.expectInput(manifest, "apply -f - --wait --timeout 5m", exitOK)
	fewer := strings.Replace(manifest, "mon: {count: 3}", "mon: {count: 1}, config: {osd: {osd_op_queue: wpq}}", 1)
	_, out := b.run(strings.Replace(manifest, "interval: 1s", "interval: 2s", 1), "plan", "-f", "-")
	calm := nameIn(t, out)
	before := b.plans()

	c.Mute("status", true)
	const silent = "ceph does not answer (ceph status: the mons do not answer"
	for args, code := range map[string]int{"plan -f -": exitRefused, "plan -f - --dry-run": exitOK, "plan -f - -o yaml": exitOK} {
		got, out := b.run(fewer, strings.Fields(args)...)
		if got != code || strings.Contains(out, "nothing happens") || strings.Contains(out, "apply it with") {
			t.Errorf("%s: exit code %d, want %d:\n%s", args, got, code, out)
		}
		for _, want := range []string{"spec.ceph.mon.count", "does not answer ("} {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not say %q:\n%s", args, want, out)
			}
		}
	}
	b.expectInput(fewer, "plan -f -", exitRefused, "- "+silent, "as far as known", "no plan is kept: ceph of storagecluster/default/c does not answer", "'holdfast apply -f FILE'")
	b.expect("plan --delete storagenode/n3", exitRefused, "no plan is kept", "'holdfast delete KIND NAME'")
	b.expect("apply --plan "+calm, exitRefused, "ceph of storagecluster/default/c does not answer", "name the plan again when it answers")
	if now := b.plans(); now != before {
		t.Errorf("%d plans are kept, and there were %d", now, before)
	}
	b.expect("plan --delete storagecluster/c", exitOK, "apply it with: holdfast delete --plan ") // Ceph is not asked for that

	c.Mute("status", false)
	b.expect("apply --plan "+calm, exitOK, "storagecluster/c configured")

	c.Mute("status", true)
	b.expectInput(strings.Replace(manifest, "interval: 1s", "interval: 3s", 1), "apply -f -", exitOK, "storagecluster/c configured")
}

// TestPlan_namedInSilence: what destroys data is done by the name of its plan also while the mons do not answer, and that plan is void when they do.
func TestPlan_namedInSilence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3", "h4")
	c := b.withCeph()
	manifest := strings.Replace(manifestOn("h1", "h2", "h3", "h4"), "interval: 1s", "interval: 1s, deletionPolicy: Wipe", 1)
	b.expectInput(manifest, "apply -f - --wait --timeout 5m", exitOK)
	c.Mute("status", true)
	without := strings.Replace(manifest, "devices: [disk-h4]", "devices: []", 1)
	named := func() string {
		code, out := b.run(without, "apply", "-f", "-")
		if code != exitRefused || !strings.Contains(out, "[DATA IS DESTROYED]") || !strings.Contains(out, "- ceph does not answer") {
			t.Fatalf("exit code %d:\n%s", code, out)
		}
		return nameIn(t, out)
	}
	early, late := named(), named()
	c.Mute("status", false)
	b.expect("apply --plan "+early, exitRefused, "the storage system of storagecluster/default/c answers now, but did not when the plan was made")
	c.Mute("status", true)
	b.expect("apply --plan "+late, exitOK, "storagenode/n4 configured")
}

// TestPlan_silentGluster: so it is where no node of another storage system is heard that was heard before.
func TestPlan_silentGluster(t *testing.T) {
	t.Parallel()
	p := newHome(t, "mutegluster")
	manifest := strings.NewReplacer("type: ceph, ceph: {}", "type: glusterfs", "type: ceph", "type: glusterfs").Replace(p.manifest("ceph: {}"))
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"})
	longer := strings.Replace(manifest, "type: glusterfs}", "type: glusterfs, interval: 30s}", 1)
	p.must(t, exitOK, longer, []string{"plan", "-f", "-"}, "apply it with")
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "c-glusterd-n1"}, Spec: api.DaemonSpec{
		Cluster: "c", Type: glusterd.Type, ID: "n1", Host: "mutegluster-1", State: api.WantRunning, Command: glusterd.Command(), OnRemoval: api.DeletionRetain,
	}}
	if err := p.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.Status.State, d.Status.Report = api.DaemonStopped, `{"uuid": "1"}`
	if err := p.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	p.must(t, exitRefused, longer, []string{"plan", "-f", "-"}, "glusterfs does not answer (no glusterd of the pool answers)", "no plan is kept")
}
