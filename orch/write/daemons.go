package write

import (
	"context"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// daemon is the Daemon that Ceph calls by a name such as osd.3.
func (c *Call) daemon(name string) (*api.Daemon, error) {
	i := slices.IndexFunc(c.View.Daemons, func(d api.Daemon) bool { return spec.TypeOf(&d)+"."+d.Spec.ID == name })
	if i < 0 {
		return nil, answer.Errorf("there is no daemon %s: see 'ceph orch ps'", name)
	}
	return &c.View.Daemons[i], nil
}

// daemonAction restarts, stops or starts one daemon.
func daemonAction(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Action string `json:"action"`
		Name   string `json:"daemon_name"`
		Image  string `json:"image"`
	}](c)
	if err != nil {
		return nil, err
	}
	d, err := c.daemon(a.Name)
	if err != nil {
		return nil, err
	}
	if a.Image != "" {
		return nil, answer.Errorf("daemon %s cannot get an image: Holdfast runs the packages of its host", a.Name)
	}
	action := api.ActionSpec{Target: "daemon/" + d.Name, Cluster: c.View.Cluster.Name}
	switch a.Action {
	case "restart", "redeploy":
		action.Kind, action.Host = api.ActionDaemonRestart, d.Spec.Host
	case "reconfig":
		return fmt.Sprintf("Scheduled to reconfig %s on host '%s': nothing to do, the mons hold its configuration", a.Name, d.Spec.Host), nil
	case "stop":
		action.Kind = "daemon.stop"
	case "start":
		action.Kind = "daemon.start"
	default:
		return nil, answer.Errorf("Holdfast does not support '%s' of a daemon", a.Action)
	}
	return c.start(ctx, action, fmt.Sprintf("Scheduled to %s %s on host '%s'", a.Action, a.Name, d.Spec.Host), accepted)
}
