package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/foreign"
)

// fileTaken is there when the process of before has ended for good, and its data is in its place. Nobody's process is ended after that.
const fileTaken = "taken-over"

// takeOver ends the process of a daemon that somebody else has started, once, and then has its data put into place. What is needed is looked at first:
// a process is not ended for a daemon that could not be started. It may be cut off anywhere and done again.
func takeOver(ctx context.Context, l *service.Local, check, place func() error) error {
	if l.Parameters[api.ParameterForeign] == "" {
		return nil
	}
	taken := filepath.Join(l.Data, fileTaken)
	if _, err := os.Stat(taken); err == nil {
		return nil
	}
	if err := check(); err != nil {
		return fmt.Errorf("%w. The process of before was left alone", err)
	}
	if err := endForeign(ctx, l, hostSystemd); err != nil {
		return err
	}
	if err := place(); err != nil {
		return err
	}
	return atomicfile.Write(taken, nil, 0o600)
}

// before is the process that runs what is taken over; nil where none does.
func before(l *service.Local) (*api.ForeignDaemon, error) {
	all, err := new(foreign.Finder).Find(nil)
	if err != nil {
		return nil, err
	}
	return pick(l, all), nil
}

func pick(l *service.Local, all []api.ForeignDaemon) *api.ForeignDaemon {
	return foreign.Pick(all, l.Daemon.Spec.Type, l.Daemon.Spec.ID, l.Parameters[api.ParameterForeign])
}

// endForeign ends the process of before, if it runs, and sees to it that nothing starts it again. Two on one store keep each other from running.
func endForeign(ctx context.Context, l *service.Local, s systemd) error {
	all, err := new(foreign.Finder).Find(nil)
	if err != nil {
		return err
	}
	p := pick(l, all)
	if err := endable(l, p); err != nil {
		return err
	}
	// Also where it has ended already: who was cut off here would leave it to the next boot to start it.
	if err := endUnits(ctx, l, s, bootUnits(l, all, p), p); err != nil || p == nil {
		return err
	}
	if err := end(ctx, l, p); err != nil {
		return err
	}
	again, err := before(l)
	if err == nil && again != nil {
		err = fmt.Errorf("process %d, which ran %s.%s before, was ended, but process %d runs it now: another "+
			"program starts it again, or it was started twice; switch that program off",
			p.PID, l.Daemon.Spec.Type, l.Daemon.Spec.ID, again.PID)
	}
	return err
}

// endable refuses what is not ended, as there may be more to it than the daemon.
func endable(l *service.Local, p *api.ForeignDaemon) error {
	own := ownUnit(l)
	switch {
	case p == nil:
		return nil
	case p.Container:
		return fmt.Errorf("process %d runs in a container: it was left alone", p.PID)
	case p.Unit != "" && p.Unit != own: // such as cron.service, or that of a shell
		return fmt.Errorf("process %d belongs to the unit %s, which may do more than run it: it was left alone; run "+
			"it by the unit %s", p.PID, p.Unit, own)
	}
	return nil
}

// endUnits disables the units, and then stops those that were enabled, and the one that runs the process. What can fail of that, such as where /etc
// may not be written to, does so while the process still runs.
func endUnits(ctx context.Context, l *service.Local, s systemd, units []string, p *api.ForeignDaemon) error {
	enabled, err := s.enabled(units)
	if err != nil {
		return err
	}
	was, err := writeBefore(l, p, enabled)
	if err != nil {
		return fmt.Errorf("while writing down how the daemon was run before: %w", err)
	}
	if err := s.disable(ctx, l, enabled); err != nil {
		return err
	}
	if len(was.Enabled) > 0 { // also what an earlier try has disabled
		if err := s.sync(); err != nil {
			return err
		}
	}
	return s.stop(ctx, l, slices.DeleteFunc(units, func(unit string) bool {
		return !slices.Contains(was.Enabled, unit) && (p == nil || p.Unit != unit)
	}))
}

// end ends the process, unless it ended with its unit.
func end(ctx context.Context, l *service.Local, p *api.ForeignDaemon) error {
	timeout := max(l.Daemon.Spec.StopTimeout.Duration, 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := foreign.End(ctx, p); err != nil {
		return fmt.Errorf("process %d, which ran %s.%s before, did not end within %s after SIGTERM, and is not killed: %w", p.PID, l.Daemon.Spec.Type, l.Daemon.Spec.ID, timeout, err)
	}
	return nil
}

// unused refuses to wipe what a process has in use that Holdfast did not start: the one of before, which did not end, or one that somebody has started
// since. The daemon's own has ended.
func unused(l *service.Local) error {
	if l.Parameters[api.ParameterForeign] == "" {
		return nil
	}
	p, err := before(l)
	if err == nil && p != nil {
		err = fmt.Errorf("process %d runs %s.%s, and Holdfast did not start it: nothing is wiped. End it, if its data is not needed", p.PID, p.Type, p.ID)
	}
	return err
}

// takeOverMon has the store of a mon stay where it is: the daemon's own place is a link to it.
func takeOverMon(ctx context.Context, l *service.Local) error {
	store, dir := filepath.Join(l.Data, directoryName), l.Parameters[paramStore]
	if lost, err := lostBefore(l, dir); lost || err != nil {
		return err
	}
	return takeOver(ctx, l, func() error {
		if err := sameStore(l, dir); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "store.db", "CURRENT")); err != nil {
			return fmt.Errorf("%s is no store of mon.%s: %w", dir, l.Daemon.Spec.ID, err)
		}
		if st, err := os.Lstat(store); err == nil && st.Mode()&os.ModeSymlink == 0 {
			return fmt.Errorf("there is a store of mon.%s in %s already", l.Daemon.Spec.ID, store)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}, func() error { return linkDevice(store, dir) })
}

// lostBefore says whether a mon that was taken over once has lost all that there was, as when its machine was installed anew, and may be made again
// from the others.
func lostBefore(l *service.Local, dir string) (bool, error) {
	if l.Parameters[paramRejoin] == "" {
		return false, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "store.db", "CURRENT")); !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	p, err := before(l)
	return p == nil && err == nil, err
}

// sameStore refuses to go on with a store that the mon does not use any more: what was agreed on since would be forgotten.
func sameStore(l *service.Local, dir string) error {
	p, err := before(l)
	if err != nil || p == nil {
		return err
	}
	adopted, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if is, err := os.Stat(p.Data); err != nil || !os.SameFile(is, adopted) {
		return fmt.Errorf("the store of mon.%s is %s now, and was %s when it was adopted: set spec.mode of the "+
			"cluster to Observed, delete its Daemon, and run 'holdfast ceph adopt' again", l.Daemon.Spec.ID, p.Data,
			dir)
	}
	return nil
}
