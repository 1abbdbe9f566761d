package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent/pending"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// restartKind ends the process of a daemon and has another one take its place. Its first step writes down, on the host, which
// process that is; so it is ended once, however often the agent dies meanwhile.
var restartKind = action.Kind{
	Name: api.ActionDaemonRestart, Executor: api.ByAgent, Mode: action.Rolling,
	Summary: "restarts the process of a daemon (target daemon/NAME)",
	Steps:   []string{"look", "restart"}, Asks: true, Timeout: 15 * time.Minute, ExpiresAfter: time.Hour,
}

type restart struct{ *agent }

// Kind implements action.Handler.
func (r *restart) Kind() action.Kind { return restartKind }

// target is the daemon of an action, or an error that says why it cannot be restarted.
func (r *restart) target(a *api.Action) (types.NamespacedName, error) {
	name, ok := strings.CutPrefix(a.Spec.Target, "daemon/")
	key := types.NamespacedName{Namespace: a.Namespace, Name: name}
	if !ok {
		return key, fmt.Errorf("%w: the target %q is not a daemon: it must be daemon/NAME", action.ErrRefused,
			a.Spec.Target)
	}
	switch d, known := r.work.daemons.get(key); {
	case !known:
		return key, pending.For("the server to send the list of daemons of this host")
	case d == nil:
		return key, fmt.Errorf("%w: daemon %s does not exist on host %s", action.ErrRefused, name, r.Name)
	case d.DeletionTimestamp != nil:
		return key, fmt.Errorf("%w: daemon %s is being removed", action.ErrRefused, name)
	case d.Spec.State != api.WantRunning:
		return key, fmt.Errorf("%w: the desired state of daemon %s is %s, not Running", action.ErrRefused, name, d.Spec.State)
	}
	return key, nil
}

// Check implements action.Handler.
func (r *restart) Check(_ context.Context, a *api.Action) error {
	_, err := r.target(a)
	return err
}

// Step implements action.Handler.
func (r *restart) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	key, err := r.target(a)
	if err != nil {
		r.acts.setRestart(key, nil)
		return action.Progress{}, err
	}
	old, err := r.read(a.UID)
	switch {
	case err != nil:
		return action.Progress{}, err
	case step == "look" && old == nil:
		return r.look(key, a.UID)
	case step == "look":
		return action.Progress{Done: true, Message: old.text()}, nil
	case old == nil:
		return action.Progress{}, fmt.Errorf("%w: this host has no record of the process to end", action.ErrRefused)
	}
	return r.replace(ctx, key, *old)
}

// look writes down which process runs now.
func (r *restart) look(key types.NamespacedName, uid types.UID) (action.Progress, error) {
	s, _ := r.Runtime.State(processName(key))
	p := processOf(s)
	data, err := json.Marshal(p)
	if err != nil {
		return action.Progress{}, err
	}
	path := r.paths.actionOf(uid)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return action.Progress{}, err
	}
	if err := atomicfile.Write(path, data, 0o600); err != nil {
		return action.Progress{}, fmt.Errorf("while recording the process to end: %w", err)
	}
	return action.Progress{Done: true, Message: p.text()}, nil
}

func (p *process) text() string {
	if p.PID == 0 {
		return "no process runs"
	}
	return fmt.Sprintf("ending process %d, which runs since %s", p.PID, p.Started.UTC().Format(time.DateTime+"Z"))
}

// replace has the process ended in the course of the work on its daemon, and is done when another one runs and does its part.
func (r *restart) replace(ctx context.Context, key types.NamespacedName, old process) (action.Progress, error) {
	s, known := r.Runtime.State(processName(key))
	if known && s.Running && !old.is(s) {
		r.acts.setRestart(key, nil)
		return r.runsAgain(ctx, key, s), nil
	}
	r.acts.setRestart(key, &old)
	r.work.add(key)
	if !s.Stopping && (!known || !old.is(s) || old.PID == 0) {
		return started(key), nil
	}
	return ending(key, old), nil
}

// runsAgain is done when the new process does its part, by its own word where its service agent can ask for that.
func (r *restart) runsAgain(ctx context.Context, key types.NamespacedName, s runtime.State) action.Progress {
	p := action.Progress{Message: fmt.Sprintf("%s runs again, as process %d", key.Name, s.PID), Recheck: shortly}
	if text, err := r.awaits(ctx, key); err != nil {
		p.WaitsFor, p.Recheck = "an answer of the daemon: "+err.Error(), reportEvery
	} else if text != "" {
		p.WaitsFor = text
	} else {
		p.Done = true
	}
	return p
}

