// Package detached runs daemons as plain processes, for machines where systemd is not PID 1.
//
// Each process is the leader of a session of its own and outlives the agent. What the next agent needs to know stands in
// one file for each process. The program does not begin to run before that file is on disk: the process starts as a
// shell that waits at a pipe, its identity is recorded, and only then it becomes the program. An agent that is
// killed at any moment therefore leaves either a recorded process or a shell that sees the pipe close and ends.
//
// A process is known by its PID together with its start time and the machine's boot ID, and is signalled through a pidfd
// alone, so that a stranger who got the same PID is never touched.
package detached

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
)

// Config is what New needs.
type Config struct {
	// Dir holds a file for each process. It is made if missing.
	Dir string
	// Log receives what the runtime does by itself; nil means slog.Default.
	Log *slog.Logger
	// BackOff says how long to wait before a restart; the zero value means DefaultBackOff.
	BackOff BackOff
	// BeforeStart, when not nil, is called before each start of a process, those from the records of an earlier agent among them.
	BeforeStart func(runtime.Process)
	// Hold, when not nil, keeps processes of an earlier agent that do not run from being started until it is closed: somewhere else they may run.
	Hold <-chan struct{}
	// Limits bound the log files; the zero value means logfile.DefaultLimits.
	Limits logfile.Limits
	// RotateEvery is how often the sizes of logs are looked at; zero means a minute.
	RotateEvery time.Duration
}

// Runtime is the runtime.Runtime of plain processes.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	changes *runtime.Notifier
	// ctx ends with Close.
	ctx    context.Context //nolint:containedctx // processes are watched for as long as the runtime is open
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	procs map[string]*process

	turns runtime.Turns // Start and Stop of one name go on one after the other
}

var _ runtime.Runtime = (*Runtime)(nil)

// New adopts the processes that earlier agents left in cfg.Dir, starts those of them that have ended, and keeps watch.
func New(cfg Config) (*Runtime, error) {
	cfg.setDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("while making the runtime's directory: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	r := &Runtime{
		cfg: cfg, log: cfg.Log, changes: runtime.NewNotifier(),
		procs: map[string]*process{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	for _, rec := range r.loadRecords() {
		r.adopt(rec, boot)
	}
	r.wg.Go(r.rotateLogs)
	return r, nil
}

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.BeforeStart == nil {
		c.BeforeStart = func(runtime.Process) {}
	}
	if c.BackOff == (BackOff{}) {
		c.BackOff = DefaultBackOff
	}
	if c.Limits == (logfile.Limits{}) {
		c.Limits = logfile.DefaultLimits
	}
	if c.RotateEvery == 0 {
		c.RotateEvery = time.Minute
	}
}

// loadRecords reads all records. One that cannot be read is set aside, so that it holds up no other.
func (r *Runtime) loadRecords() []record {
	paths, _ := filepath.Glob(filepath.Join(r.cfg.Dir, "*"+recordSuffix)) // the pattern is well-formed
	var recs []record
	for _, path := range paths {
		rec, err := readRecord(path)
		if err != nil {
			r.log.Error("a process record cannot be read and is moved aside", "file", path, "error", err)
			_ = os.Rename(path, path+".damaged")
			continue
		}
		recs = append(recs, rec)
	}
	return recs
}

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, p runtime.Process) error {
	if err := validName(p.Name); err != nil {
		return err
	}
	unlock, err := r.turns.Take(ctx, r.ctx, p.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if old := r.find(p.Name); old != nil {
		if !old.stopping() {
			return old.setSpec(p)
		}
		// An earlier Stop was cut off. It is finished first.
		if err := r.stop(ctx, old); err != nil {
			return err
		}
	}
	proc := newProcess(r, record{Process: p})
	if err := proc.start(); err != nil {
		return fmt.Errorf("while starting %s: %w", p.Name, err)
	}
	r.keep(proc)
	return nil
}

// Stop implements runtime.Runtime.
func (r *Runtime) Stop(ctx context.Context, name string) error {
	unlock, err := r.turns.Take(ctx, r.ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	proc := r.find(name)
	if proc == nil {
		return nil
	}
	return r.stop(ctx, proc)
}

func (r *Runtime) stop(ctx context.Context, proc *process) error {
	if err := proc.stop(ctx); err != nil {
		return fmt.Errorf("while stopping %s: %w", proc.name, err)
	}
	r.mu.Lock()
	delete(r.procs, proc.name)
	r.mu.Unlock()
	r.changes.Notify(proc.name)
	return nil
}

// State implements runtime.Runtime.
func (r *Runtime) State(name string) (runtime.State, bool) {
	proc := r.find(name)
	if proc == nil {
		return runtime.State{}, false
	}
	return proc.state(), true
}

// Names implements runtime.Runtime.
func (r *Runtime) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.procs))
	for name := range r.procs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Changes implements runtime.Runtime.
func (r *Runtime) Changes() <-chan string { return r.changes.C() }

// Capabilities implements runtime.Runtime.
func (r *Runtime) Capabilities() runtime.Capabilities {
	return runtime.Capabilities{KeepsChildren: true, Once: true}
}

// Close implements runtime.Runtime.
func (r *Runtime) Close() error {
	r.cancel()
	r.wg.Wait()
	r.changes.Close()
	return nil
}

// keep puts a process under watch.
func (r *Runtime) keep(proc *process) {
	r.mu.Lock()
	r.procs[proc.name] = proc
	r.mu.Unlock()
	r.wg.Go(func() { proc.run(r.ctx) })
	r.changes.Notify(proc.name)
}

func (r *Runtime) find(name string) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.procs[name]
}

func (r *Runtime) rotateLogs() {
	tick := time.NewTicker(r.cfg.RotateEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range r.Names() {
			if proc := r.find(name); proc != nil {
				proc.rotate()
			}
		}
	}
}

func validName(name string) error {
	if name == "" || len(name) > 128 || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q cannot be the name of a process", name)
	}
	return nil
}
