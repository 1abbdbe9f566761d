package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// newHome makes a namespace with an administrator, and hosts NAMESPACE-1 to -3 with two disks each.
func newHome(t *testing.T, namespace string) *person {
	t.Helper()
	p := newPerson(t, namespace, "holdfast:admin")
	if err := p.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("%s-%d", namespace, i)
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name}}}
		if err := p.Create(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		h.Status.Addresses, h.Status.BootID = []string{addressOf(name)}, "boot"
		for d := range 2 {
			h.Status.Devices = append(h.Status.Devices, api.Device{
				ID: fmt.Sprintf("wwn-%d%d", i, d), Path: fmt.Sprintf("/dev/sd%c", 'b'+d), Model: "ACME DISK", Serial: fmt.Sprintf("S%d%d", i, d),
				Size: resource.MustParse("4Ti"), Kind: api.DeviceDisk, Availability: api.DeviceAvailable,
			})
		}
		if err := p.Status().Update(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// manifest is a cluster of three nodes, with what is given of its spec.
func (p *person) manifest(ceph string) string {
	text := "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, " + ceph + "}\n"
	for i := 1; i <= 3; i++ {
		text += fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: n%d}\n"+
			"spec: {type: ceph, nodeSelector: {kubernetes.io/hostname: %s-%d}, devices: [wwn-%d0]}\n", i, p.namespace, i, i)
	}
	return text
}

var named = regexp.MustCompile(`--plan (plan-[0-9a-f]{6})`)

// planned makes a plan and returns its name.
func (p *person) planned(t *testing.T, manifest string) string {
	t.Helper()
	return nameIn(t, p.must(t, exitOK, manifest, []string{"plan", "-f", "-"}))
}

func nameIn(t *testing.T, out string) string {
	t.Helper()
	found := named.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no plan is named:\n%s", out)
	}
	return found[1]
}

func (p *person) cluster(t *testing.T) *api.StorageCluster {
	t.Helper()
	c := &api.StorageCluster{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: "c"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (p *person) state(t *testing.T, plan string) api.PlanState {
	t.Helper()
	x := &api.Plan{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: plan}, x); err != nil {
		t.Fatal(err)
	}
	return x.Status.State
}

func TestPlan_isDoneExactly(t *testing.T) {
	t.Parallel()
	p := newHome(t, "exactly")
	out := p.must(t, exitOK, p.manifest("ceph: {}"), []string{"plan", "-f", "-"},
		"storagecluster/exactly/c", "spec.ceph.mon.count:", "start 5 daemons", "exactly-1  mgr.a mon.a", "prepare 3 daemons",
		"device wwn-10 (ACME DISK S10 4 TiB)", "run osd new", "4 objects to create, 8 daemons to start", "highest risk: None")
	name := nameIn(t, out)
	var clusters api.StorageClusterList
	if err := p.List(t.Context(), &clusters, client.InNamespace("exactly")); err != nil || len(clusters.Items) > 0 {
		t.Fatalf("planning made %d clusters (%v)", len(clusters.Items), err)
	}
	p.must(t, exitRefused, "", []string{"apply", "--plan", "plan-000000"}, "plan plan-000000 does not exist")
	p.must(t, exitRefused, "", []string{"delete", "--plan", name}, "is for another command: holdfast apply --plan "+name+" -n exactly")
	p.must(t, exitUsage, "", []string{"apply", "--plan", name, "-f", "x"}, "either -f FILE or --plan NAME")
	p.must(t, exitOK, "", []string{"apply", "--plan", name}, "storagenode/n1 created\n", "storagecluster/c created\n")
	if p.cluster(t).Spec.Ceph.Mon.Count != 3 || p.state(t, name) != api.PlanApplied {
		t.Errorf("the plan is %q", p.state(t, name))
	}
	p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "was already carried out (by holdfast:admin)")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"}, "storagecluster/c unchanged\n")
}

func TestPlan_cannotBeChanged(t *testing.T) {
	t.Parallel()
	p := newHome(t, "frozen")
	x := &api.Plan{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "frozen", Name: p.planned(t, p.manifest("ceph: {}"))}, x); err != nil {
		t.Fatal(err)
	}
	x.Spec.Manifest += "#"
	if err := p.Update(t.Context(), x); err == nil || !strings.Contains(err.Error(), "a Plan cannot be changed") {
		t.Errorf("a plan was changed: %v", err)
	}
}

