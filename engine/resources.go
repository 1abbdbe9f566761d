package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// ResourceObject is what a resource is called in decisions and events, such as "volume/NAME".
func ResourceObject(r api.Resource) string {
	return kindWord(r) + "/" + r.GetName()
}

// kindWord is the kind of a resource in a sentence.
func kindWord(r api.Resource) string { return strings.ToLower(r.ResourceKind()) }

// ClusterOfResource is the StorageCluster that a resource is wanted from.
func ClusterOfResource(r api.Resource) types.NamespacedName {
	return types.NamespacedName{Namespace: r.GetNamespace(), Name: r.ClusterName()}
}

// CopyResource is a deep copy.
func CopyResource(r api.Resource) api.Resource { return r.DeepCopyObject().(api.Resource) }

// ResourcesOf returns the resources of a cluster, sorted by what they are called. Stores use it to fill View.Resources.
func ResourcesOf(all []api.Resource, cluster types.NamespacedName) []api.Resource {
	var own []api.Resource
	for _, r := range all {
		if ClusterOfResource(r) == cluster {
			own = append(own, r)
		}
	}
	SortResources(own)
	return own
}

// SortResources sorts resources by what they are called, those of a name by their namespaces.
func SortResources(all []api.Resource) {
	slices.SortFunc(all, func(a, b api.Resource) int {
		return cmp.Or(strings.Compare(ResourceObject(a), ResourceObject(b)), strings.Compare(a.GetNamespace(), b.GetNamespace()))
	})
}

// OfKind returns the resources of one kind, in their order: OfKind[*api.Volume](view.Resources).
func OfKind[R api.Resource](all []api.Resource) []R {
	var found []R
	for _, r := range all {
		if x, ok := r.(R); ok {
			found = append(found, x)
		}
	}
	return found
}

// AdoptResource puts the engine's finalizer on a resource that is not being deleted, and says whether that changed it.
func AdoptResource(r api.Resource) bool {
	if r.GetDeletionTimestamp() != nil || slices.Contains(r.GetFinalizers(), api.FinalizerResource) {
		return false
	}
	r.SetFinalizers(append(slices.Clone(r.GetFinalizers()), api.FinalizerResource))
	return true
}

// ReleaseResource takes the engine's finalizer from a resource, and says whether that changed it.
func ReleaseResource(r api.Resource) bool {
	was := r.GetFinalizers()
	r.SetFinalizers(slices.DeleteFunc(slices.Clone(was), func(f string) bool { return f == api.FinalizerResource }))
	return len(r.GetFinalizers()) != len(was)
}

// ReasonNoCluster is the reason of the condition Accepted of a resource that names a StorageCluster which is not there.
const ReasonNoCluster = "NoCluster"

// OrphanResource says of a resource that there is no cluster which could make it. One that comes looks at it anew.
func OrphanResource(r api.Resource) {
	rejected(r, ReasonNoCluster, fmt.Sprintf("StorageCluster %s does not exist in namespace %s: declare it, or "+
		"correct spec.cluster of the %s", r.ClusterName(), r.GetNamespace(), kindWord(r)))
}

// rejected says of a resource why no driver has a word on it.
func rejected(r api.Resource, reason, message string) {
	c := falseCondition(api.ResourceAccepted, reason, []string{message})
	c.ObservedGeneration = r.GetGeneration()
	s := r.Common()
	kept := []string{api.ResourceAccepted, api.ConditionReady, api.ConditionStalled} // for the times when they changed
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return !slices.Contains(kept, c.Type) })
	s.State, s.ObservedGeneration, s.Message = "", r.GetGeneration(), message
	meta.SetStatusCondition(&s.Conditions, c)
	kstatus.Set(&s.Conditions, r.GetGeneration(), kstatus.Standing{Stalled: true, Reason: api.Reason(reason), Message: message}, c.LastTransitionTime.Time)
}

// Accept says in the status of a resource that its newest spec was looked at, and whether it can be as it is declared: problems are why it
// cannot. What it waits for is no matter of its spec, and told by its state and message.
func Accept(r api.Resource, problems []string, now time.Time) {
	c := metav1.Condition{Type: api.ResourceAccepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted, ObservedGeneration: r.GetGeneration()}
	if len(problems) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonRefused, words.Cut(strings.Join(problems, "; "), maxResourceMessage)
	}
	// The API keeps whole seconds; a finer time would make a status differ from itself once it was stored.
	c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
	r.Common().ObservedGeneration = r.GetGeneration()
	meta.SetStatusCondition(&r.Common().Conditions, c)
}

// maxResourceMessage is a bound of the API's schema, in bytes.
const maxResourceMessage = 1024

