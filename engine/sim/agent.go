package sim

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// step brings one daemon one step on, as the agent of its host does: Pending, Preparing, then what is wanted.
func (w *World) step(ctx context.Context, d *api.Daemon) error {
	w.mu.Lock()
	down, broken := w.down[d.Spec.Host], w.broken[d.Name]
	w.mu.Unlock()
	switch {
	case down:
		return nil
	case d.DeletionTimestamp != nil:
		return w.destroy(ctx, d)
	}
	next := w.next(ctx, d)
	if broken != "" && next != api.DaemonPending {
		next = api.DaemonFailed
	}
	d.Status.Message = broken
	if next == api.DaemonFailed && broken == "" {
		d.Status.Message = "its device is not there"
	}
	if next == api.DaemonRunning && d.Status.State != next {
		now := metav1.NewMicroTime(time.Now())
		d.Status.Started, d.Status.Version, d.Status.PID = &now, "16.2.15", 1000
	}
	d.Status.State, d.Status.ObservedGeneration = next, d.Generation
	return w.UpdateStatus(ctx, d)
}

func (w *World) next(ctx context.Context, d *api.Daemon) api.DaemonState {
	switch {
	case d.Status.State == "":
		return api.DaemonPending
	case !w.hasDevices(ctx, d):
		return api.DaemonFailed
	case d.Status.State == api.DaemonPending || d.Status.State == api.DaemonFailed:
		return api.DaemonPreparing
	case d.Spec.State == api.WantStopped:
		return api.DaemonStopped
	case d.Spec.State == api.WantPrepared:
		return api.DaemonPrepared
	default:
		return api.DaemonRunning
	}
}

func (w *World) hasDevices(ctx context.Context, d *api.Daemon) bool {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Host}}
	if err := w.Get(ctx, h); err != nil {
		return false
	}
	for _, want := range d.Spec.Devices {
		if !slices.ContainsFunc(h.Status.Devices, func(have api.Device) bool { return have.ID == want.ID }) {
			return false
		}
	}
	return true
}

// destroy stops a deleted daemon, and lets it go with the next tick.
func (w *World) destroy(ctx context.Context, d *api.Daemon) error {
	if d.Status.State != api.DaemonStopping {
		d.Status.State = api.DaemonStopping
		return w.UpdateStatus(ctx, d)
	}
	d.Finalizers = slices.DeleteFunc(d.Finalizers, func(f string) bool { return f == api.FinalizerDaemon })
	return w.Update(ctx, d)
}
