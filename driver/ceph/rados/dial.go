package rados

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// DefaultTimeout is the time of a call whose context has no deadline.
const DefaultTimeout = 10 * time.Second

const (
	// restartPause and restartPauseMax bound the pause before a child is started again.
	restartPause    = 100 * time.Millisecond
	restartPauseMax = 10 * time.Second
	// answerMargin bounds the part of a call's time that is left to the child's answer on its way back, so that the caller
	// gets the child's reason rather than a bare "deadline exceeded".
	answerMargin = 200 * time.Millisecond
)

var errClosed = errors.New("the connection is closed")

// Dial returns a client of a cluster. The connection is made in the background; calls wait for it.
func Dial(cfg Config) Client { return DialImages(cfg) }

// DialImages is Dial for who needs images, too.
func DialImages(cfg Config) ImageClient {
	c := &client{cfg: cfg, closed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startLocked()
	return c
}

// client keeps one child running.
type client struct {
	cfg    Config
	closed chan struct{}

	mu        sync.Mutex
	proc      *process // nil before the first and while none could be started
	pause     time.Duration
	notBefore time.Time // when a child may be started again
	lastErr   error     // why there is none
}

var _ ImageClient = (*client)(nil)

func (c *client) Mon(ctx context.Context, command any, input []byte) ([]byte, error) {
	return c.call(ctx, toMon, command, input)
}

func (c *client) Mgr(ctx context.Context, command any, input []byte) ([]byte, error) {
	return c.call(ctx, toMgr, command, input)
}

func (c *client) RBD(ctx context.Context, command any) ([]byte, error) {
	return c.call(ctx, toRBD, command, nil)
}

// Close ends the child. It may be called twice.
func (c *client) Close() error {
	c.mu.Lock()
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	p := c.proc
	c.mu.Unlock()
	if p != nil {
		p.close()
	}
	return nil
}

func (c *client) call(ctx context.Context, to string, command any, input []byte) ([]byte, error) {
	cmd, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("encoding a command: %w", err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	p, err := c.process(ctx)
	if err != nil {
		return nil, noAnswer(cmd, err.Error())
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	left = max(left-min(left/10, answerMargin), time.Millisecond)
	a, err := p.call(ctx, request{To: to, Cmd: cmd, Input: input, Millis: left.Milliseconds()})
	switch {
	case err != nil:
		return nil, noAnswer(cmd, err.Error())
	case a.NoAnswer && a.Errno == int(syscall.EACCES):
		return nil, fmt.Errorf("%w: %w", ErrRefused, noAnswer(cmd, a.Status))
	case a.NoAnswer:
		return nil, noAnswer(cmd, a.Status)
	case a.Errno != 0:
		return nil, &CommandError{Prefix: prefixOf(cmd), Errno: syscall.Errno(a.Errno), Status: a.Status}
	}
	return a.Out, nil
}

func noAnswer(cmd []byte, why string) error {
	if why == "" {
		why = "no answer in time"
	}
	return fmt.Errorf("ceph %s: %w: %s", prefixOf(cmd), ErrNoAnswer, why)
}

func prefixOf(cmd []byte) string {
	var c struct{ Prefix string }
	_ = json.Unmarshal(cmd, &c) // only for a message; the mon is the judge of a bad command
	return c.Prefix
}

// process returns a child that has not ended, and starts one where there is none, after a pause that doubles as long as
// children end without having answered anything.
func (c *client) process(ctx context.Context) (*process, error) {
	for {
		p, wait, err := c.current()
		if p != nil {
			return p, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-c.closed:
			timer.Stop()
			return nil, errClosed
		}
	}
}

// current returns the child, or how long to wait before asking again and why there is none.
func (c *client) current() (*process, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		return nil, time.Hour, errClosed // process sees it at once
	default:
	}
	if c.proc != nil && !c.proc.ended() {
		return c.proc, 0, nil
	}
	if c.proc != nil {
		c.noteEndLocked()
	}
	if wait := time.Until(c.notBefore); wait > 0 {
		return nil, wait, c.lastErr
	}
	c.startLocked()
	if c.proc != nil {
		return c.proc, 0, nil
	}
	return nil, time.Until(c.notBefore), c.lastErr
}

// noteEndLocked takes leave of a child that has ended. One that had worked is followed by another without much delay.
func (c *client) noteEndLocked() {
	c.proc.mu.Lock()
	spoke := c.proc.spoke
	c.proc.mu.Unlock()
	if spoke {
		c.pause = 0
	}
	c.lastErr = errors.New(c.proc.reason())
	c.proc = nil
	c.holdOffLocked()
}

func (c *client) startLocked() {
	p, err := startProcess(c.cfg)
	if err != nil {
		c.lastErr = err
		c.holdOffLocked()
		return
	}
	c.proc = p
}

func (c *client) holdOffLocked() {
	c.pause = min(max(2*c.pause, restartPause), restartPauseMax)
	c.notBefore = time.Now().Add(c.pause)
}
