package gluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestClosed: a closed node or device gets no new bricks, and those that it has stay and serve; the
// plan says so.
func TestClosed(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 4; i++ {
		w.host(i, 2)
		w.node(i, int32(i))
	}
	w.volume("old", "1Gi", nil)
	w.settle()
	has := w.vol("old").Status.Bricks[0].Node
	close := func(entries ...string) {
		for i := range w.nodes {
			if w.nodes[i].Name == has {
				w.nodes[i].Spec.GlusterFS.Closed = entries
			}
		}
	}
	on := func(volume string) (devices []string) {
		for _, b := range w.vol(volume).Status.Bricks {
			if b.Node == has {
				devices = append(devices, b.Device)
			}
		}
		return devices
	}
	close("*")
	w.volume("new", "1Gi", nil)
	p := w.settle()
	if !p.Done || len(on("new")) != 0 || len(on("old")) != 1 || w.vol("old").Status.State != api.ResourceOnline {
		t.Errorf("a closed node: %v, %v, %v", on("new"), on("old"), decisions(p))
	}
	if !contains(decisions(p, api.VerdictSkip), "takes no new bricks anywhere") {
		t.Errorf("nothing says so: %v", decisions(p))
	}
	for i := range w.nodes {
		if c := meta.FindStatusCondition(w.nodes[i].Status.Conditions,
			api.NodeTakesBricks); (c != nil) != (w.nodes[i].Name == has) {
			t.Errorf("condition of %s: %v", w.nodes[i].Name, c)
		}
	}
	w.volume("wide", "1Gi", &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: 4}})
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "open what spec.glusterfs.closed closes on "+has) {
		t.Errorf("no place: %v", decisions(p))
	}
	device := on("old")[0]
	close(device)
	w.settle()
	if d := on("wide"); len(d) != 1 || d[0] == device {
		t.Errorf("a closed device %s: %v", device, d)
	}
	closedUnknown(t, w, has)
	close()
	if p := w.settle(); !p.Done || meta.FindStatusCondition(w.nodes[0].Status.Conditions, api.NodeTakesBricks) != nil {
		t.Errorf("open again: %v", decisions(p))
	}
}

// closedUnknown: an entry that names nothing of a node closes nothing, and refuses nothing.
func closedUnknown(t *testing.T, w *world, node string) {
	t.Helper()
	for i := range w.nodes {
		if w.nodes[i].Name == node {
			w.nodes[i].Spec.GlusterFS.Closed = []string{"/dev/nothing"}
		}
	}
	w.volume("wider", "1Gi", &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: 4}})
	p := w.settle()
	if !p.Done || len(decisions(p, api.VerdictRefuse)) > 0 ||
		!contains(decisions(p, api.VerdictSkip), "/dev/nothing, which is neither a device nor a directory") {
		t.Errorf("%v", decisions(p))
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if told := meta.IsStatusConditionTrue(n.Status.Conditions, api.NodeTakesBricks); told != (n.Name == node) {
			t.Errorf("%s: %v", n.Name, n.Status.Conditions)
		}
		if n.Name == node && !meta.IsStatusConditionTrue(n.Status.Conditions, api.NodeAccepted) {
			t.Errorf("%s is refused: %v", node, n.Status.Conditions)
		}
	}
}
