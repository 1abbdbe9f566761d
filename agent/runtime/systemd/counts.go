package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// count is how often a service was started again since Start was first called. systemd's own NRestarts begins anew with each boot, and whenever systemd
// is told to forget; so what is added to it each time it is looked at is kept here.
type count struct {
	Total int `json:"total"`
	// Seen is systemd's number when it was looked at last.
	Seen int `json:"seen"`
}

// with is the count after systemd's number was seen.
func (c count) with(n int) count {
	if n < c.Seen {
		return count{c.Total + n, n}
	}
	return count{c.Total + n - c.Seen, n}
}

func countPath(dir, name string) string { return filepath.Join(dir, name+".json") }

// readCount returns an empty count where none is kept.
func (r *Runtime) readCount(name string) (c count) {
	b, err := os.ReadFile(countPath(r.cfg.Dir, name))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("the number of restarts of a daemon is unknown", "daemon", name, "error", err)
	}
	return c
}

// keepCount writes a count down. What cannot be written is counted for as long as the agent lives.
func (r *Runtime) keepCount(name string, c count) {
	b, err := json.Marshal(c)
	if err == nil {
		err = atomicfile.Write(countPath(r.cfg.Dir, name), b, 0o600)
	}
	if err != nil {
		r.log.Warn("the number of restarts of a daemon cannot be stored", "daemon", name, "error", err)
	}
}

// dropCount forgets how often a daemon was started again. It runs and stops also where that cannot be written.
func (r *Runtime) dropCount(name string) {
	if err := atomicfile.Remove(countPath(r.cfg.Dir, name)); err != nil {
		r.log.Warn("the number of restarts of a daemon cannot be removed", "daemon", name, "error", err)
	}
}

// forgive has systemd forget that services ended which have stayed since for as long as the longest pause: by itself it never does, and one that ends
// once a month would be started a minute later each time (https://github.com/systemd/systemd/issues/43813).
func (r *Runtime) forgive(ctx context.Context, now time.Time) {
	for _, name := range r.Names() {
		if !r.forgivable(name, now) {
			continue
		}
		if err := r.forget(ctx, name); err != nil && r.ctx.Err() == nil {
			r.log.Warn("the pauses before restarts of a daemon stay long", "daemon", name, "error", err)
		}
	}
}

func (r *Runtime) forgivable(name string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[name]
	return u != nil && u.count.Seen > 0 && stayed(u.state, now)
}

func stayed(s runtime.State, now time.Time) bool {
	return s.Running && now.Sub(s.Started) >= longestPause
}

func (r *Runtime) forget(ctx context.Context, name string) error {
	conn, err := r.bus.get()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := conn.ResetFailedUnitContext(ctx, unitName(name)); err != nil {
		return fmt.Errorf("while having systemd forget the ends of %s: %w", name, err)
	}
	_, err = r.refresh(ctx, name)
	return err
}
