package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// withdrawTimeout bounds taking back a command that nobody waits for any more.
const withdrawTimeout = 5 * time.Second

// Ask has the agent of a daemon carry out a command, by an Action of a kind of its own, and waits
// until it has.
func (s *Store) Ask(ctx context.Context, daemon *api.Daemon, cmd engine.Command) (string, error) {
	want, err := engine.CommandFor(daemon, cmd)
	if err != nil {
		return "", err
	}
	want.Labels = commandLabels(daemon)
	wake := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	s.notifyActions(watching, func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	asked, err := s.askOnce(ctx, want)
	if err != nil {
		return "", fmt.Errorf("while asking the agent of host %s: %w", daemon.Spec.Host, err)
	}
	ended, err := s.awaitCommand(ctx, asked, wake)
	if err != nil {
		s.withdraw(ctx, asked)
		return "", err
	}
	// One that cannot be removed now is removed by whoever looks after actions.
	if err := (&Actions{s}).Remove(ctx, ended); err != nil && ctx.Err() == nil {
		s.log.Warn("cannot remove a command that has ended", "action", ended.Name, "error", err)
	}
	s.seen(ctx, daemon)
	return action.CommandResult(ended)
}

// seen has the next View wait for what the agent reported of a daemon before it said that the
// command is done.
func (s *Store) seen(ctx context.Context, daemon *api.Daemon) {
	var now api.Daemon
	if s.api.Get(ctx, client.ObjectKeyFromObject(daemon), &now) == nil {
		s.fresh.wrote(kindOf(&now), &now)
	}
}

// askOnce creates the Action, or finds the one that is under way. One that has ended was asked for
// by somebody who is gone, and says nothing of what holds now: it makes place.
func (s *Store) askOnce(ctx context.Context, want *api.Action) (*api.Action, error) {
	for range attempts {
		made := want.DeepCopy()
		err := s.create(ctx, made)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		var there api.Action
		switch err := s.api.Get(ctx, client.ObjectKeyFromObject(want), &there); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		}
		s.fresh.wrote(kindOf(&there), &there)
		if !there.Status.State.Final() {
			return &there, nil
		}
		if err := (&Actions{s}).Remove(ctx, &there); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the action %s existed, and was gone when it was read, in each of %d attempts", want.Name,
		attempts)
}

// awaitCommand waits until an Action has ended, and returns it as it is then.
func (s *Store) awaitCommand(ctx context.Context, asked *api.Action, wake <-chan struct{}) (*api.Action, error) {
	// What was just written, or read, is in the cache from here on.
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	for {
		var now api.Action
		err := s.cache.Get(ctx, client.ObjectKeyFromObject(asked), &now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != asked.UID:
			return nil, fmt.Errorf("the action %s for the agent of host %s was removed", asked.Name, asked.Spec.Host)
		case err == nil && now.Status.State.Final():
			return &now, nil
		case err == nil:
			err = s.mayAnswer(ctx, asked.Spec.Host)
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, unanswered(ctx, &now)
		}
	}
}

// mayAnswer returns an error when the agent of a host is silent.
func (s *Store) mayAnswer(ctx context.Context, host string) error {
	var h api.Host
	if err := s.cache.Get(ctx, types.NamespacedName{Name: host}, &h); err != nil {
		return notFound(err, "host %s", host)
	}
	if factsOf(&h).Silent {
		return fmt.Errorf("the agent of host %s disconnected", host)
	}
	return nil
}

// unanswered says how far a command came that is not waited for any longer.
func unanswered(ctx context.Context, a *api.Action) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	if a.Status.State == api.ActionRunning {
		return fmt.Errorf("the agent of host %s has not finished it yet", a.Spec.Host)
	}
	return fmt.Errorf("the agent of host %s did not begin it", a.Spec.Host)
}

// withdraw takes back a command that the agent has not begun: what it is part of may not be wanted
// any more when the agent comes to it. One that was begun is left, so that it is found when it is
// asked for again.
func (s *Store) withdraw(ctx context.Context, asked *api.Action) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	var now api.Action
	err := s.api.Get(ctx, client.ObjectKeyFromObject(asked), &now)
	if err == nil && now.UID == asked.UID && now.Status.State != api.ActionRunning {
		// The agent may begin it at this moment; then the version has changed, and it stays.
		err = s.api.Delete(ctx, &now, client.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && s.life.Err() == nil {
		s.log.Warn("cannot withdraw an unneeded command; it will expire", "action", asked.Name, "error", err)
	}
}
