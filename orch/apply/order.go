package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
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
		same := o.Spec.Kind == Kind && o.Spec.Cluster == a.Spec.Cluster
		if same && isBefore(o, a) && !o.Status.State.Final() && !hasWritten(o) && overlap(o, writes) {
			return o.Name, nil
		}
	}
	return "", nil
}

// isBefore says whether an Action was created before another one. The API has seconds.
func isBefore(a, b *api.Action) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// hasWritten says whether an Action has written everything that it declares.
func hasWritten(a *api.Action) bool {
	return slices.ContainsFunc(a.Status.Steps, func(s api.ActionStep) bool {
		return s.Name == StepPersist && s.State == api.StepDone
	})
}

// overlap says whether an Action writes to one of the objects that others write to.
func overlap(a *api.Action, writes []write) bool {
	others, err := writesOf(a)
	if err != nil {
		return false // it is refused
	}
	return slices.ContainsFunc(others, func(o write) bool {
		return slices.ContainsFunc(writes, func(w write) bool {
			return w.Object["kind"] == o.Object["kind"] && nameIn(w) == nameIn(o)
		})
	})
}

func nameIn(w write) any {
	meta, _ := w.Object["metadata"].(map[string]any)
	return meta["name"]
}
