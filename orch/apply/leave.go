package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// leavingFields have devices leave.
var leavingFields = []string{"exclude", "replace"}

// leavingOf are the devices that fields of an object have leave.
func leavingOf(object map[string]any, fields ...string) (ids []string) {
	for _, field := range fields {
		list, _, _ := unstructured.NestedStringSlice(object, "spec", field)
		ids = append(ids, list...)
	}
	return ids
}

// leaves says which daemon is still on a device that a write had leave. It refuses to wait for one
// that the object, as it is now, does not have leave any more.
func leaves(ctx context.Context, c client.Client, of, now *unstructured.Unstructured) (wait string, err error) {
	ids := leavingOf(of.Object, leavingFields...)
	if len(ids) == 0 {
		return "", nil
	}
	var daemons api.DaemonList
	if err := c.List(ctx, &daemons, client.InNamespace(of.GetNamespace())); err != nil {
		return "", fmt.Errorf("while listing daemons: %w", err)
	}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		if !onAny(d, ids) {
			continue
		}
		if !onAny(d, leavingOf(now.Object, leavingFields...)) {
			return "", refuse("%s on host %s stays: exclude and replace of %s name its device no more", d.Name,
				d.Spec.Host, NameOf(now))
		}
		wait = fmt.Sprintf("%s on host %s to leave the cluster", d.Name, d.Spec.Host)
	}
	return wait, nil
}

// onAny says whether a daemon has one of some devices.
func onAny(d *api.Daemon, ids []string) bool {
	return slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool {
		return slices.Contains(ids, x.ID) || slices.Contains(ids, x.Of)
	})
}

// wipe has agents erase the disks that an Action names, each by an Action of its own, and follows
// these.
func wipe(ctx context.Context, c client.Client, of *api.Action) (action.Progress, error) {
	p := action.Progress{Unit: "disks", Recheck: readAgain}
	comma := func(r rune) bool { return r == ',' }
	for i, disk := range strings.FieldsFunc(string(of.Spec.Parameters[paramWipe]), comma) {
		p.Total++
		host, id, _ := strings.Cut(disk, "/")
		name := fmt.Sprintf("%s-wipe-%d", of.Name, i)
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: name}}
		a.Spec = api.ActionSpec{
			Kind: hostaction.Wipe, Host: host, Target: "device/" + id,
			Parameters: map[string]api.ActionParameter{hostaction.ParamConfirm: api.ActionParameter(id)},
		}
		if err := begin(ctx, c, a, of); err != nil {
			return p, final(fmt.Errorf("while having disk %s of host %s erased: %w", id, host, err))
		}
		switch state := a.Status.State; {
		case state == api.ActionDone:
			p.Count++
		case state.Final():
			return p, refuse("disk %s of host %s was not erased: %s", id, host, a.Status.Message)
		case p.WaitsFor == "":
			p.WaitsFor = fmt.Sprintf("action/%s to erase disk %s of host %s", a.Name, id, host)
		}
	}
	if p.Total == 0 {
		return action.Progress{Done: true, Message: "everything is as declared"}, nil
	}
	p.Done, p.Message = p.Count == p.Total, fmt.Sprintf("%d of %d disks erased", p.Count, p.Total)
	return p, nil
}

// begin creates an Action in the name of another one, unless it did before.
func begin(ctx context.Context, c client.Client, a, of *api.Action) error {
	spec := a.Spec
	err := c.Create(ctx, a)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	cluster := types.NamespacedName{Namespace: of.Namespace, Name: of.Spec.Cluster}
	same := a.Spec.Kind == spec.Kind && a.Spec.Host == spec.Host && a.Spec.Target == spec.Target
	if !same || a.Spec.Requester != wire.User(cluster) {
		return refuse("action/%s is another one: ask for it once more", a.Name)
	}
	return nil
}

// Wipes are the disks that an Action erases at its end, each HOST/ID.
func Wipes(a *api.Action) string { return string(a.Spec.Parameters[paramWipe]) }

// Removed are the devices that fields of an Action have leave: exclude, replace, or both where none is
// named.
func Removed(a *api.Action, fields ...string) (ids []string) {
	writes, err := writesOf(a)
	if err != nil {
		return nil
	}
	if len(fields) == 0 {
		fields = leavingFields
	}
	for _, w := range writes {
		ids = append(ids, leavingOf(w.Object, fields...)...)
	}
	return ids
}

// Removes says whether an Action has a device leave.
func Removes(a *api.Action, device string) bool { return slices.Contains(Removed(a), device) }
