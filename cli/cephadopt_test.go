package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

// What is Holdfast's by now, or is about to be, is not forgotten: its processes would end with their Daemons.
func TestUndoWords(t *testing.T) {
	adopted := map[string]string{ceph.AnnotationAdopted: "1-2"}
	handOver := func(state api.ActionState) []api.Action {
		return []api.Action{{ObjectMeta: metav1.ObjectMeta{Name: "hand"}, Spec: api.ActionSpec{Kind: ceph.HandOverKind, Cluster: "c"}, Status: api.ActionStatus{State: state}}}
	}
	for _, tt := range []struct {
		annotations map[string]string
		state       api.WantedState
		actions     []api.Action
		refused     string
	}{
		{adopted, api.WantWatched, nil, ""},
		{adopted, api.WantWatched, handOver(api.ActionDone), ""},
		{adopted, api.WantWatched, handOver(api.ActionRunning), "holdfast action cancel hand"},
		{adopted, api.WantWatched, handOver(api.ActionPendingSchedule), "holdfast action cancel hand"},
		{adopted, api.WantRunning, nil, "daemon/c-mon-a was handed over"},
		{nil, api.WantWatched, nil, "was not adopted"},
	} {
		cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: tt.annotations}}
		daemons := []api.Daemon{{ObjectMeta: metav1.ObjectMeta{Name: "c-mon-a"}, Spec: api.DaemonSpec{State: tt.state}}}
		words, err := undoWords(cluster, daemons, tt.actions)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%+v: %q, %v", tt, words, err)
		}
	}
}

// What was adopted is taken back by applying it without that, also where the command was cut off when the object was just made.
func TestDeclare_leftOutIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newHome(t, "declare")
	g := &globals{kubeconfig: p.kubeconfig, streams: streams{out: io.Discard}}
	owner, err := g.owner()
	if err != nil {
		t.Fatal(err)
	}
	for name, cutOff := range map[string]bool{"whole": false, "cut": true} {
		node := &api.StorageNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name},
			Spec: api.StorageNodeSpec{
				Type: api.StorageCeph, Cluster: name, NodeSelector: map[string]string{api.LabelHostname: "declare-1"}, Devices: []string{"wwn-10", "wwn-11"},
			},
		}
		if cutOff {
			if err := p.Create(t.Context(), node.DeepCopy(), client.FieldOwner(owner)); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.declare(t.Context(), &writer{client: p, owner: owner}, node); err != nil {
			t.Fatal(err)
		}
		manifest := fmt.Sprintf("apiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: %s}\nspec: {type: ceph, cluster: %[1]s, "+
			"nodeSelector: {kubernetes.io/hostname: declare-1}, devices: [wwn-10]}\n", name)
		p.must(t, exitOK, manifest, []string{"apply", "-f", "-"}, "storagenode/"+name+" configured")
		if err := p.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		if got := node.Spec.Devices; !slices.Equal(got, []string{"wwn-10"}) {
			t.Errorf("%s: devices are %v", name, got)
		}
	}
}
