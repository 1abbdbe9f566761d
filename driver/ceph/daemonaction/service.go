package daemonaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/orch/answer"
)

// RestartService is the kind of Actions that restart all daemons of a service, one after the other. Its
// target is "service/NAME", by the name that 'ceph orch ls' shows.
const RestartService = "ceph.restart-service"

// ParamDo is the parameter that says what to do with the daemons; without it they are restarted.
const ParamDo = "do"

// The values of ParamDo. Stop and Start are for services that keep no data.
const (
	Restart = "restart"
	Stop    = "stop"
	Start   = "start"
)

const stepDaemons = "daemons"

// service carries out Actions of the kind RestartService.
type service struct{ Config }

var _ action.Handler = service{}

// Kind implements action.Handler.
func (service) Kind() action.Kind {
	return action.Kind{
		Name: RestartService, Executor: api.ByLeader, Mode: action.Rolling, Steps: []string{stepDaemons},
		Timeout: 24 * time.Hour, ExpiresAfter: time.Hour,
		Summary: "restarts the daemons of a service of Ceph, one at a time (target service/NAME as in 'ceph orch ls')",
	}
}

// do is what is done with the daemons.
func (j *job) do() string {
	if do := string(j.action.Spec.Parameters[ParamDo]); do != "" {
		return do
	}
	return Restart
}

// daemons are those of the service, but for those that came after the Action or are being removed.
func (j *job) daemons() ([]*api.Daemon, error) {
	name, ok := strings.CutPrefix(j.action.Spec.Target, "service/")
	if !ok {
		return nil, refuse("the target %q is not a service: it must be service/NAME", j.action.Spec.Target)
	}
	services := answer.ServiceNames(j.view)
	var all []*api.Daemon
	for i := range j.view.Daemons {
		d := &j.view.Daemons[i]
		late := d.CreationTimestamp.After(j.action.CreationTimestamp.Time)
		if services[d.Name] == name && d.DeletionTimestamp == nil && slices.Contains(j.Types, d.Spec.Type) && !late {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		known := slices.Compact(slices.Sorted(maps.Values(services)))
		return nil, refuse("StorageCluster %s has no daemon of a service %s; its services: %s",
			j.view.Cluster.Name, name, words.Few(known))
	}
	return all, nil
}

// Check implements action.Handler.
func (x service) Check(ctx context.Context, a *api.Action) error {
	j, err := x.open(ctx, a)
	if err != nil {
		return err
	}
	all, err := j.daemons()
	if err != nil {
		return err
	}
	switch do := j.do(); {
	case !slices.Contains([]string{Restart, Stop, Start}, do):
		return refuse("the parameter %s is %q: it must be %s, %s or %s", ParamDo, do, Restart, Stop, Start)
	case do == Stop && isCore(all[0]):
		return refuse("cannot stop all of %s: Ceph does not work without; stop single daemons with kind %s",
			a.Spec.Target, api.ActionDaemonStop)
	}
	return j.active()
}

// isCore says whether Ceph does not work without any daemon of a type.
func isCore(d *api.Daemon) bool {
	return slices.Contains([]string{"ceph-mon", "ceph-mgr", "ceph-osd"}, d.Spec.Type)
}

// Step implements action.Handler.
func (x service) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	j, err := x.open(ctx, a)
	if err != nil {
		return action.Progress{}, err
	}
	all, err := j.daemons()
	if err != nil {
		return action.Progress{}, err
	}
	each := map[string]func(context.Context, *api.Daemon) (action.Progress, error){
		Restart: j.restart, Stop: j.stop, Start: j.start,
	}[j.do()]
	p := action.Progress{Total: int64(len(all)), Unit: "daemons", Recheck: soon}
	for _, d := range all {
		one, err := each(ctx, d)
		if err != nil {
			return p, err
		}
		if one.Done {
			p.Count++
		} else if p.WaitsFor == "" {
			p.Message, p.WaitsFor = one.Message, one.WaitsFor
		}
	}
	if p.Count == p.Total {
		p.Done, p.Message = true, fmt.Sprintf("%s of %s: %s done", words.Plural(len(all), "daemon"), a.Spec.Target, j.do())
	}
	return p, nil
}

// restart has the process of a daemon replaced when its turn comes, and says how far that is. One that
// a person had stopped stays so.
func (j *job) restart(ctx context.Context, d *api.Daemon) (action.Progress, error) {
	switch by := j.action.UID; {
	case asked.Stopped(d):
		return action.Progress{Done: true, Message: d.Name + " stays stopped"}, nil
	case !asked.RestartBy(d, by):
		err := j.annotate(ctx, d, func(all map[string]string) { all[api.AnnotationRestart] = asked.RestartValue(d, by) })
		if err != nil {
			return action.Progress{}, err
		}
	case asked.Restarted(d) && reached(d, api.WantRunning):
		return action.Progress{Done: true, Message: d.Name + " was restarted"}, nil
	}
	return action.Progress{
		Message:  "the daemons are restarted one at a time",
		WaitsFor: fmt.Sprintf("the restart of %s on host %s: see 'holdfast why %s'", d.Name, d.Spec.Host, d.Name),
	}, nil
}

// Undo implements action.Handler: what was not restarted yet is not, and what was stopped starts again.
func (x service) Undo(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	j, err := x.open(ctx, a)
	var all []*api.Daemon
	if err == nil {
		all, err = j.daemons()
	}
	switch {
	case errors.Is(err, action.ErrRefused):
		return action.Progress{Done: true, Message: "the service is gone"}, nil
	case err != nil:
		return action.Progress{}, err
	}
	for _, d := range all {
		if err := j.takeBack(ctx, d); err != nil {
			return action.Progress{}, err
		}
	}
	return action.Progress{Done: true, Message: "nothing more is asked of the daemons"}, nil
}
