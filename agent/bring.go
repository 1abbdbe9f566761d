package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/intact"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// stopDeadline bounds a stop whose Daemon does not say how long it may take, and the time that killing takes.
const stopDeadline = 2 * time.Minute

// keepRunning makes sure that the daemon is ready and its process is kept running. One that was asked to end before, and had not when Stop gave up, ends
// some time and is not started again by the runtime: its Stop is carried through first, whoever asked for it and whether or not somebody still wants it.
func (a *agent) keepRunning(ctx context.Context, d *api.Daemon) error {
	key := client.ObjectKeyFromObject(d)
	name := processName(key)
	if err := a.disinherit(ctx, d); err != nil {
		return a.fail(ctx, d, err)
	}
	if s, runs := a.Runtime.State(name); runs && (s.Stopping || a.acts.ends(key, s) || a.renamed(ctx, d, s) || a.lost(d, s)) {
		if err := a.stopProcess(ctx, d); err != nil {
			return a.fail(ctx, d, fmt.Errorf("while stopping the process for its restart: %w", err))
		}
	}
	if _, runs := a.Runtime.State(name); !runs || !a.work.isReady(key, generationOf(d)) {
		l, ran, err := a.makeReady(ctx, d)
		if l == nil {
			return err
		}
		if err := a.Runtime.Start(ctx, newProcess(a, d, l)); err != nil {
			return a.fail(ctx, d, err)
		}
		if err == nil {
			err = a.noteReady(l, ran)
		}
		if err != nil {
			return a.fail(ctx, d, err)
		}
	}
	s, known := a.Runtime.State(name)
	if !known {
		return errors.New("the runtime does not know the process that it started")
	}
	a.reports.sees(d, s)
	return a.tell(ctx, d, runningStatus(s, a.versionOf(ctx, d), a.words.Exit(d, s.LastExit)))
}

// noteReady notes that a daemon is ready, and on which names of its devices. One that ran meanwhile goes on with those that it was prepared on, which
// a file says: the agent may be another one than then, and the names others since a loss of power.
func (a *agent) noteReady(l *service.Local, ran bool) error {
	key, r := client.ObjectKeyFromObject(l.Daemon), readinessOf(l)
	if len(r.paths) > 0 {
		file := filepath.Join(a.paths.daemon(key), filePaths)
		if ran {
			r.paths = readPaths(file)
		} else if err := writePaths(file, r.paths); err != nil {
			return fmt.Errorf("while noting the names of the daemon's devices: %w", err)
		}
	}
	r.files = intact.Of(l.Data, l.Daemon.Spec.Files)
	a.work.setReady(key, r)
	return nil
}

// filePaths has the names of the devices that a daemon was prepared on, by what they are to it.
const filePaths = "devices.json"

// readPaths returns nothing where it is not known: then the daemon is prepared anew when its process ends.
func readPaths(file string) (paths map[string]string) {
	if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &paths) != nil {
		return nil
	}
	return paths
}

func writePaths(file string, paths map[string]string) error {
	data, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600)
}

// renamed says whether a process that ended would be started again on a device that has another name by now: a disk that was taken out and put
// back comes under another one, and so may one that came late.
func (a *agent) renamed(ctx context.Context, d *api.Daemon, s runtime.State) bool {
	if s.Running || len(d.Spec.Devices) == 0 {
		return false
	}
	l := a.local(d)
	return a.preparer.Find(ctx, l, true) == nil && a.work.isElsewhere(client.ObjectKeyFromObject(d), l)
}

// lost says whether a process that ended would be started again without what it needs.
func (a *agent) lost(d *api.Daemon, s runtime.State) bool {
	t, ok := a.types[d.Spec.Type]
	if s.Running || !ok {
		return false
	}
	l := a.local(d)
	k, ok := t.agent.(service.Keeper)
	return ok && !k.Kept(l) || a.work.isSpoiled(client.ObjectKeyFromObject(d), l)
}

