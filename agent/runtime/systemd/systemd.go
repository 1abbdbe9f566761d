// Package systemd runs daemons as systemd services, for machines where systemd is PID 1.
//
// Each process is a unit of its own, holdfast-<name>.service, whose file lies in /etc/systemd/system: systemd restarts it
// with back-off and starts it at boot, with or without an agent, so that there is nothing to adopt. The first line of the
// file says that it is the agent's, and what it was made from; no other unit is ever touched.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
)

// Running says whether systemd runs this machine (sd_booted(3)).
func Running() bool {
	st, err := os.Lstat("/run/systemd/system")
	return err == nil && st.IsDir()
}

// callTimeout bounds a call that systemd answers at once.
const callTimeout = 10 * time.Second

// Config is what New needs. All but Dir is right as zero for a machine that systemd runs.
type Config struct {
	// Dir keeps how often each service was started again. It is made if missing.
	Dir string
	// UnitDir holds the unit files; empty means /etc/systemd/system.
	UnitDir string
	// Dial connects to systemd; nil means its private socket, which needs no message bus.
	Dial func(ctx context.Context) (*dbus.Conn, error)
	// Log receives what the runtime does by itself; nil means slog.Default.
	Log *slog.Logger
	// Limits bound the log files; the zero value means logfile.DefaultLimits.
	Limits logfile.Limits
	// RestartDelay is the first pause before a restart; zero means a second. It is rounded to milliseconds.
	RestartDelay time.Duration
}

// Runtime is the runtime.Runtime of systemd services.
type Runtime struct {
	cfg     Config
	log     *slog.Logger
	changes *runtime.Notifier
	ctx     context.Context //nolint:containedctx // services are watched for as long as the runtime is open
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	bus     bus

	mu    sync.Mutex
	units map[string]*service

	turns runtime.Turns // Start and Stop of one name go on one after the other
	looks runtime.Turns // and so do the questions for its state
}

var _ runtime.Runtime = (*Runtime)(nil)

// service is what is known of a unit.
type service struct {
	process runtime.Process
	state   runtime.State
	count   count
	// stopping is set when a Stop is noted, as noteStop does.
	stopping bool
}

