package detached

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
)

// tailSize bounds Exit.Log, in bytes.
const tailSize = 4096

// process keeps one process running. Its life: waiting (the back-off) → running → ended → waiting …; Stop ends it from
// either.
type process struct {
	rt   *Runtime
	name string
	// stopC is closed when Stop is asked for, done when run has returned.
	stopC chan struct{}
	done  chan struct{}
	once  sync.Once

	mu  sync.Mutex
	rec record
	// pidfd is nil while nothing runs.
	pidfd   *os.File
	backOff time.Time
}

func newProcess(r *Runtime, rec record) *process {
	return &process{rt: r, name: rec.Process.Name, rec: rec, stopC: make(chan struct{}), done: make(chan struct{})}
}

// adopt takes over what an earlier agent left.
func (r *Runtime) adopt(rec record, boot string) {
	p := newProcess(r, rec)
	if rec.Stopping {
		p.once.Do(func() { close(p.stopC) })
	}
	pidfd, err := rec.Identity.open()
	switch {
	case err == nil:
		p.pidfd = pidfd
		r.log.Info("adopted a running daemon", "daemon", p.name, "pid", rec.Identity.PID)
		if rec.Stopping {
			_ = signal(pidfd, unix.SIGTERM) // whoever asks again to stop it kills it when this had no effect
		}
	case !rec.Ended && rec.Identity.BootID == boot:
		// It ended while no agent was there, by what ended the agent or by what happened since: that is not held against it.
		p.killChildren(rec.Identity.PID)
		p.rec.Ends = 0
		p.ended("unknown")
	case rec.Identity.BootID != boot:
		// The machine was booted: that is no failure of the daemon.
		p.rec.Ends = 0
	}
	r.keep(p)
}

// setSpec makes p what is started the next time.
func (p *process) setSpec(spec runtime.Process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rec.Process = spec
	return p.rec.write(p.rt.cfg.Dir)
}

// errStopping says that a process is not started because it shall end.
var errStopping = errors.New("stopping")

// start brings the program to run. Nothing runs when it returns an error.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rec.Stopping {
		return errStopping
	}
	if err := logfile.Rotate(p.rec.Process.LogFile, p.rt.cfg.Limits); err != nil {
		p.rt.log.Warn("the log of a daemon grows beyond its limit", "daemon", p.name, "error", err)
	}
	p.rt.cfg.BeforeStart(p.rec.Process)
	g, err := spawn(p.rec.Process)
	if err != nil {
		return err
	}
	next := p.rec
	next.Identity, next.Started, next.Ended = g.id, time.Now(), false
	if err := next.write(p.rt.cfg.Dir); err != nil {
		g.abandon()
		return err
	}
	p.rec, p.pidfd, p.backOff = next, g.pidfd, time.Time{}
	// When this fails, the shell ends by itself, and its end is handled like any other.
	_ = g.open()
	return nil
}

// run keeps the process running until it is stopped or the runtime closed.
func (p *process) run(ctx context.Context) {
	defer close(p.done)
	for {
		if fd := p.running(); fd != nil {
			if !p.watch(ctx, fd) {
				return
			}
		}
		if !p.pause(ctx) {
			return
		}
		err := p.start()
		if errors.Is(err, errStopping) {
			return
		}
		if err != nil {
			p.ended(runtime.NotStarted + ": " + err.Error())
		}
		p.rt.changes.Notify(p.name)
	}
}

// watch waits for the end of the process; it returns false when the runtime was closed before.
func (p *process) watch(ctx context.Context, fd *os.File) bool {
	// Closing the pidfd ends the wait.
	release := context.AfterFunc(ctx, func() { fd.Close() })
	err := awaitEnd(fd)
	if !release() {
		return false
	}
	if err != nil {
		p.rt.log.Error("a daemon cannot be watched any more", "daemon", p.name, "error", err)
		return false
	}
	pid := p.pid()
	// A child keeps its PID, and with it the number of its session, until it is reaped.
	p.killChildren(pid)
	p.ended(reap(pid))
	fd.Close()
	return true
}