// keepStopped stops the process; for a daemon that is wanted Prepared it makes everything else ready.
func (a *agent) keepStopped(ctx context.Context, d *api.Daemon) error {
	key := client.ObjectKeyFromObject(d)
	if err := a.stopAll(ctx, d); err != nil {
		return a.fail(ctx, d, err)
	}
	if d.Spec.State != api.WantPrepared {
		a.work.forget(key)
		return a.tell(ctx, d, api.DaemonStatus{State: api.DaemonStopped})
	}
	if !a.work.isReady(key, generationOf(d)) {
		l, ran, err := a.makeReady(ctx, d)
		if l == nil {
			return err
		}
		if err == nil {
			err = a.noteReady(l, ran)
		}
		if err != nil {
			return a.fail(ctx, d, err)
		}
	}
	return a.tell(ctx, d, api.DaemonStatus{State: api.DaemonPrepared, Version: a.versionOf(ctx, d)})
}

// stopProcess stops the process of a daemon, if it has one.
func (a *agent) stopProcess(ctx context.Context, d *api.Daemon) error {
	name := processName(client.ObjectKeyFromObject(d))
	if _, runs := a.Runtime.State(name); !runs {
		return nil
	}
	done := a.announce(ctx, d, api.DaemonStopping, "the process is ending")
	defer done()
	ctx, cancel := context.WithTimeout(ctx, d.Spec.StopTimeout.Duration+stopDeadline)
	defer cancel()
	return a.Runtime.Stop(ctx, name)
}

// stopAll stops the process of a daemon, and those that it started to go on without it.
func (a *agent) stopAll(ctx context.Context, d *api.Daemon) error {
	if err := a.stopProcess(ctx, d); err != nil {
		return err
	}
	if t, ok := a.types[d.Spec.Type]; ok {
		if closer, closes := t.agent.(service.DeviceCloser); closes {
			if err := closer.CloseDevices(ctx, a.local(d)); err != nil {
				return err
			}
		}
	}
	f, ok := a.forker(d)
	if !ok {
		return nil
	}
	done := a.announce(ctx, d, api.DaemonStopping, "the processes that it started are ending")
	defer done()
	ctx, cancel := context.WithTimeout(ctx, stopDeadline)
	defer cancel()
	return f.EndOthers(ctx, a.local(d))
}

// forker is the service agent of a daemon whose process starts others that go on without it.
func (a *agent) forker(d *api.Daemon) (service.Forker, bool) {
	t, ok := a.types[d.Spec.Type]
	if !ok {
		return nil, false
	}
	f, ok := t.agent.(service.Forker)
	return f, ok
}

// makeReady writes the files and has the service agent prepare the data. A daemon that runs, as ran tells, gets its files alone: the rest
// is in use. An error with a place is about devices that the daemon can go on without, and was not told yet.
func (a *agent) makeReady(ctx context.Context, d *api.Daemon) (place *service.Local, ran bool, err error) {
	t, ok := a.types[d.Spec.Type]
	if !ok {
		return nil, false, a.fail(ctx, d, fmt.Errorf("this agent (version %s) does not know daemons of type %q: upgrade Holdfast on this host", a.Version, d.Spec.Type))
	}
	// To wait for a server that has much to do is no progress, and to tell it of that would be more to do.
	secrets, err := a.secrets.Of(ctx, d)
	if unanswered(err) {
		return nil, false, err
	}
	if err != nil {
		return nil, false, a.fail(ctx, d, err)
	}
	done := a.announce(ctx, d, api.DaemonPreparing, "the agent prepares files and data")
	defer done()
	if err := t.initialize(ctx, a.Name); err != nil {
		done()
		return nil, false, a.fail(ctx, d, err)
	}
	s, _ := a.Runtime.State(processName(client.ObjectKeyFromObject(d)))
	l, err := a.preparer.Prepare(ctx, a.local(d), t.agent, secrets, s.Running)
	done()
	if err != nil && l == nil {
		return nil, false, a.fail(ctx, d, err)
	}
	return l, s.Running, err
}

func newProcess(a *agent, d *api.Daemon, l *service.Local) runtime.Process {
	_, forks := a.forker(d)
	return runtime.Process{
		Name: processName(client.ObjectKeyFromObject(d)), Command: l.Command, Dir: l.Data, RunDir: l.Run,
		LogFile: a.paths.logFile(client.ObjectKeyFromObject(d)), StopTimeout: d.Spec.StopTimeout.Duration,
		KeepChildren: forks, Needs: service.NeedsOf(a.types[d.Spec.Type].agent, l),
		Of: runtime.Owner{
			Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Type: d.Spec.Type, ID: d.Spec.ID, Cluster: d.Spec.Cluster,
		},
	}
}