// New connects to systemd and finds the services of earlier agents.
func New(ctx context.Context, cfg Config) (*Runtime, error) {
	cfg.setDefaults()
	r := &Runtime{
		cfg: cfg, log: cfg.Log, changes: runtime.NewNotifier(), units: map[string]*service{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	found, err := readUnits(cfg.UnitDir)
	if err == nil {
		err = os.MkdirAll(cfg.Dir, 0o700)
	}
	if err == nil {
		for _, p := range found {
			r.units[p.Name] = &service{process: p, count: r.readCount(p.Name), stopping: r.stopNoted(p.Name)}
		}
		err = r.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("while connecting to systemd: %w", err), r.Close())
	}
	r.wg.Go(r.watch)
	r.wg.Go(r.rotateLogs)
	return r, nil
}

func (c *Config) setDefaults() {
	if c.UnitDir == "" {
		c.UnitDir = "/etc/systemd/system"
	}
	if c.Dial == nil {
		c.Dial = dbus.NewSystemdConnectionContext
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Limits == (logfile.Limits{}) {
		c.Limits = logfile.DefaultLimits
	}
	if c.RestartDelay == 0 {
		c.RestartDelay = time.Second
	}
}

// Start implements runtime.Runtime.
func (r *Runtime) Start(ctx context.Context, p runtime.Process) error {
	unlock, err := r.turns.Take(ctx, r.ctx, p.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.finishStop(ctx, p.Name); err != nil {
		return err
	}
	if err := r.start(ctx, p); err != nil {
		return fmt.Errorf("while starting %s: %w", p.Name, err)
	}
	return nil
}

func (r *Runtime) start(ctx context.Context, p runtime.Process) error {
	if err := check(p); err != nil {
		return err
	}
	conn, err := r.bus.get()
	if err != nil {
		return err
	}
	changed, err := writeUnit(r.cfg.UnitDir, p, r.cfg.RestartDelay)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if changed {
		if err := conn.ReloadContext(call); err != nil {
			return err
		}
	}
	if _, _, err := conn.EnableUnitFilesContext(call, []string{unitName(p.Name)}, false, true); err != nil {
		return err
	}
	r.know(p)
	// Starting a service that runs, or waits to be started again, starts nothing twice. Waiting to be started again, it
	// would be started at once, though, and its back-off be lost.
	if s, err := r.refresh(call, p.Name); err != nil || s.Running || !s.BackOffUntil.IsZero() {
		return err
	}
	if err := runJob(call, func(done chan<- string) (int, error) {
		return conn.StartUnitContext(call, unitName(p.Name), "replace", done)
	}); err != nil {
		return err
	}
	_, err = r.refresh(call, p.Name)
	return err
}

// know notes the process of a service. One that was not known was never started again.
func (r *Runtime) know(p runtime.Process) {
	if r.find(p.Name) == nil {
		r.dropCount(p.Name)
		r.dropStop(p.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.units[p.Name]; u != nil {
		u.process = p
	} else {
		r.units[p.Name] = &service{process: p}
	}
}

// Stop implements runtime.Runtime. The file goes last, so that a stop that was cut off can be asked for again.
func (r *Runtime) Stop(ctx context.Context, name string) error {
	unlock, err := r.turns.Take(ctx, r.ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if r.find(name) == nil {
		return nil
	}
	return r.end(ctx, name)
}

// end stops a service and forgets it.
func (r *Runtime) end(ctx context.Context, name string) error {
	err := r.noteStop(name)
	if err == nil {
		err = r.stop(ctx, name)
	}
	if err != nil {
		r.look(name) // nobody tells of a service that had ended before
		return fmt.Errorf("while stopping %s: %w", name, err)
	}
	r.mu.Lock()
	delete(r.units, name)
	r.mu.Unlock()
	r.changes.Notify(name)
	r.dropCount(name)
	r.dropStop(name)
	return nil
}

func (r *Runtime) stop(ctx context.Context, name string) error {
	conn, err := r.bus.get()
	if err != nil {
		return err
	}
	err = runJob(ctx, func(done chan<- string) (int, error) {
		return conn.StopUnitContext(ctx, unitName(name), "replace", done)
	})
	if err != nil && !notLoaded(err) {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := conn.DisableUnitFilesContext(call, []string{unitName(name)}, false); err != nil {
		return err
	}
	_ = conn.ResetFailedUnitContext(call, unitName(name)) // it need not have failed
	if err := removeUnit(r.cfg.UnitDir, name); err != nil {
		return err
	}
	return conn.ReloadContext(call)
}

// State implements runtime.Runtime.
func (r *Runtime) State(name string) (runtime.State, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[name]
	if u == nil {
		return runtime.State{}, false
	}
	s := u.state
	if s.LastExit != nil {
		exit := *s.LastExit
		s.LastExit = &exit
	}
	return s, true
}

// Names implements runtime.Runtime.
func (r *Runtime) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.units))
	for name := range r.units {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Changes implements runtime.Runtime.
func (r *Runtime) Changes() <-chan string { return r.changes.C() }

// Capabilities implements runtime.Runtime.
func (r *Runtime) Capabilities() runtime.Capabilities {
	return runtime.Capabilities{KeepsChildren: true}
}

// Close implements runtime.Runtime.
func (r *Runtime) Close() error {
	r.cancel()
	r.bus.close()
	r.wg.Wait()
	r.changes.Close()
	return nil
}

func (r *Runtime) find(name string) *service {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.units[name]
}

func (r *Runtime) rotateLogs() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range r.Names() {
			r.mu.Lock()
			var path string
			if u := r.units[name]; u != nil {
				path = u.process.LogFile
			}
			r.mu.Unlock()
			if err := logfile.Rotate(path, r.cfg.Limits); err != nil {
				r.log.Warn("the log of a daemon grows beyond its limit", "daemon", name, "error", err)
			}
		}
	}
}