// killChildren kills what the process with this number has left behind, if it is to leave nothing.
func (p *process) killChildren(pid int) {
	p.mu.Lock()
	keep := p.rec.Process.KeepChildren
	p.mu.Unlock()
	if keep {
		return
	}
	if err := killSession(p.name, pid); err != nil {
		p.rt.log.Warn("a daemon left processes behind that cannot be killed", "daemon", p.name, "error", err)
	}
}

// ended records the end of the process and when it is started again.
func (p *process) ended(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.rec.Ended && now.Sub(p.rec.Started) >= p.rt.cfg.BackOff.Reset {
		p.rec.Ends = 0 // it stayed
	}
	p.pidfd = nil
	p.rec.Ended = true
	p.rec.LastExit = &runtime.Exit{Time: now, Reason: reason, Log: logfile.Tail(p.rec.Process.LogFile, tailSize)}
	if !p.rec.Stopping && !p.rec.Process.Once {
		p.rec.Ends++
		p.rec.Restarts++
		p.backOff = now.Add(p.rt.cfg.BackOff.Delay(p.rec.Ends))
	}
	if err := p.rec.write(p.rt.cfg.Dir); err != nil {
		p.rt.log.Warn("the end of a daemon cannot be recorded", "daemon", p.name, "error", err)
	}
	p.rt.changes.Notify(p.name)
}

// pause waits until it is time to start again; it returns false when the process shall not be started.
func (p *process) pause(ctx context.Context) bool {
	p.mu.Lock()
	wait, once := time.Until(p.backOff), p.rec.Process.Once
	p.mu.Unlock()
	if once {
		select {
		case <-ctx.Done():
		case <-p.stopC:
		}
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.stopC:
		return false
	default:
	}
	if hold := p.rt.cfg.Hold; hold != nil {
		select {
		case <-ctx.Done():
			return false
		case <-p.stopC:
			return false
		case <-hold:
		}
	}
	select {
	case <-ctx.Done():
		return false
	case <-p.stopC:
		return false
	case <-timer.C:
		return true
	}
}

// stop ends the process and forgets it. When ctx ends first, it can be called again.
func (p *process) stop(ctx context.Context) error {
	timeout, err := p.askToEnd()
	if err != nil {
		return err
	}
	kill := time.NewTimer(timeout)
	defer kill.Stop()
	for {
		select {
		case <-p.done:
			if p.rt.ctx.Err() != nil {
				return errors.New("the runtime was closed")
			}
			return removeRecord(p.rt.cfg.Dir, p.name)
		case <-kill.C:
			if err := p.signal(unix.SIGKILL); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("it has not ended yet: %w", ctx.Err())
		}
	}
}

// askToEnd records that the process shall end before it says so to the process.
func (p *process) askToEnd() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.rec.Stopping {
		p.rec.Stopping = true
		if err := p.rec.write(p.rt.cfg.Dir); err != nil {
			p.rec.Stopping = false
			return 0, err
		}
		p.rt.changes.Notify(p.name)
	}
	p.once.Do(func() { close(p.stopC) })
	if p.pidfd == nil {
		return 0, nil
	}
	return p.rec.Process.StopTimeout, signal(p.pidfd, unix.SIGTERM)
}

func (p *process) signal(sig unix.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd == nil {
		return nil
	}
	return signal(p.pidfd, sig)
}

func (p *process) rotate() {
	p.mu.Lock()
	path := p.rec.Process.LogFile
	p.mu.Unlock()
	if err := logfile.Rotate(path, p.rt.cfg.Limits); err != nil {
		p.rt.log.Warn("the log of a daemon grows beyond its limit", "daemon", p.name, "error", err)
	}
}

func (p *process) running() *os.File {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pidfd
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.Identity.PID
}

func (p *process) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.Stopping
}

func (p *process) state() runtime.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := runtime.State{Running: p.pidfd != nil, Stopping: p.rec.Stopping, Restarts: p.rec.Restarts}
	if s.Running {
		s.PID, s.Started = p.rec.Identity.PID, p.rec.Started
	} else {
		s.BackOffUntil = p.backOff
	}
	if e := p.rec.LastExit; e != nil {
		exit := *e
		s.LastExit = &exit
	}
	return s
}
