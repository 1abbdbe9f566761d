package agent

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent/pending"
	"github.com/holdfast-storage/holdfast/agent/prepare"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// command carries out the commands that a driver has for the service of a daemon. There is one step, which the service agent does
// again after a crash.
type command struct {
	*agent
	// turns lets one command of a daemon after the other.
	turns sync.Map // types.NamespacedName -> chan struct{}
}

// Kind implements action.Handler.
func (c *command) Kind() action.Kind { return action.CommandKind }

// Check implements action.Handler.
func (c *command) Check(_ context.Context, a *api.Action) error {
	_, _, err := c.target(a)
	return err
}

// target is the daemon of an action and its service agent, or an error that says why it cannot be asked.
func (c *command) target(a *api.Action) (*api.Daemon, service.Performer, error) {
	cmd, err := action.CommandOf(a)
	if err != nil {
		return nil, nil, err
	}
	d, known := c.work.daemons.get(types.NamespacedName{Namespace: cmd.Namespace, Name: cmd.Daemon})
	switch {
	case !known:
		return nil, nil, pending.For("the server to send the list of daemons of this host")
	case d == nil:
		return nil, nil, fmt.Errorf("%w: daemon %s does not exist on host %s", action.ErrRefused, cmd.Daemon, c.Name)
	case c.types[d.Spec.Type] == nil:
		return nil, nil, fmt.Errorf("%w: this agent (version %s) does not know daemons of type %q: upgrade Holdfast on this host", action.ErrRefused, c.Version, d.Spec.Type)
	}
	p, ok := c.types[d.Spec.Type].agent.(service.Performer)
	if !ok {
		return nil, nil, fmt.Errorf("%w: this agent (version %s) knows no commands for daemons of type %q: upgrade Holdfast on this host", action.ErrRefused, c.Version, d.Spec.Type)
	}
	return d, p, nil
}

// Step implements action.Handler. What the service agent says against a command ends it: whether to try again is for the driver
// to decide, which sees what has become of it.
func (c *command) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	d, p, err := c.target(a)
	if err != nil {
		return action.Progress{}, err
	}
	cmd, err := action.CommandOf(a)
	if err != nil {
		return action.Progress{}, err
	}
	done, err := c.turn(ctx, types.NamespacedName{Namespace: d.Namespace, Name: d.Name})
	if err != nil {
		return action.Progress{}, err
	}
	defer done()
	secret, err := c.secret(ctx, cmd)
	if err != nil {
		return action.Progress{}, err
	}
	message, err := c.perform(ctx, d, p, service.Command{Verb: cmd.Verb, Object: cmd.Object, Params: cmd.Params, Secret: secret})
	c.reports.afterCommand(ctx, d)
	switch {
	case err != nil && ctx.Err() != nil:
		return action.Progress{}, err // this agent is ending: the next one does it again
	case err != nil:
		return action.Progress{}, &commandError{err}
	}
	return action.Progress{Done: true, Message: message}, nil
}

// secret reads the Secret that a command names.
func (c *command) secret(ctx context.Context, cmd action.Command) (map[string][]byte, error) {
	if cmd.Secret == "" {
		return nil, nil
	}
	var s corev1.Secret
	if err := c.secrets.Read(ctx, cmd.Namespace, cmd.Secret, &s); err != nil {
		return nil, err
	}
	return s.Data, nil
}

// turn waits until no other command of the daemon is carried out.
func (c *command) turn(ctx context.Context, key types.NamespacedName) (done func(), err error) {
	v, _ := c.turns.LoadOrStore(key, make(chan struct{}, 1))
	place := v.(chan struct{})
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// perform asks the service agent.
func (c *command) perform(ctx context.Context, d *api.Daemon, p service.Performer, cmd service.Command) (message string, err error) {
	short, cancel := context.WithTimeout(ctx, action.CommandTimeout)
	defer cancel()
	l, err := c.localNow(short, d)
	if err != nil {
		return "", err
	}
	message, err = p.Perform(short, l, cmd)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("not done within %s: %w", action.CommandTimeout, err)
	}
	return message, err
}

// localNow is the daemon's place on this host, as its files and process have it.
func (a *agent) localNow(ctx context.Context, d *api.Daemon) (*service.Local, error) {
	l := a.local(d)
	if s, _ := a.Runtime.State(processNameOf(d)); s.Running {
		l.PID, l.Outdated = int32(s.PID), s.Outdated
	}
	err := a.preparer.Find(ctx, l, true)
	// A device that is gone is what a command or a report may be about.
	if err != nil && !prepare.IsMissing(err) {
		return nil, err
	}
	if werr := prepare.FillWords(l); werr != nil && err == nil {
		return nil, werr
	}
	return l, nil
}

// Undo implements action.Handler. It is not called for a kind of which nothing can be undone.
func (c *command) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true}, nil
}

// commandError is what the service agent says against a command, in its own words.
type commandError struct{ error }

func (e *commandError) Unwrap() []error { return []error{e.error, action.ErrRefused} }
