package gluster

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// deletedByHand is a pool whose volume v somebody deleted with the program gluster.
func deletedByHand(t *testing.T) (*world, string) {
	t.Helper()
	w := poolOf(t, 3)
	w.volume("v", "10Gi", replica3())
	w.settle()
	id := w.gluster.volumes["v"].id
	if w.vol("v").Status.ID != id {
		t.Fatalf("recorded is %q, and the pool has %q", w.vol("v").Status.ID, id)
	}
	delete(w.gluster.volumes, "v")
	return w, id
}

func present(v *api.Volume) (reason string) {
	if c := meta.FindStatusCondition(v.Status.Conditions, api.ResourcePresent); c != nil {
		return c.Reason
	}
	return ""
}

// A volume that was deleted by hand is not made anew in silence: its bricks hold the data.
func TestVolumeDeletedByHand(t *testing.T) {
	w, id := deletedByHand(t)
	p := w.settle()
	s := w.vol("v").Status
	if len(w.gluster.volumes) != 0 || s.State != api.ResourceOffline || present(w.vol("v")) != api.ReasonDeletedOutside || s.ID != id || p.Status.Status != api.StorageOffline {
		t.Fatalf("%+v %v", s, decisions(p))
	}
	for i := 1; i <= 3; i++ {
		if brick := fmt.Sprintf("10.0.0.%d:/m/wwn-%d0/v.1", i, i); !strings.Contains(s.Message, brick) {
			t.Errorf("%s is not named: %s", brick, s.Message)
		}
	}
	w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: "another"}
	if w.settle(); len(w.gluster.volumes) != 0 {
		t.Fatal("a word about another volume counts")
	}
	w.vol("v").Annotations[api.AnnotationRecreate] = api.LossWord(w.vol("v").Common())
	p = w.settle()
	s = w.vol("v").Status
	if s.State != api.ResourceOnline || s.ID == id || s.ID != w.gluster.volumes["v"].id || !p.Done || len(s.Bricks) != 3 || strings.HasSuffix(s.Bricks[0].Path, "v.1") {
		t.Fatalf("accepted: %+v %v", s, decisions(p))
	}
	if !contains(decisions(p, api.VerdictSkip), "/m/wwn-10/v.1 (volume id "+id+")") {
		t.Errorf("what is left is named nowhere: %v", decisions(p))
	}
	delete(w.gluster.volumes, "v")
	if w.settle(); len(w.gluster.volumes) != 0 || w.vol("v").Status.State != api.ResourceOffline {
		t.Errorf("the word counts again for the next volume: %+v", w.vol("v").Status)
	}
}

// A volume by the same name that somebody made is not the one that was recorded, and is neither used nor deleted for it.
func TestVolumeReplacedByHand(t *testing.T) {
	w, id := deletedByHand(t)
	other := poolOf(t, 3)
	other.volume("v", "10Gi", replica3())
	other.settle()
	made := other.gluster.volumes["v"]
	made.id = "made-by-hand"
	for _, b := range made.bricks {
		b.node, b.path = w.gluster.nodes[b.node.daemon], strings.Replace(b.path, "v.1", "mine", 1)
	}
	w.gluster.volumes["v"] = made
	made.keep()
	w.settle()
	if s := w.vol("v").Status; present(w.vol("v")) != api.ReasonNameTaken || s.State != api.ResourceOffline || s.ID != id || !strings.Contains(s.Message, made.id) {
		t.Fatalf("%+v", s)
	}
	deleted := w.vol("v").DeepCopy()
	w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: api.LossWord(w.vol("v").Common())}
	if p := w.settle(); w.vol("v").Status.ID != made.id || w.vol("v").Status.State != api.ResourceOnline {
		t.Errorf("accepted: %+v %v", w.vol("v").Status, decisions(p))
	}
	*w.vol("v") = *deleted
	now := metav1.NewTime(w.now)
	w.vol("v").Spec.DeletionPolicy, w.vol("v").DeletionTimestamp = api.DeletionWipe, &now
	if p := w.settle(); w.vol("v") != nil || w.gluster.volumes["v"] != made {
		t.Errorf("deleted: %v %v", w.gluster.text(), decisions(p))
	}
}

// Of a volume that an earlier Holdfast made no id is recorded: it is not made anew in silence either.
func TestVolumeDeletedByHand_noID(t *testing.T) {
	w, _ := deletedByHand(t)
	w.vol("v").Status.ID = ""
	p := w.settle()
	if s := w.vol("v").Status; len(w.gluster.volumes) != 0 || s.State != api.ResourceOffline || !strings.Contains(s.Message, "10.0.0.3:/m/wwn-30/v.1") {
		t.Fatalf("%+v %v", s, decisions(p))
	}
	w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: api.LossWord(w.vol("v").Common())}
	if p = w.settle(); w.vol("v").Status.State != api.ResourceOnline || w.vol("v").Status.ID != w.gluster.volumes["v"].id {
		t.Errorf("accepted: %+v %v", w.vol("v").Status, decisions(p))
	}
	w.vol("v").Status.ID = ""
	if w.settle(); w.vol("v").Status.ID != w.gluster.volumes["v"].id {
		t.Errorf("one that is there: %+v", w.vol("v").Status)
	}
}