// editHost changes a host's labels and status, and returns what it was.
func (p *person) editHost(t *testing.T, name string, edit func(*api.Host)) *api.Host {
	t.Helper()
	h := &api.Host{}
	if err := p.Get(context.Background(), types.NamespacedName{Name: name}, h); err != nil {
		t.Fatal(err)
	}
	was := h.DeepCopy()
	edit(h)
	status := h.Status
	if err := p.Update(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	h.Status = status
	if err := p.Status().Update(context.Background(), h); err != nil {
		t.Fatal(err)
	}
	return was
}

// TestPlan_saysWhatMoved: whatever a plan depends on binds it; what moves by itself does not.
func TestPlan_saysWhatMoved(t *testing.T) {
	t.Parallel()
	p := newHome(t, "moved")
	bob := newPerson(t, "moved", "holdfast:bob")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	host := func(edit func(*api.Host)) func(*testing.T) {
		return func(t *testing.T) {
			was := p.editHost(t, "moved-2", edit)
			t.Cleanup(func() { p.editHost(t, "moved-2", func(h *api.Host) { h.Labels, h.Status = was.Labels, was.Status }) })
		}
	}
	tests := []struct {
		name string
		move func(*testing.T)
		says string // nothing: the plan is done
	}{
		{"a report", func(t *testing.T) {
			c := p.cluster(t)
			c.Status.ObservedGeneration = 77
			if err := p.Status().Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}, ""},
		{"a disk has another name", host(func(h *api.Host) { h.Status.Devices[0].Path = "/dev/sdz" }), ""},
		{"a disk that nobody named", host(func(h *api.Host) { h.Status.Devices[1].Availability = api.DeviceUnavailable }), ""},
		{
			"a disk is used", host(func(h *api.Host) { h.Status.Devices[0].Availability = api.DeviceUnavailable }),
			"host/moved-2: device wwn-20 was Available ACME DISK S20 4 TiB, and is Unavailable ACME DISK S20 4 TiB",
		},
		{
			"a disk is gone", host(func(h *api.Host) { h.Status.Devices = h.Status.Devices[1:] }),
			"host/moved-2: device wwn-20 (Available ACME DISK S20 4 TiB) is gone",
		},
		{"a label", host(func(h *api.Host) { h.Labels["rack"] = "r1" }), "label rack (unset) -> r1"},
		{"the cluster", func(t *testing.T) {
			bob.must(t, exitOK, `{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c}, spec: {type: ceph, ceph: {mgr: {count: 1}}}}`,
				[]string{"apply", "-f", "-", "--force-conflicts"})
		}, "holdfast:bob at 20"},
		{"a node", func(t *testing.T) {
			p.must(t, exitOK, "", []string{"delete", "storagenode", "n3", "--when-possible"}, "deleted")
		}, "storagenode/moved/n3 is gone"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			change := fmt.Sprintf(`{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c}, spec: {type: ceph, ceph: {}, interval: %ds}}`, 20+i)
			name := p.planned(t, change)
			before := p.cluster(t).Spec.Interval
			tt.move(t)
			if tt.says == "" {
				p.must(t, exitOK, "", []string{"apply", "--plan", name}, "storagecluster/c configured")
				return
			}
			p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "is out of date; nothing was changed. Since then:", tt.says)
			p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "is stale", tt.says)
			if p.cluster(t).Spec.Interval != before {
				t.Error("the cluster was changed all the same")
			}
		})
	}
}

func TestPlan_ofAnotherNamespace(t *testing.T) {
	t.Parallel()
	p := newHome(t, "here")
	name := p.planned(t, p.manifest("ceph: {}"))
	newPerson(t, "default", "holdfast:admin").must(t, exitRefused, "", []string{"apply", "--plan", name}, "is in namespace here, not in default")
}

