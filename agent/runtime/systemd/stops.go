package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// stopPath is a file that is there from before a service is asked to end until it is forgotten. By what systemd says, the end that Stop asks for looks like
// one that others ask for, as a shutdown of the machine does, and like that of a service that ended by itself and has left processes behind.
func (r *Runtime) stopPath(name string) string { return filepath.Join(r.cfg.Dir, name+".stopping") }

// stopNoted says whether an earlier agent began to stop a service. Where that cannot be told it did not.
func (r *Runtime) stopNoted(name string) bool {
	_, err := os.Stat(r.stopPath(name))
	return err == nil
}

func (r *Runtime) noteStop(name string) error {
	if err := atomicfile.Write(r.stopPath(name), nil, 0o600); err != nil {
		return fmt.Errorf("while recording that it must end: %w", err)
	}
	r.setStopping(name, true)
	return nil
}

// dropStop forgets that a service was asked to end. Where the file cannot be removed, another agent may end and start the service once more.
func (r *Runtime) dropStop(name string) {
	r.setStopping(name, false)
	if err := atomicfile.Remove(r.stopPath(name)); err != nil {
		r.log.Warn("the record that a daemon was asked to end cannot be removed", "daemon", name, "error", err)
	}
}

func (r *Runtime) setStopping(name string, stopping bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.units[name]; u != nil {
		u.stopping = stopping
	}
}

func (r *Runtime) isStopping(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[name]
	return u != nil && u.stopping
}

// finishStop carries a Stop through that was cut off. One after which the service was started, as a boot does, or that never came to ask it to end, is
// forgotten.
func (r *Runtime) finishStop(ctx context.Context, name string) error {
	if !r.isStopping(name) {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := r.refresh(call, name)
	switch {
	case err != nil:
		return fmt.Errorf("while looking whether %s has ended: %w", name, err)
	case s.Stopping:
		return r.end(ctx, name)
	}
	r.dropStop(name)
	return nil
}
