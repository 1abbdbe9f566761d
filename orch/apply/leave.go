package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// leavingOf are the devices that an object has leave.
func leavingOf(object map[string]any) (ids []string) {
	for _, field := range []string{"exclude", "replace"} {
		list, _, _ := unstructured.NestedStringSlice(object, "spec", field)
		ids = append(ids, list...)
	}
	return ids
}

// leaves says which daemon is still on a device that an object has leave.
func leaves(ctx context.Context, c client.Client, of *unstructured.Unstructured) (wait string, err error) {
	ids := leavingOf(of.Object)
	if len(ids) == 0 {
		return "", nil
	}
	var daemons api.DaemonList
	if err := c.List(ctx, &daemons, client.InNamespace(of.GetNamespace())); err != nil {
		return "", fmt.Errorf("while listing daemons: %w", err)
	}
	for i := range daemons.Items {
		d := &daemons.Items[i]
		on := func(x api.DaemonDevice) bool { return slices.Contains(ids, x.ID) || slices.Contains(ids, x.Of) }
		if slices.ContainsFunc(d.Spec.Devices, on) {
			return fmt.Sprintf("%s on host %s to leave the cluster", d.Name, d.Spec.Host), nil
		}
	}
	return "", nil
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
		err := c.Create(ctx, a)
		if apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, client.ObjectKeyFromObject(a), a)
		}
		if err != nil {
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

// Wipes are the disks that an Action erases at its end, each HOST/ID.
func Wipes(a *api.Action) string { return string(a.Spec.Parameters[paramWipe]) }

// Removes says whether an Action has a device leave.
func Removes(a *api.Action, device string) bool {
	writes, err := writesOf(a)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(writes, func(w write) bool { return slices.Contains(leavingOf(w.Object), device) })
}