// TestPlan_begunIsGoneOnWith: a plan that was cut off between two writes is finished, though its own writes have moved the world.
func TestPlan_begunIsGoneOnWith(t *testing.T) {
	t.Parallel()
	p := newHome(t, "begun")
	name := p.planned(t, p.manifest("ceph: {}"))
	x := &api.Plan{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "begun", Name: name}, x); err != nil {
		t.Fatal(err)
	}
	x.Status.State = api.PlanApplying
	if err := p.Status().Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	first := strings.Join(strings.Split(p.manifest("ceph: {}"), "---\n")[1:2], "")
	p.must(t, exitOK, first, []string{"apply", "-f", "-"}, "storagenode/n1 created")
	p.must(t, exitOK, "", []string{"apply", "--plan", name}, "storagenode/n1 unchanged", "storagenode/n2 created", "storagecluster/c created")

	// Somebody else's change in between is not written over.
	name = p.planned(t, p.manifest("interval: 30s, ceph: {}"))
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "begun", Name: name}, x); err != nil {
		t.Fatal(err)
	}
	x.Status.State = api.PlanApplying
	if err := p.Status().Update(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	newPerson(t, "begun", "holdfast:bob").must(t, exitOK,
		`{apiVersion: holdfast.io/v1alpha1, kind: StorageCluster, metadata: {name: c}, spec: {type: ceph, ceph: {}, deletionPolicy: Wipe}}`,
		[]string{"apply", "-f", "-", "--force-conflicts"})
	p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "spec.deletionPolicy Retain -> Wipe")
}

// TestPlan_cutOffBeforeItsFirstWrite: a plan that is marked as being applied, and of which nothing is written, is looked at as if it were new.
func TestPlan_cutOffBeforeItsFirstWrite(t *testing.T) {
	t.Parallel()
	p := newHome(t, "cutoff")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	name := p.planned(t, p.manifest("interval: 30s, ceph: {}")) // its nodes are as it wants them, and were before
	p.begin(t, name)
	was := p.editHost(t, "cutoff-2", func(h *api.Host) { h.Labels["rack"] = "r1" })
	before := p.cluster(t).Spec.Interval
	p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "is out of date; nothing was changed. Since then:", "label rack (unset) -> r1")
	if p.cluster(t).Spec.Interval != before {
		t.Error("the cluster was changed all the same")
	}
	p.editHost(t, "cutoff-2", func(h *api.Host) { h.Labels = was.Labels })
	p.must(t, exitOK, "", []string{"apply", "--plan", name}, "storagecluster/c configured")

	gone := nameIn(t, p.must(t, exitRefused, "", []string{"plan", "--delete", "storagenode/n3"}, "3 mons need 3 hosts"))
	p.begin(t, gone)
	p.must(t, exitRefused, "", []string{"delete", "--plan", gone}, "nothing was changed", "3 mons need 3 hosts")
	p.must(t, exitOK, "", []string{"delete", "--plan", gone, "--when-possible"}, "storagenode/n3 deleted")
	p.begin(t, gone) // it was cut off after the last deletion
	p.must(t, exitOK, "", []string{"delete", "--plan", gone}, "storagenode/n3 does not exist")
}

// TestPlan_begunDestroysNothingUnnamed: the rest of a plan that was begun is not written when it would destroy data now, and did not when it was made.
func TestPlan_begunDestroysNothingUnnamed(t *testing.T) {
	t.Parallel()
	p := newWiped(t, "unnamed", api.DeletionRetain)
	nodes := strings.Split(strings.ReplaceAll(strings.ReplaceAll(p.manifest("ceph: {}"), "[wwn-10]", "[]"), "[wwn-20]", "[]"), "---\n")[1:3]
	name := p.planned(t, strings.Join(nodes, "---\n"))
	p.begin(t, name)
	p.must(t, exitOK, nodes[0], []string{"apply", "-f", "-"}, "storagenode/n1 configured")
	policy := func(to api.DeletionPolicy) {
		c := p.cluster(t)
		c.Spec.DeletionPolicy = to
		if err := p.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	policy(api.DeletionWipe)
	p.must(t, exitRefused, "", []string{"apply", "--plan", name}, "this would destroy data now, but not in the plan: apply storagenode/unnamed/n2")
	n2 := &api.StorageNode{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "unnamed", Name: "n2"}, n2); err != nil || len(n2.Spec.Devices) != 1 {
		t.Fatalf("n2 has the devices %v (%v)", n2.Spec.Devices, err)
	}
	policy(api.DeletionRetain)
	p.must(t, exitOK, "", []string{"apply", "--plan", name}, "storagenode/n2 configured")
}

