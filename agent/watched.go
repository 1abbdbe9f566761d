package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/foreign"
)

// watchEvery is how often a process that somebody else keeps running is looked at: its end is told to nobody but its parent.
const watchEvery = 5 * time.Second

// ownProcesses are the processes that the agent's own runtime keeps.
func (a *agent) ownProcesses() map[int]bool {
	own := map[int]bool{}
	for _, name := range a.Runtime.Names() {
		if s, ok := a.Runtime.State(name); ok && s.Running {
			own[s.PID] = true
		}
	}
	return own
}

// keepWatching tells how a daemon is that somebody else keeps running.
func (a *agent) keepWatching(ctx context.Context, d *api.Daemon) error {
	key := client.ObjectKeyFromObject(d)
	a.work.forget(key)
	every := cmp.Or(a.reportEvery, watchEvery)
	all, err := a.foreign.Recent(every/2, a.ownProcesses()) // one look does for all daemons of the host
	if err != nil {
		return a.fail(ctx, d, err)
	}
	a.work.queue.AddAfter(key, every)
	status := api.DaemonStatus{State: api.DaemonStopped, Message: fmt.Sprintf("no %s with the id %s runs on this host, and Holdfast does not start it: "+
		"it was not handed over", d.Spec.Type, d.Spec.ID)}
	if p := foreign.Pick(all, d.Spec.Type, d.Spec.ID, d.Spec.Parameters[api.ParameterForeign]); p != nil {
		status = api.DaemonStatus{State: api.DaemonRunning, PID: p.PID, Started: &p.Started, Message: "run by " + foreign.RunBy(p) + ", watched only"}
	}
	if a.told.last(d).PID != status.PID {
		a.askReport() // the Host tells of it, too
	}
	return a.tell(ctx, d, status)
}
