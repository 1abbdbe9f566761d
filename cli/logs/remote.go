package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/logaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// waits are the times of a remote read.
type waits struct {
	// answer bounds how long an action may take, beside its own wait for a line.
	answer time.Duration
	// line is how long an action waits for a line, and pause how long one that follows a log pauses
	// between two.
	line, pause time.Duration
	// patience is how long a log is followed while nothing answers.
	patience time.Duration
}

var usual = waits{answer: 15 * time.Second, line: logaction.MostWait, pause: time.Second, patience: time.Minute}

const (
	// mostPause is the longest pause between two attempts, and between two questions whether an
	// action is done.
	mostPause = 5 * time.Second
	mostAsk   = 500 * time.Millisecond
	// behind is how many bytes have to be left for the next read to follow at once.
	behind = 4 << 10
)

// remote reads the log of a daemon of another host by actions, which the agent of that host carries
// out.
type remote struct {
	Home
	client client.Client
	daemon *api.Daemon
	// name is what the user calls the daemon.
	name string
	waits
}

// refusal is an error that does not pass by itself.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// read prints the log, and follows it if that is asked for.
func (r *remote) read(ctx context.Context, o options) error {
	if err := r.reachable(ctx); err != nil {
		return err
	}
	a, err := r.ask(ctx, logaction.Ask{Tail: o.tail, Since: o.since})
	if err != nil {
		return err
	}
	if done, total := measure(a); done < total {
		fmt.Fprintf(r.Err, "warning: only the last %d KiB are printed, which is the most that is read from another "+
			"host; for more run '%s'\n", logaction.Most>>10, r.local())
	}
	if _, err := io.WriteString(r.Out, a.Status.Output); err != nil || !o.follow {
		return err
	}
	return r.follow(ctx, a.Status.Next)
}

// follow prints what comes after a place, until ctx ends, an attempt is refused, or nothing answers
// for long.
func (r *remote) follow(ctx context.Context, next string) error {
	answered, failures := time.Now(), 0
	for backoff.Wait(ctx, r.pause) {
		a, err := r.ask(ctx, logaction.Ask{From: next, Wait: r.line})
		for err == nil {
			answered, failures, next = time.Now(), 0, a.Status.Next
			if _, err := io.WriteString(r.Out, a.Status.Output); err != nil {
				return err
			}
			if done, total := measure(a); total-done < behind {
				break
			}
			a, err = r.ask(ctx, logaction.Ask{From: next, Wait: r.line})
		}
		var final refusal
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has ended it
		case errors.As(err, &final) || time.Since(answered) > r.patience:
			return err
		case failures == 0:
			fmt.Fprintf(r.Err, "warning: %v; retrying\n", err)
		}
		failures++
		if !backoff.Wait(ctx, backoff.Doubling(r.pause, mostPause, failures)) {
			return nil
		}
	}
	return nil
}

// measure is how many bytes of a log were read, and how many were asked for.
func measure(a *api.Action) (done, total int64) {
	for _, s := range a.Status.Steps {
		done, total = done+s.Done, total+s.Total
	}
	return done, total
}

// ask has one action carried out, and removes it.
func (r *remote) ask(ctx context.Context, ask logaction.Ask) (*api.Action, error) {
	a := logaction.For(r.daemon, ask)
	short, cancel := context.WithTimeout(ctx, findTimeout)
	err := r.client.Create(short, a)
	cancel()
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return nil, refusal{exit.With(exit.Refused, fmt.Errorf("%s: %w; use the kubeconfig of an administrator, or "+
			"run '%s'", r.cannot(), err, r.local()))}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.cannot(), err)
	}
	defer r.remove(a)
	return r.await(ctx, a, ask.Wait)
}

// remove removes an action, also after an interrupt. The leader removes one that stays.
func (r *remote) remove(a *api.Action) {
	ctx, cancel := context.WithTimeout(context.Background(), findTimeout)
	defer cancel()
	_ = r.client.Delete(ctx, a, client.Preconditions{UID: &a.UID})
}

// await waits for the end of an action.
func (r *remote) await(ctx context.Context, a *api.Action, wait time.Duration) (*api.Action, error) {
	deadline := time.Now().Add(wait + r.answer)
	for n := 1; backoff.Wait(ctx, backoff.Doubling(50*time.Millisecond, mostAsk, n)); n++ {
		short, cancel := context.WithTimeout(ctx, findTimeout)
		err := r.client.Get(short, client.ObjectKeyFromObject(a), a)
		cancel()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", r.cannot(), err)
		case a.Status.State.Final():
			return a, r.outcome(a)
		case a.Status.State == "" && time.Now().After(deadline):
			return nil, fmt.Errorf("%s: no server leads at present; run '%s', and see 'holdfast doctor'",
				r.cannot(), r.local())
		case time.Now().After(deadline):
			return nil, fmt.Errorf("%s: the agent of host %s does not answer; run '%s', and see 'holdfast why host/%s'",
				r.cannot(), r.daemon.Spec.Host, r.local(), r.daemon.Spec.Host)
		}
		if n%20 == 0 || n%4 == 0 && a.Status.State != api.ActionRunning {
			if err := r.reachable(ctx); err != nil {
				return nil, err
			}
		}
	}
	return nil, context.Cause(ctx)
}

// outcome is an error unless an action is done.
func (r *remote) outcome(a *api.Action) error {
	if a.Status.State == api.ActionDone {
		return nil
	}
	text, reason := a.Status.Message, ""
	if c := meta.FindStatusCondition(a.Status.Conditions, api.ActionEffective); c != nil {
		text, reason = cmp.Or(c.Message, text), c.Reason
	}
	err := fmt.Errorf("%s: %s", r.cannot(), text)
	switch reason {
	case action.ReasonRefused:
		return refusal{exit.With(exit.Refused, err)}
	case action.ReasonUnknown:
		return refusal{fmt.Errorf("%w; run '%s'", err, r.local())}
	}
	return fmt.Errorf("%w; run '%s'", err, r.local())
}

// reachable refuses to ask the agent of a host that is disconnected, or of one that runs daemons as
// pods. If the Host cannot be read the agent is asked all the same.
func (r *remote) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	d := r.daemon
	var host api.Host
	if err := r.client.Get(ctx, client.ObjectKey{Name: d.Spec.Host}, &host); err != nil {
		return nil
	}
	if host.Status.Runtime == api.RuntimePod {
		return refusal{fmt.Errorf("daemon %s runs in a pod on node %s: use 'kubectl -n %s logs %s'", d.Name,
			d.Spec.Host, d.Namespace, d.Name)}
	}
	since, silent := host.SilentSince()
	if !silent {
		return nil
	}
	return refusal{fmt.Errorf("%s: the agent of host %s is disconnected since %s; run '%s', and see "+
		"'holdfast why host/%s'", r.cannot(), host.Name, since.UTC().Format(time.RFC3339), r.local(), host.Name)}
}

func (r *remote) cannot() string {
	return fmt.Sprintf("cannot read the log of daemon %s on host %s", r.daemon.Name, r.daemon.Spec.Host)
}

// local is the command that needs neither server nor agent.
func (r *remote) local() string {
	command := fmt.Sprintf("ssh %s sudo holdfast logs %s", r.daemon.Spec.Host, r.name)
	if r.daemon.Namespace != metav1.NamespaceDefault {
		command += " -n " + r.daemon.Namespace
	}
	return command
}