// TestDelete_ofDataNamesItsPlan: what destroys data is done only by the name of a plan.
func TestDelete_ofDataNamesItsPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "wiped")
	p.must(t, exitOK, p.manifest("deletionPolicy: Wipe, ceph: {}"), []string{"apply", "-f", "-"})
	p.must(t, exitOK, "", []string{"plan", "--delete", "storagecluster/c", "--dry-run"}, "1 object to delete; highest risk: None")
	osd := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "wiped", Name: "c-osd-0"}, Spec: api.DaemonSpec{
		Cluster: "c", Type: "ceph-osd", ID: "0", Host: "wiped-1", State: api.WantRunning, Command: []string{"ceph-osd"},
		Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-10"}}, OnRemoval: api.DeletionRetain,
	}}
	if err := p.Create(t.Context(), osd); err != nil {
		t.Fatal(err)
	}
	out := p.must(t, exitRefused, "", []string{"delete", "storagecluster", "c"},
		"[DATA IS DESTROYED]", "device wwn-10 (ACME DISK S10 4 TiB)", "highest risk: Data", "name it with: holdfast delete --plan plan-")
	if p.cluster(t).DeletionTimestamp != nil {
		t.Fatal("the cluster was deleted")
	}
	p.must(t, exitRefused, p.manifest("deletionPolicy: Wipe, ceph: {}"), []string{"delete", "-f", "-"}, "[DATA IS DESTROYED]")
	p.must(t, exitRefused, "", []string{"plan", "--delete", "storagecluster/none"}, "storagecluster/none does not exist")
	p.must(t, exitUsage, "", []string{"plan", "--delete", "c"}, "use KIND/NAME")
	p.must(t, exitOK, "", []string{"delete", "--plan", nameIn(t, out)}, "storagecluster/c deleted")
	p.must(t, exitRefused, "", []string{"delete", "--plan", nameIn(t, out)}, "was already carried out")
}

// TestApply_ofDataNamesItsPlan: a policy that is changed while the cluster is already going would wipe what was to be kept.
func TestApply_ofDataNamesItsPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "policy")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	c := p.cluster(t)
	c.Finalizers = []string{"holdfast.io/cluster"}
	if err := p.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	osd := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "policy", Name: "c-osd-0"}, Spec: api.DaemonSpec{
		Cluster: "c", Type: "ceph-osd", ID: "0", Host: "policy-1", State: api.WantRunning, Command: []string{"ceph-osd"},
		Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-10"}}, OnRemoval: api.DeletionRetain,
	}}
	if err := p.Create(t.Context(), osd); err != nil {
		t.Fatal(err)
	}
	p.must(t, exitOK, "", []string{"delete", "storagecluster", "c", "--wait=false"}, "storagecluster/c deleted")
	change := p.manifest("deletionPolicy: Wipe, ceph: {}")
	out := p.must(t, exitRefused, change, []string{"apply", "-f", "-"}, "spec.deletionPolicy:", "Retain -> Wipe", "[DATA IS DESTROYED]")
	if p.cluster(t).Spec.DeletionPolicy != api.DeletionRetain {
		t.Fatal("the policy was changed")
	}
	p.must(t, exitOK, "", []string{"apply", "--plan", nameIn(t, out)}, "storagecluster/c configured")

	// Now it is destroyed anyway, which keeps nobody from something else.
	p.must(t, exitOK, p.manifest("deletionPolicy: Wipe, interval: 30s, ceph: {}"), []string{"plan", "-f", "-", "--dry-run"}, "[DATA IS DESTROYED]")
	p.must(t, exitOK, p.manifest("deletionPolicy: Wipe, interval: 30s, ceph: {}"), []string{"apply", "-f", "-"}, "storagecluster/c configured")
}

// TestApply_ofADiskNamesItsPlan: Ceph, which would have to say what becomes of the OSD, does not answer.
func TestApply_ofADiskNamesItsPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "disk")
	manifest := p.manifest("deletionPolicy: Wipe, ceph: {}")
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"})
	node := &api.StorageNode{}
	if err := p.Get(t.Context(), types.NamespacedName{Namespace: "disk", Name: "n1"}, node); err != nil {
		t.Fatal(err)
	}
	node.Status.Host, node.Status.Devices = "disk-1", []api.ClaimedDevice{{Name: "wwn-10", ID: "wwn-10"}}
	if err := p.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	without := strings.Replace(manifest, "devices: [wwn-10]", "devices: []", 1)
	p.must(t, exitOK, without, []string{"plan", "-f", "-", "--dry-run"}, "highest risk: None")
	osd := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "disk", Name: "c-osd-0"}, Spec: api.DaemonSpec{
		Cluster: "c", Type: "ceph-osd", ID: "0", Host: "disk-1", State: api.WantRunning, Command: []string{"ceph-osd"},
		Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-10"}}, OnRemoval: api.DeletionRetain,
	}}
	if err := p.Create(t.Context(), osd); err != nil {
		t.Fatal(err)
	}
	p.must(t, exitRefused, without, []string{"apply", "-f", "-"}, "[DATA IS DESTROYED]", "name it with: holdfast apply --plan plan-")
	p.must(t, exitRefused, "", []string{"delete", "storagenode", "n1"}, "[DATA IS DESTROYED]", "name it with: holdfast delete --plan plan-")
	p.must(t, exitOK, manifest, []string{"apply", "-f", "-"}, "storagenode/n1 unchanged")
}

