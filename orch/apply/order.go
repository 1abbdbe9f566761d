package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// earlier names an Action that was created before another one, writes to one of the same objects,
// and has not written yet; "" where there is none. A new leader finds several of them at once, and
// what was declared last has to be written last.
func earlier(ctx context.Context, c client.Client, a *api.Action, writes []write) (string, error) {
	var all api.ActionList
	if err := c.List(ctx, &all, client.InNamespace(a.Namespace)); err != nil {
		return "", fmt.Errorf("while listing actions: %w", err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		if o.Spec.Cluster == a.Spec.Cluster && isBefore(o, a) && WillWrite(o) && overlap(o, writes) {
			return o.Name, nil
		}
	}
	return "", nil
}

// isBefore says whether an Action was asked for before another one. The API's times have seconds.
func isBefore(a, b *api.Action) bool {
	asked := strings.Compare(a.Annotations[wire.AnnotationAsked], b.Annotations[wire.AnnotationAsked])
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), asked, strings.Compare(a.Name, b.Name)) < 0
}

// Unwritten is an Action of a cluster that has not ended, and has not written its objects yet, one
// of which has this kind and name; nil where there is none. Without a name any object of the kind
// counts. An Action that waits for approval does not count, and neither does one that is called
// except.
func Unwritten(all []api.Action, cluster, kind, name, except string) *api.Action {
	for i := range all {
		a := &all[i]
		counts := a.Name != except && a.Spec.Cluster == cluster && a.Status.State != api.ActionPendingApproval
		if counts && WillWrite(a) && writesTo(a, func(w write) bool {
			return w.Object["kind"] == kind && (name == "" || nameIn(w) == name)
		}) {
			return a
		}
	}
	return nil
}

// WillWrite says whether an Action declares something, and has neither written all of it nor ended.
func WillWrite(a *api.Action) bool {
	return a.Spec.Kind == Kind && !a.Status.State.Final() &&
		!slices.ContainsFunc(a.Status.Steps, func(s api.ActionStep) bool {
			return s.Name == StepPersist && s.State == api.StepDone
		})
}

// overlap says whether an Action writes to one of the objects that others write to.
func overlap(a *api.Action, writes []write) bool {
	return writesTo(a, func(o write) bool {
		return slices.ContainsFunc(writes, func(w write) bool {
			return w.Object["kind"] == o.Object["kind"] && nameIn(w) == nameIn(o)
		})
	})
}

// writesTo says whether an Action writes to an object for which is holds.
func writesTo(a *api.Action, is func(write) bool) bool {
	all, err := writesOf(a)
	return err == nil && slices.ContainsFunc(all, is) // one that cannot be read is refused
}

func nameIn(w write) any {
	meta, _ := w.Object["metadata"].(map[string]any)
	return meta["name"]
}
