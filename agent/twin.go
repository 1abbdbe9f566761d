package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/condition"
	"github.com/holdfast-storage/holdfast/agent/pending"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// twinNote is what the agent did about its standing last. It is the beat's alone.
type twinNote struct {
	standing standing
	written  string
}

// Elsewhere says whether the daemons of a data directory may run on another machine: it was last
// used on one, or another machine ran as the host when its agent ended. They are started when the
// agent knows that it is the only one, see Config.Alone. machine are the ids of this machine.
func Elsewhere(dataDir string, machine ...string) (bool, error) {
	note, err := instance.ReadNote(paths{data: filepath.Join(dataDir, "agent")}.machine())
	return note.Moved(machine...) || note != nil && note.Other != nil, err
}

// openSole begins to judge where the last run of the agent left off: one that was ended while another machine ran as the host
// starts nothing for a moment.
func (a *agent) openSole() error {
	self, err := instance.New(a.Machine)
	if err != nil {
		return err
	}
	a.sole = &sole{host: a.Name, self: self, former: a.FormerMachine}
	note, err := instance.ReadNote(a.paths.machine())
	if err != nil {
		a.log.Warn("the machine that used this data directory is unknown", "error", err)
		return nil
	}
	a.sole.moved = note.Moved(a.Machine, a.FormerMachine)
	if note != nil && note.Other != nil {
		a.sole.is, a.sole.other, a.sole.last = contested, *note.Other, a.now()
	}
	return nil
}

// noticeTwin acts on what the last beat showed of another machine that runs as this host.
func (a *agent) noticeTwin(ctx context.Context) {
	is, other := a.sole.standing()
	if is == alone || is == contested {
		a.noteStanding(is, other)
	}
	was := a.twin.standing
	a.twin.standing = is
	if was == is || ctx.Err() != nil {
		return
	}
	switch is {
	case alone:
		if was != unsure {
			a.log.Info("no other machine runs as this host", "host", a.Name)
		}
		a.goOn()
	case contested:
		a.log.Error(a.sole.holds())
		a.work.interrupt()
		a.acts.interruptAll()
	default:
		a.log.Warn("waiting before starting anything: " + a.sole.holds())
	}
}

// noteStanding writes down, for the next run and for 'holdfast doctor', how things stand.
func (a *agent) noteStanding(is standing, other instance.Instance) {
	note := instance.Note{Machine: a.Machine}
	if is == contested {
		self := a.sole.who()
		note.Self, note.Other = &self, &other
		if old, err := instance.ReadNote(a.paths.machine()); err == nil && old != nil {
			note.Machine = old.Machine
		}
	}
	data, err := json.Marshal(note)
	if err == nil && string(data) != a.twin.written {
		err = atomicfile.Write(a.paths.machine(), data, 0o600)
	}
	if err != nil {
		a.log.Warn("the machine's id could not be recorded", "error", err)
		return
	}
	a.twin.written = string(data)
}

// goOn has everything done that was held.
func (a *agent) goOn() {
	for _, d := range a.work.daemons.all() {
		a.work.add(client.ObjectKeyFromObject(d))
	}
	a.work.daemons.listed()
	if a.Alone != nil {
		a.Alone()
	}
	for _, x := range a.acts.known.all() {
		a.acts.queue.Add(client.ObjectKeyFromObject(x))
	}
	a.askReport()
}

// holdStill tells of a daemon while another machine may run as this host, and changes nothing of it. What runs is told of; of what does not, the agent
// on the other machine may know better.
func (a *agent) holdStill(ctx context.Context, key types.NamespacedName, d *api.Daemon) error {
	s, runs := a.Runtime.State(processName(key))
	why := a.sole.holds()
	is, _ := a.sole.standing()
	var err error
	switch {
	case d == nil || d.DeletionTimestamp != nil || d.Spec.State == api.WantWatched:
	case runs && s.Running && d.Spec.State == api.WantRunning:
		a.reports.sees(d, s)
		err = a.tellHeld(ctx, d, s, why)
	case is == contested && !runs && (d.Status.State == "" || d.Status.State == api.DaemonPending):
		err = a.tell(ctx, d, api.DaemonStatus{State: api.DaemonPending, Message: fmt.Sprintf("not started: %s", why)})
	}
	if err != nil {
		return err
	}
	return pending.For("%s", why)
}

// tellHeld tells of a process that goes on. Its daemon is not ready where a newer spec waits, and stays
// so where an earlier run of the agent told so: what stalled it then stays told.
func (a *agent) tellHeld(ctx context.Context, d *api.Daemon, s runtime.State, why string) error {
	status, last := runningStatus(s, a.versionOf(ctx, d), a.words.Exit(d, s.LastExit)), a.told.last(d)
	seen := last.ObservedGeneration == d.Generation
	faulty := last.State == api.DaemonRunning && meta.IsStatusConditionFalse(last.Conditions, api.ConditionReady)
	if a.work.isReady(client.ObjectKeyFromObject(d), generationOf(d)) || seen && !faulty {
		return a.tell(ctx, d, status)
	}
	status.Message = notInEffect + "waiting for " + why
	stalled := seen && meta.IsStatusConditionTrue(last.Conditions, api.ConditionStalled)
	if stalled {
		status.Message = last.Message
	}
	return a.tellStanding(ctx, d, status, condition.Faulty(d, &status, !stalled))
}
