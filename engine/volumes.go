package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// VolumesOf returns the Volumes of a cluster, sorted by name. Stores use it to fill View.Volumes.
func VolumesOf(all []api.Volume, cluster types.NamespacedName) []api.Volume {
	var own []api.Volume
	for i := range all {
		if v := &all[i]; v.Namespace == cluster.Namespace && v.Spec.Cluster == cluster.Name {
			own = append(own, *v)
		}
	}
	slices.SortFunc(own, func(a, b api.Volume) int { return strings.Compare(a.Name, b.Name) })
	return own
}

// AdoptVolume puts the engine's finalizer on a Volume that is not being deleted, and says whether that changed it.
func AdoptVolume(v *api.Volume) bool {
	if v.DeletionTimestamp != nil || slices.Contains(v.Finalizers, api.FinalizerVolume) {
		return false
	}
	v.Finalizers = append(slices.Clone(v.Finalizers), api.FinalizerVolume)
	return true
}

// ReleaseVolume takes the engine's finalizer from a Volume, and says whether that changed it.
func ReleaseVolume(v *api.Volume) bool {
	kept := slices.DeleteFunc(slices.Clone(v.Finalizers), func(f string) bool { return f == api.FinalizerVolume })
	changed := len(kept) != len(v.Finalizers)
	v.Finalizers = kept
	return changed
}

// ReasonNoCluster is the reason of the condition Accepted of a Volume that names a StorageCluster which is not there.
const ReasonNoCluster = "NoCluster"

// OrphanVolume says of a Volume that there is no cluster which could make it. One that comes looks at it anew.
func OrphanVolume(v *api.Volume) {
	rejected(v, ReasonNoCluster, fmt.Sprintf("there is no StorageCluster %s in namespace %s, so nobody makes the volume: declare the cluster, or name another one",
		v.Spec.Cluster, v.Namespace))
}

// rejected says of a Volume why no driver has a word on it.
func rejected(v *api.Volume, reason, message string) {
	c := falseCondition(api.VolumeAccepted, reason, []string{message})
	c.ObservedGeneration = v.Generation
	was := meta.FindStatusCondition(v.Status.Conditions, api.VolumeAccepted)
	v.Status.State, v.Status.ObservedGeneration, v.Status.Message, v.Status.Conditions = "", v.Generation, message, nil
	if was != nil {
		v.Status.Conditions = []metav1.Condition{*was}
	}
	meta.SetStatusCondition(&v.Status.Conditions, c)
}

// tellOrphans says of the Volumes of a cluster that does not exist that nobody makes them.
func tellOrphans(ctx context.Context, store Store, cluster types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	all, err := store.Volumes(ctx)
	if err != nil {
		return fmt.Errorf("while listing volumes: %w", err)
	}
	for _, v := range VolumesOf(all, cluster) {
		told := v.DeepCopy()
		OrphanVolume(told)
		err := store.PutVolumeStatus(ctx, v.Namespace, VolumeStatus{Name: v.Name, Status: told.Status, Unadopted: true, Seen: &v})
		if err != nil && !errors.Is(err, ErrStale) { // one that has changed is looked at again
			return fmt.Errorf("while saying of volume %s that it has no cluster: %w", v.Name, err)
		}
	}
	return nil
}

func (v *View) volume(name string) *api.Volume {
	if i := slices.IndexFunc(v.Volumes, func(x api.Volume) bool { return x.Name == name }); i >= 0 {
		return &v.Volumes[i]
	}
	return nil
}

// unspoken refuses each Volume of which the driver says nothing, and never did: people would wait for it in vain.
func unspoken(v *View, p *Plan) {
	for i := range v.Volumes {
		x := v.Volumes[i].DeepCopy()
		said := slices.ContainsFunc(p.Volumes, func(s VolumeStatus) bool { return s.Name == x.Name })
		if said || x.Status.State != "" || v.Cluster.DeletionTimestamp != nil {
			continue
		}
		message := fmt.Sprintf("nothing is made for it: clusters of type %s have no volumes here", v.Cluster.Spec.Type)
		p.Decisions = append(p.Decisions, api.Decision{Object: "volume/" + x.Name, Verdict: api.VerdictRefuse, Message: message})
		if rejected(x, ReasonRefused, message); !equality.Semantic.DeepEqual(x.Status, v.Volumes[i].Status) {
			p.Volumes = append(p.Volumes, VolumeStatus{Name: x.Name, Status: x.Status, Unadopted: true})
		}
	}
}

// volumesAfter are the Volumes when the plan was carried out.
func (v *View) volumesAfter(p *Plan) []api.Volume {
	next := slices.Clone(v.Volumes)
	for _, change := range p.Volumes {
		i := slices.IndexFunc(next, func(x api.Volume) bool { return x.Name == change.Name })
		switch {
		case i < 0, change.Gone && !change.Same(&next[i]):
		case change.Gone:
			next = slices.Delete(next, i, i+1)
		default:
			next[i].Status = change.Status
		}
	}
	return next
}

func (d *differ) volumes(before, after []api.Volume) {
	compare(before, after, func(v *api.Volume) string { return v.Name }, func(was, is *api.Volume) {
		switch {
		case was == nil:
			d.add(VolumeNew, "volume/"+is.Name, "the volume was declared")
			d.volumeState(&api.Volume{}, is)
		case is == nil:
			d.add(VolumeGone, "volume/"+was.Name, "the volume is gone")
		default:
			d.volume(was, is)
		}
	})
}

func (d *differ) volume(was, is *api.Volume) {
	object := "volume/" + is.Name
	switch {
	case was.DeletionTimestamp == nil && is.DeletionTimestamp != nil:
		d.add(VolumeChanged, object, "the volume is being removed")
	case was.Generation != is.Generation && was.Generation != 0:
		d.add(VolumeChanged, object, "the spec was changed (generation %d to %d)", was.Generation, is.Generation)
	}
	d.volumeState(was, is)
}

func (d *differ) volumeState(was, is *api.Volume) {
	object := "volume/" + is.Name
	a, b := volumeAccepted(was), volumeAccepted(is)
	if b.Status == metav1.ConditionFalse && (a.Status != b.Status || a.Message != b.Message) {
		d.add(VolumeChanged, object, "the volume is not accepted: %s", b.Message)
	}
	if was.Status.State == is.Status.State {
		return
	}
	switch is.Status.State {
	case api.VolumeOnline:
		d.add(VolumeOnline, object, "the volume is Online%s", wasText(string(was.Status.State)))
	case api.VolumeDegraded:
		d.add(VolumeDegraded, object, "the volume is Degraded%s: %s", wasText(string(was.Status.State)), is.Status.Message)
	case api.VolumeOffline:
		d.add(VolumeOffline, object, "the volume is Offline%s: %s", wasText(string(was.Status.State)), is.Status.Message)
	default: // steps on the way are not worth an event
	}
}

func volumeAccepted(v *api.Volume) metav1.Condition {
	if c := meta.FindStatusCondition(v.Status.Conditions, api.VolumeAccepted); c != nil {
		return *c
	}
	return metav1.Condition{}
}
