package gluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestDeleteLost: a volume that is wiped and a lost node that leaves do not wait for each other.
func TestDeleteLost(t *testing.T) {
	for name, tt := range map[string]struct {
		layout  *api.VolumeDurability
		size    string
		stopped bool // the volume was stopped before the node was lost
	}{
		"copies": {replica3(), "1Gi", false}, "copies, stopped": {replica3(), "1Gi", true},
		"a witness":  {&api.VolumeDurability{Arbiter: &api.VolumeArbiter{}}, "1Gi", true},
		"fragments":  {&api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 2, Redundancy: 1}}, "1Gi", true},
		"single":     {&api.VolumeDurability{Distribute: &api.VolumeDistribute{}}, "200Gi", false},
		"single, it": {&api.VolumeDurability{Distribute: &api.VolumeDistribute{}}, "1Gi", false},
	} {
		w := poolOf(t, 3)
		w.volume("v", tt.size, tt.layout).Spec.DeletionPolicy = api.DeletionWipe
		w.settle()
		lost := 3
		if name == "single, it" {
			lost = int(w.vol("v").Status.Bricks[0].Node[1] - '0')
		}
		if tt.stopped {
			w.gluster.volumes["v"].state = "Stopped"
		}
		w.power(lost, false)
		w.undeclare("n" + string(rune('0'+lost)))
		now := metav1.NewTime(w.now)
		w.vol("v").DeletionTimestamp = &now
		p := w.settle()
		d := w.daemons["c-glusterd-n"+string(rune('0'+lost))]
		if w.vol("v") != nil || w.gluster.volumes["v"] != nil || d != nil && d.DeletionTimestamp == nil {
			t.Errorf("%s: %+v\n%v\n%s", name, w.vol("v"), decisions(p), w.gluster.text())
		}
	}
}