// TestDelete_ofAPoolNamesItsPlan: what was made goes with its data, whether or not Ceph can be asked now; what was never made has none.
func TestDelete_ofAPoolNamesItsPlan(t *testing.T) {
	t.Parallel()
	p := newHome(t, "wiped-pools")
	const pool = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: %s}\nspec: {cluster: c, deletionPolicy: %s}\n"
	for name, policy := range map[string]string{"made": "Wipe", "unmade": "Wipe", "kept": "Retain"} {
		p.must(t, exitOK, fmt.Sprintf(pool, name, policy), []string{"apply", "-f", "-"})
		made := &api.Pool{}
		if err := p.Get(t.Context(), types.NamespacedName{Namespace: "wiped-pools", Name: name}, made); err != nil {
			t.Fatal(err)
		}
		if made.Status.State = api.ResourceOnline; name == "unmade" {
			made.Status.State = api.ResourcePending
		}
		if err := p.Status().Update(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	p.must(t, exitRefused, "", []string{"delete", "pool", "made"}, "[DATA IS DESTROYED]", "name it with: holdfast delete --plan plan-")
	p.must(t, exitOK, "", []string{"delete", "pool", "unmade"}, "pool/unmade deleted")
	p.must(t, exitOK, "", []string{"delete", "pool", "kept"}, "pool/kept deleted")
}

// TestDelete_saysWhatIsRefused: what cannot be done now is not begun, unless its owner says that it may wait.
func TestDelete_saysWhatIsRefused(t *testing.T) {
	t.Parallel()
	p := newHome(t, "held")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	p.must(t, exitRefused, "", []string{"delete", "storagenode", "n3"}, "nothing was changed", "3 mons need 3 hosts", "--when-possible")
	p.must(t, exitOK, "", []string{"delete", "storagenode", "n3", "--when-possible"}, "refused for now: ", "3 mons need 3 hosts", "storagenode/n3 deleted")
}

func TestPlan_output(t *testing.T) {
	t.Parallel()
	p := newHome(t, "output")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"plan", "-f", "-", "-o", "yaml"}, "kind: Plan", "operation: Apply", "object: daemon/c-mon-a")
	p.must(t, exitUsage, p.manifest("ceph: {}"), []string{"plan", "-f", "-", "-o", "xml"})
	p.must(t, exitRefused, p.manifest("ceph: {mon: {count: 5}}"), []string{"plan", "-f", "-"}, "5 mons need 5 hosts")
	p.must(t, exitRefused, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: hunter2}}", []string{"plan", "-f", "-"}, "cannot contain a Secret")
	var list api.PlanList
	if err := p.List(t.Context(), &list, client.InNamespace("output")); err != nil || len(list.Items) > 0 {
		t.Errorf("%d plans were kept (%v)", len(list.Items), err)
	}
}

// TestPlan_ofOneDeletionTwice: when another plan has deleted what a plan deletes, it is said that
// this is gone, and of nothing else.
func TestPlan_ofOneDeletionTwice(t *testing.T) {
	t.Parallel()
	p := newHome(t, "twice")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	p.must(t, exitOK, "{apiVersion: holdfast.io/v1alpha1, kind: Pool, metadata: {name: x}, spec: {cluster: c}}",
		[]string{"apply", "-f", "-", "--when-possible"})
	first := nameIn(t, p.must(t, exitOK, "", []string{"plan", "--delete", "pool/x"}))
	p.editHost(t, "twice-1", func(h *api.Host) { h.Labels["rack"] = "r1" }) // else both are one plan
	second := nameIn(t, p.must(t, exitOK, "", []string{"plan", "--delete", "pool/x"}))
	p.must(t, exitOK, "", []string{"delete", "--plan", second, "--wait=false"}, "pool/x deleted")
	out := p.must(t, exitRefused, "", []string{"delete", "--plan", first},
		"is out of date; nothing was changed. Since then:", "pool/twice/x is gone")
	if strings.Contains(out, "storagecluster") {
		t.Errorf("the cluster is there, and it is said that\n%s", out)
	}
}
