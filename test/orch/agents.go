package orch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// agents stands in for the agents of all hosts until ctx ends: daemons are at once as they are
// wanted, and Actions on the host are done.
func (h *Home) agents(ctx context.Context) {
	for ctx.Err() == nil {
		h.daemons(ctx)
		h.actions(ctx)
		time.Sleep(20 * time.Millisecond)
	}
}

var reached = map[api.WantedState]api.DaemonState{
	api.WantPrepared: api.DaemonPrepared, api.WantRunning: api.DaemonRunning, api.WantStopped: api.DaemonStopped,
}

// daemons reports on all daemons, and has the Ceph in memory run those that run. A conflict is
// tried again in the next round.
func (h *Home) daemons(ctx context.Context) {
	var list api.DaemonList
	if h.Client.List(ctx, &list) != nil {
		return
	}
	for i := range list.Items {
		d := &list.Items[i]
		if d.DeletionTimestamp != nil {
			d.Finalizers = nil
			_ = h.Client.Update(ctx, d)
		} else if want := reached[d.Spec.State]; d.Status.State != want || d.Status.ObservedGeneration != d.Generation {
			d.Status.State, d.Status.ObservedGeneration, d.Status.Version = want, d.Generation, "16.2.15"
			_ = h.Client.Status().Update(ctx, d)
		}
	}
	h.Ceph.Sync(list.Items)
	h.devices(ctx, list.Items)
}

// devices reports on the disks of OSDs that they are taken, and on others that they are free.
func (h *Home) devices(ctx context.Context, daemons []api.Daemon) {
	taken := map[string]string{}
	for i := range daemons {
		for _, d := range daemons[i].Spec.Devices {
			taken[d.ID] = daemons[i].Spec.ID
		}
	}
	var list api.HostList
	if h.Client.List(ctx, &list) != nil {
		return
	}
	for i := range list.Items {
		host, changed := &list.Items[i], false
		for n := range host.Status.Devices {
			d := &host.Status.Devices[n]
			osd, is := taken[d.ID]
			if is == (d.Availability == api.DeviceUnavailable) {
				continue
			}
			changed, d.Availability, d.Reasons = true, api.DeviceAvailable, nil
			if is {
				d.Availability, d.Reasons = api.DeviceUnavailable, []string{"holds OSD " + osd}
			}
		}
		if changed {
			_ = h.Client.Status().Update(ctx, host)
		}
	}
}

// actions says of Actions that agents carry out that they run, and then that they are done.
func (h *Home) actions(ctx context.Context) {
	var list api.ActionList
	if h.Client.List(ctx, &list) != nil {
		return
	}
	for i := range list.Items {
		a := &list.Items[i]
		if a.Status.Executor != api.ByAgent {
			continue
		}
		switch a.Status.State {
		case api.ActionNew:
			now := metav1.Now()
			a.Status.State, a.Status.Started = api.ActionRunning, &now
		case api.ActionRunning:
			now := metav1.Now()
			a.Status.State, a.Status.Finished = api.ActionDone, &now
		default:
			continue
		}
		_ = h.Client.Status().Update(ctx, a)
	}
}
