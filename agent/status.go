package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/condition"
	"github.com/holdfast-storage/holdfast/agent/lastwords"
	"github.com/holdfast-storage/holdfast/agent/pending"
	"github.com/holdfast-storage/holdfast/agent/prepare"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/ends"
)

// announceAfter is how long something takes before it is worth telling: what is over by then is told by its outcome. A fleet that
// comes up would otherwise tell of most things twice.
const announceAfter = time.Second

// maxMessage is the bound of Daemon.status.message.
const maxMessage = 2048

// notInEffect begins the message of a daemon whose process goes on without its newest spec.
const notInEffect = "the changed spec is not in effect: "

type atomicString struct{ v atomic.Value }

// Swap sets the string and returns the old one.
func (s *atomicString) Swap(v string) string {
	old, _ := s.v.Swap(v).(string)
	return old
}

func processNameOf(d *api.Daemon) string { return processName(client.ObjectKeyFromObject(d)) }

// tell writes the status of a daemon, if it differs from what the server has. The report stays as it was told last.
func (a *agent) tell(ctx context.Context, d *api.Daemon, status api.DaemonStatus) error {
	return a.tellStanding(ctx, d, status, condition.Of(d, &status))
}

// tellStanding is tell for a daemon of which its state does not say how it is.
func (a *agent) tellStanding(ctx context.Context, d *api.Daemon, status api.DaemonStatus, is kstatus.Standing) error {
	return a.edit(ctx, d, func(have *api.DaemonStatus) {
		status.ObservedGeneration = d.Generation
		status.Conditions = slices.Clone(have.Conditions)
		is.Message = fitMessage(is.Message) // what is cut and escaped later would never be what is there
		kstatus.Set(&status.Conditions, d.Generation, is, a.now())
		if status.LastExit == nil {
			status.LastExit = have.LastExit
		}
		status.Ends = ends.Next(have, &status)
		if wantsReport(d) || d.DeletionTimestamp != nil {
			status.Report = have.Report
		}
		if status.State == api.DaemonRunning && status.Message == "" {
			status.Message = a.reports.problemOf(d)
		}
		*have = status
	})
}

// edit changes the status of a daemon and writes it, if it differs from what the server has. Only
// fields that differ are sent; the agent is their only writer, one goroutine at a time. What
// somebody else wrote is written over (writeAgain).
func (a *agent) edit(ctx context.Context, d *api.Daemon, change func(*api.DaemonStatus)) error {
	defer a.told.lock(client.ObjectKeyFromObject(d))()
	w := a.told.open(d)
	status := *w.status.DeepCopy()
	change(&status)
	fitDaemon(&status)
	if w.overwritten() && equality.Semantic.DeepEqual(w.status, status) && !a.writeAgain(d) {
		return nil // nothing is new but what somebody else wrote
	}
	have, write := a.told.begin(d, status)
	if !write {
		return nil
	}
	answer, err := a.patchStatus(ctx, d, have, status)
	if a.told.end(d, status, answer) && a.writeAgain(d) {
		a.work.queue.Add(client.ObjectKeyFromObject(d))
	}
	return err
}

// patchStatus sends what differs of a status, and returns what the server has then; nil where the
// Daemon is gone, and nobody wants to know. What it has of fields that are not sent may be somebody
// else's, so that the answer is read into an empty Daemon.
func (a *agent) patchStatus(ctx context.Context, d *api.Daemon, have, status api.DaemonStatus) (*api.Daemon, error) {
	data, err := client.MergeFrom(&api.Daemon{Status: have}).Data(&api.Daemon{Status: status})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	err = a.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, data))
	if err == nil {
		return answer, nil
	}
	if err = client.IgnoreNotFound(err); err != nil {
		err = fmt.Errorf("while reporting the daemon: %w", err)
	}
	return nil, err
}

// noticeStatus has a status written again that somebody else wrote, or by what the storage system says now.
func (a *agent) noticeStatus(d *api.Daemon) {
	if seen, said := a.told.seen(d); said || seen && a.writeAgain(d) {
		a.work.queue.Add(client.ObjectKeyFromObject(d))
	}
}

// writeAgain says whether a status that somebody else wrote is to be written again now. Otherwise
// it is after a pause. Machines that run as one host would take turns: each tells only what is new
// of its own, and goOn has everything told afterwards.
func (a *agent) writeAgain(d *api.Daemon) bool {
	if a.sole.holds() != "" {
		return false
	}
	pause := a.told.pause(d, a.now(), cmp.Or(a.retryMax, againMax))
	if pause > 0 {
		a.work.queue.AddAfter(client.ObjectKeyFromObject(d), pause)
	}
	return pause <= 0
}

// announce tells what is being done if it takes long. The returned function, which may be called twice, ends that.
func (a *agent) announce(ctx context.Context, d *api.Daemon, state api.DaemonState, message string) (done func()) {
	ended := make(chan struct{})
	now := a.told.last(d)
	now.State, now.Message = state, message
	if state != api.DaemonStopping {
		now.PID, now.Started = 0, nil
	}
	timer := time.AfterFunc(announceAfter, func() {
		defer close(ended)
		if err := a.tell(ctx, d, now); err != nil && ctx.Err() == nil {
			a.log.Debug("progress could not be reported", "daemon", client.ObjectKeyFromObject(d), "error", err)
		}
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-ended
		}
	})
}

// fail tells why a daemon cannot be brought to its wanted state, and returns the error.
func (a *agent) fail(ctx context.Context, d *api.Daemon, err error) error {
	if ctx.Err() != nil {
		return err
	}
	status := api.DaemonStatus{State: api.DaemonFailed, Message: err.Error()}
	waits := pending.Is(err)
	if waits {
		status.State = api.DaemonPending
	}
	if s, known := a.Runtime.State(processNameOf(d)); known {
		// The process goes on with what it has.
		message := status.Message
		if about := (*prepare.DeviceError)(nil); !errors.As(err, &about) {
			message = notInEffect + message
		}
		status = runningStatus(s, a.versionOf(ctx, d), a.words.Exit(d, s.LastExit))
		status.Message = message
	}
	return errors.Join(err, a.tellStanding(ctx, d, status, condition.Faulty(d, &status, waits)))
}

// runningStatus says how a process that is kept running is, and how it ended the last time.
func runningStatus(s runtime.State, version string, exit *api.DaemonExit) api.DaemonStatus {
	status := api.DaemonStatus{
		State: api.DaemonRunning, PID: int32(s.PID), Restarts: int32(s.Restarts), Version: version, LastExit: exit,
	}
	if s.Running {
		started := micro(s.Started)
		status.Started, status.Message = &started, s.Problem
		return status
	}
	status.State, status.PID, status.Message = api.DaemonBackOff, 0, s.Problem
	switch {
	case exit != nil:
		status.Message = lastwords.Text(exit, s.BackOffUntil)
		if s.Problem != "" {
			status.Message += ": " + s.Problem
		}
	case s.Problem == "":
		status.State, status.Message = api.DaemonPreparing, "its process is being started"
	}
	return status
}

// micro rounds a time to what the API stores, so that it compares equal when it comes back.
func micro(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.Truncate(time.Microsecond)) }