// awaits is what the process of a daemon waits for until it does its part.
func (r *restart) awaits(ctx context.Context, key types.NamespacedName) (string, error) {
	d, _ := r.work.daemons.get(key)
	if d == nil || r.types[d.Spec.Type] == nil {
		return "", nil
	}
	waiter, ok := r.types[d.Spec.Type].agent.(service.Waiter)
	if !ok {
		return "", nil
	}
	return waiter.Awaits(ctx, r.local(d))
}

func ending(key types.NamespacedName, old process) action.Progress {
	p := action.Progress{Message: "the process is ending", WaitsFor: fmt.Sprintf("process %d of %s to end", old.PID, key.Name), Recheck: shortly}
	if old.PID == 0 {
		p.WaitsFor = "the previous process of " + key.Name + " to end"
	}
	return p
}

func started(key types.NamespacedName) action.Progress {
	return action.Progress{
		Message: "starting the process", WaitsFor: fmt.Sprintf("a process of %s to run: see 'holdfast get daemons %s'", key.Name, key.Name), Recheck: shortly,
	}
}

// shortly is when to look again at a process that ends or is started.
const shortly = 100 * time.Millisecond

// Undo implements action.Handler. A process that was not asked to end goes on. One that was cannot be held: it ends, and is started
// again by the work on its daemon, which is waited for, so that nothing else is begun on the host meanwhile.
func (r *restart) Undo(_ context.Context, a *api.Action, step string) (action.Progress, error) {
	key, err := r.target(a)
	r.acts.setRestart(key, nil)
	if step == "look" || errors.Is(err, action.ErrRefused) {
		return action.Progress{Done: true}, nil
	}
	var old *process
	if err == nil {
		old, err = r.read(a.UID)
	}
	if err != nil || old == nil {
		return action.Progress{Done: err == nil}, err
	}
	return r.takeBack(key, *old), nil
}

// takeBack says what becomes of a process now that nobody wants it to end.
func (r *restart) takeBack(key types.NamespacedName, old process) action.Progress {
	s, known := r.Runtime.State(processName(key))
	switch {
	case s.Stopping:
		r.work.add(key) // the agent may be another one than that which asked it to end
		return ending(key, old)
	case r.work.busy(key) && known && old.is(s):
		return action.Progress{Message: "the agent is at work on the daemon", WaitsFor: "what it does to " + key.Name + " just now", Recheck: shortly}
	case r.work.busy(key), !known && !r.work.hasFailed(key): // it may only be in line: an agent that was just started has not looked yet
		return started(key)
	}
	return action.Progress{Done: true, Message: old.became(key.Name, s)}
}

// became tells what became of a process that was to be ended.
func (p *process) became(daemon string, s runtime.State) string {
	goesOn := fmt.Sprintf("%s does not run: see 'holdfast get daemons %s'", daemon, daemon)
	if s.Running {
		goesOn = fmt.Sprintf("%s runs, as process %d", daemon, s.PID)
	}
	switch {
	case p.PID == 0:
		return goesOn
	case p.is(s):
		return "its process was not asked to end: " + goesOn
	}
	return fmt.Sprintf("process %d could not be kept from ending: now %s", p.PID, goesOn)
}

// read returns the process that an action is to end; nil when it was not written down yet.
func (r *restart) read(uid types.UID) (*process, error) {
	data, err := os.ReadFile(r.paths.actionOf(uid))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p process
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("while reading %s: %w", r.paths.actionOf(uid), err)
	}
	return &p, nil
}

// process tells a process from the one that takes its place.
type process struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

func processOf(s runtime.State) process {
	if !s.Running {
		return process{}
	}
	return process{s.PID, s.Started}
}

func (p process) is(s runtime.State) bool {
	other := processOf(s)
	return p.PID == other.PID && p.Started.Equal(other.Started)
}

// served stands for a pause before a start that was cut short. That is done once: a process that cannot run is started again
// with pauses.
var served = process{PID: -1}

// ends says whether this process of a daemon is to be ended, so that another one takes its place.
func (x *actions) ends(daemon types.NamespacedName, s runtime.State) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.restarts[daemon]
	if !ok || !old.is(s) {
		return false
	}
	if old.PID == 0 {
		x.restarts[daemon] = served
	}
	return true
}

// setRestart asks for the end of a process; nil takes that back.
func (x *actions) setRestart(daemon types.NamespacedName, old *process) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old == nil {
		delete(x.restarts, daemon)
	} else if _, asked := x.restarts[daemon]; !asked {
		x.restarts[daemon] = *old
	}
}
