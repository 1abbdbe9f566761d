package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// announceAfter is how long something takes before it is worth telling: what is over by then is told by its outcome. A fleet that
// comes up would otherwise tell of most things twice.
const announceAfter = time.Second

// maxMessage is the bound of Daemon.status.message.
const maxMessage = 2048

// told remembers what was written of each daemon: the watch brings it back only later.
type told struct {
	clock atomicString
	byKey sync.Map // types.NamespacedName -> tellings
	locks sync.Map // types.NamespacedName -> *sync.Mutex
}

type tellings struct {
	uid    types.UID
	status api.DaemonStatus
	// there is what the server has, which is status until somebody else writes it. version is the resource version of that.
	there   api.DaemonStatus
	version string
}

type atomicString struct{ v atomic.Value }

// Swap sets the string and returns the old one.
func (s *atomicString) Swap(v string) string {
	old, _ := s.v.Swap(v).(string)
	return old
}

// last is the status of a daemon that was told last.
func (t *told) last(d *api.Daemon) api.DaemonStatus { return t.of(d).status }

// of is what was told of a daemon. Before anything was, it is what the server has.
func (t *told) of(d *api.Daemon) tellings {
	if v, ok := t.byKey.Load(client.ObjectKeyFromObject(d)); ok {
		if w := v.(tellings); w.uid == d.UID {
			return w
		}
	}
	return tellings{uid: d.UID, status: d.Status, there: d.Status, version: d.ResourceVersion}
}

// overwritten says whether somebody else wrote the status of a daemon after it was told, and notes what is there now.
func (t *told) overwritten(d *api.Daemon) bool {
	w := t.of(d)
	newer, err := resourceversion.CompareResourceVersion(d.ResourceVersion, w.version)
	if err != nil || newer <= 0 || equality.Semantic.DeepEqual(d.Status, w.there) {
		return false
	}
	w.there, w.version = d.Status, d.ResourceVersion
	t.byKey.Store(client.ObjectKeyFromObject(d), w)
	return true
}

// lock has one goroutine at a time tell of a daemon.
func (t *told) lock(key types.NamespacedName) (unlock func()) {
	v, _ := t.locks.LoadOrStore(key, &sync.Mutex{})
	mu := v.(*sync.Mutex)
	mu.Lock()
	return mu.Unlock
}

func (t *told) forget(key types.NamespacedName) { t.byKey.Delete(key) }

func processNameOf(d *api.Daemon) string { return processName(client.ObjectKeyFromObject(d)) }

// tell writes the status of a daemon, if it differs from what the server has. The report stays as it was told last.
func (a *agent) tell(ctx context.Context, d *api.Daemon, status api.DaemonStatus) error {
	return a.edit(ctx, d, func(have *api.DaemonStatus) {
		status.ObservedGeneration = d.Generation
		if status.LastExit == nil {
			status.LastExit = have.LastExit
		}
		if wantsReport(d) || d.DeletionTimestamp != nil {
			status.Report = have.Report
		}
		if status.State == api.DaemonRunning && status.Message == "" {
			status.Message = a.reports.problemOf(d)
		}
		*have = status
	})
}

// edit changes the status of a daemon and writes it, if it differs from what the server has. Only fields that differ are sent; the
// agent is their only writer, one goroutine at a time. What somebody else wrote is written over (overwritten).
func (a *agent) edit(ctx context.Context, d *api.Daemon, change func(*api.DaemonStatus)) error {
	defer a.told.lock(client.ObjectKeyFromObject(d))()
	w := a.told.of(d)
	have, status := w.there, *w.status.DeepCopy()
	change(&status)
	fitDaemon(&status)
	if equality.Semantic.DeepEqual(have, status) {
		return nil
	}
	base, next := d.DeepCopy(), d.DeepCopy()
	base.Status, next.Status = have, status
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := a.client.Status().Patch(ctx, next, client.MergeFrom(base))
	if apierrors.IsNotFound(err) {
		return nil // the Daemon is gone: nobody wants to know
	}
	if err != nil {
		return fmt.Errorf("while reporting the daemon: %w", err)
	}
	a.told.byKey.Store(client.ObjectKeyFromObject(d), tellings{d.UID, status, status, next.ResourceVersion})
	return nil
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
	var w *waitError
	if errors.As(err, &w) {
		status.State = api.DaemonPending
	}
	if s, known := a.Runtime.State(processNameOf(d)); known {
		// The process goes on with what it has.
		message := status.Message
		if about := (*deviceError)(nil); !errors.As(err, &about) {
			message = "the changed spec is not in force: " + message
		}
		status = runningStatus(s, a.versionOf(ctx, d))
		status.Message = message
	}
	return errors.Join(err, a.tell(ctx, d, status))
}

// runningStatus says how a process that is kept running is.
func runningStatus(s runtime.State, version string) api.DaemonStatus {
	status := api.DaemonStatus{State: api.DaemonRunning, PID: int32(s.PID), Restarts: int32(s.Restarts), Version: version}
	if s.LastExit != nil {
		status.LastExit = &api.DaemonExit{Time: micro(s.LastExit.Time), Reason: s.LastExit.Reason, Log: s.LastExit.Log}
	}
	if s.Running {
		started := micro(s.Started)
		status.Started = &started
		return status
	}
	status.State, status.PID = api.DaemonBackOff, 0
	if s.LastExit != nil {
		status.Message = fmt.Sprintf("it ended (%s)", s.LastExit.Reason)
		if !s.BackOffUntil.IsZero() {
			status.Message += " and is started again at " + s.BackOffUntil.UTC().Format(time.TimeOnly+"Z")
		}
	}
	return status
}

// micro rounds a time to what the API stores, so that it compares equal when it comes back.
func micro(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t.Truncate(time.Microsecond)) }
