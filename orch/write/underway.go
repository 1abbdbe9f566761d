package write

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// Ceph sends a command again to the mgr that takes over from one that died, and people repeat what
// they got no answer to. So a call that asks for what is under way joins the Action that is there.

// removing is the Action of 'ceph orch' that is under way and has all of these devices leave, each
// HOST/ID, by a field; nil where there is none.
func removing(c *Call, devices []string, field string, wipes bool) *api.Action {
	for i := range c.View.Actions {
		a := &c.View.Actions[i]
		covers := func(device string) bool {
			_, id, _ := strings.Cut(device, "/")
			return slices.Contains(apply.Removed(a, field), id) &&
				(!wipes || slices.Contains(strings.Split(apply.Wipes(a), ","), device))
		}
		if applies(c, a) && a.Spec.Want != api.WantCancelled && !missing(devices, covers) {
			return a
		}
	}
	return nil
}

// applies says whether an Action is an apply of 'ceph orch' of this cluster that is under way.
func applies(c *Call, a *api.Action) bool {
	return a.Spec.Kind == apply.Kind && c.mine(a) && !a.Status.State.Final()
}

// missing says whether ok does not hold for all.
func missing(all []string, ok func(string) bool) bool {
	return slices.ContainsFunc(all, func(s string) bool { return !ok(s) })
}

// awaitWritten waits until the Actions of earlier calls have written what these declare of a
// service, and until the leader's caches have it: a call that adds to it, or removes it, builds on
// that. The call has a new view then. After a moment it is refused.
func (c *Call) awaitWritten(ctx context.Context, service string) error {
	a := c.unwritten(service)
	if a != nil {
		c.until(ctx, seenWithin, func(v *engine.View) bool {
			c.View = v
			a = c.unwritten(service)
			return a == nil
		})
	}
	if a != nil {
		return &answer.Error{Errno: -int(syscall.EAGAIN), Message: fmt.Sprintf("%s: action %s of an earlier call, "+
			"which changes the same resource, has not written it yet; try again, or cancel it with 'holdfast%s action "+
			"cancel %s'", service, a.Name, inNamespace(a.Namespace), a.Name)}
	}
	kind, name := objectOf(c.View, service)
	if kind == "" || name == "" {
		return nil
	}
	u, err := live(ctx, c.Client, object(kind, c.View.Cluster.Namespace, name))
	if err != nil || u == nil {
		return err
	}
	c.until(ctx, seenWithin, func(v *engine.View) bool {
		c.View = v
		return generationIn(v, kind, name) >= u.GetGeneration()
	})
	return nil
}

// objectOf is the kind and name of the object that declares a service, whether there is one or not.
// The name is empty where any of the kind does, and the kind where none can.
func objectOf(v *engine.View, service string) (kind, name string) {
	kind, name, _ = strings.Cut(service, ".")
	switch kind {
	case "mon", "mgr":
		name = v.Cluster.Name
	case "osd":
		name = spec.GroupName(name)
	}
	return resourceKinds[kind], name
}

// generationIn is the generation of a resource in a view, zero where the view has none.
func generationIn(v *engine.View, kind, name string) int64 {
	if kind == "StorageCluster" {
		return v.Cluster.Generation
	}
	for _, r := range v.Resources {
		if r.ResourceKind() == kind && r.GetName() == name {
			return r.GetGeneration()
		}
	}
	return 0
}

// unwritten is the Action of an earlier call that has not written yet what it declares of a
// service, nil where there is none.
func (c *Call) unwritten(service string) *api.Action {
	kind, name := objectOf(c.View, service)
	if kind == "" {
		return nil
	}
	return apply.Unwritten(c.View.Actions, c.View.Cluster.Name, kind, name, c.name())
}

// unchangedYet is a write that changes nothing now, of a service that the Action of an earlier call
// is about to change.
func (c *Call) unchangedYet(writes, changes []spec.Write) *spec.Write {
	for i := range writes {
		w := &writes[i]
		changed := slices.ContainsFunc(changes, func(o spec.Write) bool { return o.Service == w.Service })
		if !changed && c.unwritten(w.Service) != nil {
			return w
		}
	}
	return nil
}

// endRemovals cancels the Actions that have none but these devices leave, and waits until they have
// ended: one that a leader recorded before it died may not have written anything yet, and would do
// so after what takes it back.
func endRemovals(ctx context.Context, c *Call, devices []string) error {
	var list api.ActionList // the leader's cache may not have it yet
	if err := c.Client.List(ctx, &list, client.InNamespace(c.View.Cluster.Namespace)); err != nil {
		return fmt.Errorf("while listing actions: %w", err)
	}
	for i := range list.Items {
		a := &list.Items[i]
		ids := apply.Removed(a)
		if !applies(c, a) || a.Spec.Cluster != c.View.Cluster.Name || len(ids) == 0 ||
			missing(ids, func(id string) bool { return slices.Contains(devices, id) }) {
			continue
		}
		if err := c.cancel(ctx, a); err != nil {
			return err
		}
		if err := awaitEnd(ctx, c, a); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnd waits until an Action has ended.
func awaitEnd(ctx context.Context, c *Call, a *api.Action) error {
	ctx, cancel := context.WithTimeout(ctx, beganWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !a.Status.State.Final() {
		select {
		case <-ctx.Done():
			return answer.Errorf("action %s, which has an OSD leave, is being cancelled and has not ended: run the "+
				"same command again", a.Name)
		case <-tick.C:
		}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(a), a)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("while reading action %s: %w", a.Name, err)
		}
	}
	return nil
}
