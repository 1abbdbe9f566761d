package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// step brings one daemon one step on, as the agent of its host does: Pending, Preparing, then what is wanted.
func (w *World) step(ctx context.Context, d *api.Daemon) error {
	w.mu.Lock()
	broken := w.broken[d.Name]
	w.mu.Unlock()
	switch {
	case w.unheard(d.Spec.Host):
		return nil
	case d.DeletionTimestamp != nil:
		return w.destroy(ctx, d)
	}
	next := w.next(ctx, d)
	if broken == "" && d.Status.State == api.DaemonPreparing && next != api.DaemonFailed {
		broken = w.prepare(ctx, d)
	}
	if broken != "" && next != api.DaemonPending {
		next = api.DaemonFailed
	}
	d.Status.Message = broken
	if next == api.DaemonFailed && broken == "" {
		d.Status.Message = "its device is not there"
	}
	if next == api.DaemonRunning && d.Status.State != next {
		now := metav1.NewMicroTime(time.Now())
		d.Status.Started, d.Status.Version, d.Status.PID = &now, w.release(ctx, d), 1000
	}
	if d.Status.State == api.DaemonRunning && next == api.DaemonFailed {
		d.Status.LastExit = &api.DaemonExit{Time: metav1.NewMicroTime(time.Now()), Reason: "exit code 1"}
	}
	d.Status.State, d.Status.ObservedGeneration = next, d.Generation
	return w.UpdateStatus(ctx, d)
}

func (w *World) next(ctx context.Context, d *api.Daemon) api.DaemonState {
	switch {
	case d.Status.State == "":
		return api.DaemonPending
	case d.Spec.State == api.WantStopped:
		return api.DaemonStopped // whatever is there of it
	case !w.hasDevices(ctx, d):
		return api.DaemonFailed
	case d.Status.State == api.DaemonPending || d.Status.State == api.DaemonFailed:
		return api.DaemonPreparing
	case d.Spec.State == api.WantPrepared:
		return api.DaemonPrepared
	default:
		return api.DaemonRunning
	}
}

// firstRelease is what hosts have installed, but for what Install says.
const firstRelease = "16.2.15"

// Install puts a release on a host, for one type of daemons. What runs there runs on.
func (w *World) Install(ctx context.Context, host, daemonType, release string) error {
	return w.ChangeHost(ctx, host, func(h *api.HostStatus) {
		h.Packages = maps.Clone(h.Packages)
		h.Packages[daemonType] = api.Release(release)
	})
}

// release is what a daemon runs that starts now.
func (w *World) release(ctx context.Context, d *api.Daemon) string {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: d.Spec.Host}}
	if err := w.Get(ctx, h); err != nil {
		return firstRelease
	}
	return cmp.Or(h.Status.Release(d.Spec.Type), firstRelease)
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

// prepare has the daemon's data made, and returns what went wrong.
func (w *World) prepare(ctx context.Context, d *api.Daemon) string {
	message := ""
	for _, s := range w.Systems {
		agent, ok := s.(ServiceAgent)
		if !ok {
			continue
		}
		err := w.ChangeHost(ctx, d.Spec.Host, func(h *api.HostStatus) {
			if err := agent.Prepare(d, h); err != nil {
				message = err.Error()
			}
		})
		if err != nil {
			message = err.Error()
		}
	}
	return message
}

// destroy stops a deleted daemon, and lets it go with the next tick.
func (w *World) destroy(ctx context.Context, d *api.Daemon) error {
	if d.Status.State != api.DaemonStopping {
		d.Status.State = api.DaemonStopping
		return w.UpdateStatus(ctx, d)
	}
	for _, s := range w.Systems {
		agent, ok := s.(ServiceAgent)
		if !ok {
			continue
		}
		if err := w.ChangeHost(ctx, d.Spec.Host, func(h *api.HostStatus) { agent.Remove(d, h) }); err != nil {
			return err
		}
	}
	d.Finalizers = slices.DeleteFunc(d.Finalizers, func(f string) bool { return f == api.FinalizerDaemon })
	return w.Update(ctx, d)
}
