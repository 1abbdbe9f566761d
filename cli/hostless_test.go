package cli

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// nodeFor is the manifest of a StorageNode of cluster c.
func nodeFor(name, selector string) string {
	return fmt.Sprintf("{apiVersion: holdfast.io/v1alpha1, kind: StorageNode, metadata: {name: %s}, spec: {type: ceph, cluster: c, nodeSelector: {%s}, devices: [wwn-30]}}\n", name, selector)
}

// selects says what the selector of a node is; nothing where there is no node.
func (p *person) selects(t *testing.T, name string) string {
	t.Helper()
	n := &api.StorageNode{}
	err := p.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, n)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if apierrors.IsNotFound(err) {
		return ""
	}
	return labelsText(n.Spec.NodeSelector)
}

func labelsText(labels map[string]string) string {
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
}

// TestApply_hostless: a node whose labels no host has is nearly always a slip, so it is refused, with what may have been meant.
func TestApply_hostless(t *testing.T) {
	t.Parallel()
	p := newHome(t, "hostless")
	rack := func(h *api.Host) { h.Labels[api.LabelRack] = "hostless" }
	p.editHost(t, "hostless-1", rack)
	p.editHost(t, "hostless-2", rack)
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	const n3 = "kubernetes.io/hostname=hostless-3"
	for name, tt := range map[string]struct{ node, manifest, says string }{
		"a label that nobody has": {"n9", nodeFor("n9", "room: cellar"), "the labels room=cellar: see the hosts with 'holdfast host list'"},
		"a slip in a label":       {"n9", nodeFor("n9", "rack: hostless"), "the labels rack=hostless: did you mean topology.holdfast.io/rack=hostless?"},
		"of a cluster to come":    {"n9", strings.Replace(nodeFor("n9", "rack: hostless"), "cluster: c", "cluster: d", 1), "the labels rack=hostless: did you mean"},
		"a node that is there":    {"n3", nodeFor("n3", "kubernetes.io/hostname: hostless-33"), "did you mean " + n3 + "?"},
	} {
		t.Run(name, func(t *testing.T) {
			before := p.selects(t, tt.node)
			for _, command := range []string{"apply", "plan"} {
				p.must(t, exitRefused, tt.manifest, []string{command, "-f", "-"}, "nothing was changed:\nstoragenode/"+tt.node+
					": spec.nodeSelector selects no host with ", tt.says, "use '--when-possible'")
			}
			if after := p.selects(t, tt.node); after != before {
				t.Errorf("the node selected %q, and selects %q", before, after)
			}
		})
	}
	if n := p.plans(t); n > 0 {
		t.Errorf("%d plans were kept", n)
	}
}

// TestApply_hostlessWhenPossible: a machine that joins later may be declared before it does, and then keeps nobody from anything else.
func TestApply_hostlessWhenPossible(t *testing.T) {
	t.Parallel()
	p := newHome(t, "later")
	p.must(t, exitOK, p.manifest("ceph: {}"), []string{"apply", "-f", "-"})
	early := nodeFor("n9", "kubernetes.io/hostname: machine")
	const warning = "storagenode/n9: spec.nodeSelector selects no host"
	p.must(t, exitOK, early, []string{"apply", "-f", "-", "--when-possible"}, "warning: refused for now: "+warning, "storagenode/n9 created")
	p.must(t, exitOK, early, []string{"apply", "-f", "-"}, "warning: "+warning, "storagenode/n9 unchanged")
	p.must(t, exitOK, strings.Replace(early, "wwn-30", "wwn-31", 1), []string{"apply", "-f", "-"}, "warning: "+warning, "storagenode/n9 configured")
	p.must(t, exitRefused, nodeFor("n9", "kubernetes.io/hostname: engine"), []string{"apply", "-f", "-"}, warning)

	again := nodeFor("n8", "kubernetes.io/hostname: machine")
	plan := nameIn(t, p.must(t, exitOK, again, []string{"plan", "-f", "-", "--when-possible"}, "warning: refused for now: storagenode/n8"))
	p.must(t, exitUsage, "", []string{"apply", "--plan", plan, "--when-possible"}, "a plan contains its files, and how to treat conflicts and refusals")
	p.must(t, exitOK, "", []string{"apply", "--plan", plan}, "storagenode/n8 created")
	if got := p.selects(t, "n9") + p.selects(t, "n8"); got != strings.Repeat("kubernetes.io/hostname=machine", 2) {
		t.Errorf("the nodes select %q", got)
	}
}

// TestApply_hostlessWait: who declares a node early and waits is told what for, and what is meant when the machine joins; a selector for mons that
// selects nobody is refused in a cluster that runs, too. With a real engine and a Ceph in memory.
func TestApply_hostlessWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDisks("h1", "h2", "h3")
	b.withCeph()
	b.expectInput(manifestOn("h1", "h2", "h3"), "apply -f - --wait --timeout 5m", exitOK)
	all := manifestOn("h1", "h2", "h3")
	const selector, none = "mon: {count: 3, hostSelector: {matchLabels: {rack: r9}}}", "mons: spec.ceph.mon.hostSelector selects no host: no host has the labels rack=r9"
	b.expectInput(strings.Replace(all, "mon: {count: 3}", selector, 1), "apply -f -", exitRefused, "nothing was changed", none)
	b.expectInput(strings.Replace(all, "mon: {count: 3}", selector, 1), "apply -f - --when-possible --wait --timeout 5m", exitRefused, "warning: refused for now", "parts of c cannot be carried out", none)
	b.expect("why cluster/c", exitOK, "The spec cannot be carried out", none)
	b.expect("status c", exitOK, "DEGRADED, HEALTH_OK", "mon.a  h1  Running", none)
	b.expectInput(all, "apply -f - --wait --timeout 5m", exitOK)

	early := strings.Split(manifestOn("h9"), "---\n")[1]
	const waits = "no host has the labels kubernetes.io/hostname=h9: check that the host has joined"
	b.expectInput(early, "apply -f - --when-possible --wait --timeout 2s", exitTimeout, "c is not ready after 2s", waits)
	b.expect("why node/n9", exitOK, waits, "'holdfast token create'")
	b.addDisks("h9")
	b.expectInput(early, "apply -f - --wait --timeout 5m", exitOK, "storagenode/n9 unchanged")
}
