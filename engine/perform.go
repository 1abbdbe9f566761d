package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// heldLines are the lines of commands in which one was not carried out.
type heldLines map[string]bool

// up says whether a command relies on one that was not carried out.
func (h heldLines) up(c Command) bool { return h[""] || h[c.Line] || c.Line == "" && len(h) > 0 }

// perform carries out the plan's commands in their order. One that fails holds up those that may rely on it (Command.Line). If it has
// no Line the run has failed; else the plan says what became of it, and the rest goes on. It says whether all were carried out.
func (r *run) perform(ctx context.Context) (whole bool, err error) {
	secrets, held, slow := r.Store.Secrets(r.event.Cluster), heldLines{}, map[string]bool{}
	r.memory.tries.begin(r.plan.Commands, fmt.Sprint(r.view.Cluster.Generation, r.event.Request))
	for _, cmd := range r.plan.Commands {
		if held.up(cmd) {
			continue
		}
		err := r.try(ctx, cmd, secrets, slow)
		switch {
		case err == nil:
			r.performed++
		case cmd.Line == "" || ctx.Err() != nil:
			return false, errors.Join(append(r.failures, err)...)
		default:
			held[cmd.Line] = true
			r.failures = append(r.failures, err)
			r.plan.Decisions = append(r.plan.Decisions, api.Decision{
				Object: cmd.Line, Verdict: api.VerdictWait, Reason: api.ReasonCommandFailed, Message: err.Error() + "; retrying",
			})
		}
	}
	return len(held) == 0, nil
}

// seenFor is how long after its start a run still writes what relies on its commands. What it saw then, such as that an OSD may stop, may
// not be so any more: the next run looks again.
const seenFor = 3 * time.Second

// performThen carries out the plan's commands, and writes what relies on all of them if none was held up or took long.
func (r *run) performThen(ctx context.Context, last *writes) error {
	whole, err := r.perform(ctx)
	if took := time.Since(r.started); len(last.do) > 0 && (err != nil || !whole || took > seenFor) {
		r.log.Info("changes that rely on the commands are left to the next run",
			"writes", last.what, "all carried out", err == nil && whole, "took", took)
		return err
	}
	return errors.Join(err, last.run(ctx))
}

// try has a command carried out, unless it failed a moment ago. Of slow daemons, which did not answer in time, nothing more is asked:
// each question would take as long.
func (r *run) try(ctx context.Context, cmd Command, secrets SecretReader, slow map[string]bool) error {
	if why := r.view.noAgent(cmd); why != "" { // not worth a pause: when the agent is back it can be asked at once
		return fmt.Errorf("while running %q for %s: %s", cmd.Verb, cmd.Object, why)
	}
	if last := r.memory.tries.held(cmd, r.started); last != nil {
		return last
	}
	r.log.Info("command of the storage system",
		"command", cmd.Verb, "object", cmd.Object, "daemon", cmd.Daemon, "reason", cmd.Reason)
	var err error
	if slow[cmd.Daemon] {
		err = errSlow
	} else {
		err = r.carryOut(ctx, cmd, secrets)
	}
	slow[cmd.Daemon] = slow[cmd.Daemon] || errors.Is(err, context.DeadlineExceeded)
	if err != nil {
		err = fmt.Errorf("while running %q for %s: %w", cmd.Verb, cmd.Object, err)
		r.log.Warn("command failed", "error", err)
	}
	r.memory.tries.note(cmd, err, time.Now())
	return err
}

var errSlow = errors.New("the previous command has not ended in time")

// waitsPerRun is how many times as long as a run took nothing is looked at again that nobody told of: a large cluster that waits for
// something would otherwise keep a core busy with looking, of which others have need. That is no reason to wait for longer than mostWait:
// a run may have taken long because the storage system did not answer.
const (
	waitsPerRun = 3
	mostWait    = 500 * time.Millisecond
)

// recheck is when the next run is wanted: when the plan says so, and when a command that failed may be tried again.
func (r *run) recheck() time.Duration {
	wait := r.plan.Recheck
	if again := r.memory.tries.next(r.started); !again.IsZero() {
		until := max(time.Until(again), time.Millisecond)
		wait = cmp.Or(min(wait, until), until)
	}
	if wait > 0 {
		wait = max(wait, min(mostWait, waitsPerRun*time.Since(r.started)))
	}
	return wait
}

// tries remembers the commands of the last plan that failed. What the administrator changes in the cluster may have mended them:
// then all may be tried at once.
type tries struct {
	asked  string
	failed map[string]*failure
}

type failure struct {
	cmd      Command
	failures int
	again    time.Time
	err      error
}

// begin forgets the commands that are not wanted any more.
func (t *tries) begin(commands []Command, asked string) {
	was := t.failed
	t.failed = map[string]*failure{}
	for _, c := range commands {
		if f := was[tryKey(c)]; f != nil && t.asked == asked {
			t.failed[tryKey(c)] = f
		}
	}
	t.asked = asked
}

// held is what was said of a command that failed so short a time ago that it is not tried yet; nil when it may be tried.
func (t *tries) held(cmd Command, now time.Time) error {
	if f := t.failed[tryKey(cmd)]; f != nil && cmd.Line != "" && now.Before(f.again) {
		return f.err
	}
	return nil
}

func (t *tries) note(cmd Command, err error, now time.Time) {
	k := tryKey(cmd)
	if err == nil {
		delete(t.failed, k)
		return
	}
	f := t.failed[k]
	if f == nil {
		f = &failure{cmd: cmd}
		t.failed[k] = f
	}
	f.failures++
	f.again, f.err = now.Add(backoff.Pause(k, f.failures)), err
}

// next is when the first of them may be tried again; zero when none failed. One that could be tried in the run that started then, and was
// not, waits for something else: its agent is silent, or a command before it failed.
func (t *tries) next(started time.Time) (at time.Time) {
	for _, f := range t.failed {
		if f.again.After(started) {
			at = earliest(at, f.again)
		}
	}
	return at
}

// failures are the commands that failed, by what they are about.
func (t *tries) failures() []CommandFailure {
	var all []CommandFailure
	for _, f := range t.failed {
		all = append(all, CommandFailure{Command: f.cmd, Message: f.err.Error()})
	}
	slices.SortFunc(all, func(a, b CommandFailure) int { return strings.Compare(a.Message, b.Message) })
	return all
}

// tryKey tells a command from all others.
func tryKey(c Command) string {
	text, err := json.Marshal([]any{c.Daemon, c.Verb, c.Object, c.Params})
	if err != nil { // maps of strings always can be written
		return c.Daemon + " " + c.Verb + " " + c.Object
	}
	return string(text)
}