// tellOrphans says of the resources of a cluster that does not exist that nobody makes them.
func tellOrphans(ctx context.Context, store ResourceStore, cluster types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	all, err := store.Resources(ctx)
	if err != nil {
		return fmt.Errorf("while listing resources: %w", err)
	}
	for _, r := range ResourcesOf(all, cluster) {
		told := CopyResource(r)
		OrphanResource(told)
		err := store.PutResource(ctx, ResourceChange{Resource: told, Unadopted: true, Seen: r})
		if err != nil && !errors.Is(err, ErrStale) { // one that has changed is looked at again
			return fmt.Errorf("while reporting that %s has no cluster: %w", ResourceObject(r), err)
		}
	}
	return nil
}

// resource is the view's resource of what another one is called, or nil.
func (v *View) resource(object string) api.Resource {
	if i := indexOfResource(v.Resources, object); i >= 0 {
		return v.Resources[i]
	}
	return nil
}

func indexOfResource(all []api.Resource, object string) int {
	return slices.IndexFunc(all, func(r api.Resource) bool { return ResourceObject(r) == object })
}

// unspoken refuses each resource of which the driver says nothing, and never did: people would wait for it in vain.
func unspoken(v *View, p *Plan) {
	for _, was := range v.Resources {
		object := ResourceObject(was)
		said := slices.ContainsFunc(p.Resources, func(c ResourceChange) bool { return c.Object() == object })
		if said || was.Common().State != "" || v.Cluster.DeletionTimestamp != nil {
			continue
		}
		message := fmt.Sprintf("ignored: clusters of type %s do not support %ss", v.Cluster.Spec.Type, kindWord(was))
		p.Decide(api.VerdictRefuse, api.ReasonUnsupported, object, "%s", message)
		x := CopyResource(was)
		if rejected(x, ReasonRefused, message); !equality.Semantic.DeepEqual(x, was) {
			p.Resources = append(p.Resources, ResourceChange{Resource: x, Unadopted: true})
		}
	}
}

// resourcesAfter are the resources when the plan was carried out.
func (v *View) resourcesAfter(p *Plan) []api.Resource {
	next := slices.Clone(v.Resources)
	for _, change := range p.Resources {
		i := indexOfResource(next, change.Object())
		switch {
		case i < 0, change.Gone && !change.Same(next[i]):
		case change.Gone:
			next = slices.Delete(next, i, i+1)
		default:
			next[i] = change.Resource
		}
	}
	return next
}

func (d *differ) resources(before, after []api.Resource) {
	object := func(r *api.Resource) string { return ResourceObject(*r) }
	compare(before, after, object, func(was, is *api.Resource) {
		switch {
		case was == nil:
			d.add(ResourceNew, object(is), "the %s was declared", kindWord(*is))
			d.resourceState(api.NewResource((*is).ResourceKind()), *is)
		case is == nil:
			d.add(ResourceGone, object(was), "the %s is gone", kindWord(*was))
		default:
			d.resource(*was, *is)
		}
	})
}

func (d *differ) resource(was, is api.Resource) {
	object := ResourceObject(is)
	switch {
	case was.GetDeletionTimestamp() == nil && is.GetDeletionTimestamp() != nil:
		d.add(ResourceChanged, object, "the %s is being removed", kindWord(is))
	case was.GetGeneration() != is.GetGeneration() && was.GetGeneration() != 0:
		d.add(ResourceChanged, object, "the spec was changed (generation %d to %d)", was.GetGeneration(), is.GetGeneration())
	}
	d.resourceState(was, is)
}

func (d *differ) resourceState(was, is api.Resource) {
	object := ResourceObject(is)
	a, b := resourceAccepted(was), resourceAccepted(is)
	if b.Status == metav1.ConditionFalse && (a.Status != b.Status || a.Message != b.Message) {
		d.add(ResourceChanged, object, "the %s is not accepted: %s", kindWord(is), b.Message)
	}
	old, now := was.Common().State, is.Common()
	if old == now.State {
		return
	}
	switch now.State {
	case api.ResourceOnline:
		d.add(ResourceOnline, object, "the %s is Online%s", kindWord(is), wasText(string(old)))
	case api.ResourceDegraded:
		d.add(ResourceDegraded, object, "the %s is Degraded%s: %s", kindWord(is), wasText(string(old)), now.Message)
	case api.ResourceOffline:
		d.add(ResourceOffline, object, "the %s is Offline%s: %s", kindWord(is), wasText(string(old)), now.Message)
	default: // steps on the way are not worth an event
	}
}

func resourceAccepted(r api.Resource) metav1.Condition {
	if c := meta.FindStatusCondition(r.Common().Conditions, api.ResourceAccepted); c != nil {
		return *c
	}
	return metav1.Condition{}
}
