package sim

import (
	"context"
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Performer is a System whose agents carry out commands of its driver.
type Performer interface {
	// Knows says whether daemons of this type are the system's.
	Knows(daemonType string) bool
	// Command carries out a command on the host of a daemon.
	Command(d *api.Daemon, cmd engine.Command) (message string, err error)
}

// Reporter is a System whose agents tell what the service of a daemon says of itself.
type Reporter interface {
	Knows(daemonType string) bool
	// Report is called with each tick, and after each command, for daemons that run and have the parameter api.ParameterReport.
	Report(d *api.Daemon) (string, error)
}

// carry carries out a command as the agent of the daemon's host does.
func (w *World) carry(ctx context.Context, d *api.Daemon, cmd engine.Command) (string, error) {
	if w.unheard(d.Spec.Host) {
		return "", fmt.Errorf("the agent of host %s is silent", d.Spec.Host)
	}
	for _, s := range w.Systems {
		p, ok := s.(Performer)
		if !ok || !p.Knows(d.Spec.Type) {
			continue
		}
		message, err := p.Command(d, cmd)
		if err != nil {
			return "", err
		}
		return message, w.report(ctx, d)
	}
	return "", fmt.Errorf("daemons of type %s carry out no commands", d.Spec.Type)
}

// report writes what the service of a daemon says of itself, as the agent of its host does.
func (w *World) report(ctx context.Context, d *api.Daemon) error {
	if d.Spec.Parameters[api.ParameterReport] == "" || !w.alive(d) || w.unheard(d.Spec.Host) {
		return nil
	}
	for _, s := range w.Systems {
		r, ok := s.(Reporter)
		if !ok || !r.Knows(d.Spec.Type) {
			continue
		}
		text, err := r.Report(d)
		d.Status.Message = ""
		switch {
		case err != nil:
			d.Status.Message = "no report of it can be had: " + err.Error()
		default:
			d.Status.Report = text
		}
		return w.UpdateStatus(ctx, d)
	}
	return nil
}
