package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// bus is the connection to systemd, which ends when systemd executes itself anew.
type bus struct {
	mu     sync.Mutex
	conn   *dbus.Conn
	closed bool
}

func (b *bus) get() (*dbus.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn == nil || !b.conn.Connected() {
		return nil, errors.New("there is no connection to systemd")
	}
	return b.conn, nil
}

func (b *bus) set(c *dbus.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
	}
	if b.closed {
		c.Close()
		return
	}
	b.conn = c
}

func (b *bus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.conn != nil {
		b.conn.Close()
	}
}

// connect makes a connection, asks for news, and looks at everything once.
func (r *Runtime) connect(ctx context.Context) error {
	// The connection ends with its context, so that it must not be the caller's.
	conn, err := r.cfg.Dial(r.ctx)
	if err != nil {
		return err
	}
	r.bus.set(conn)
	updates, lost := make(chan *dbus.PropertiesUpdate, 1024), make(chan error, 1)
	conn.SetPropertiesSubscriber(updates, lost)
	if err := conn.Subscribe(); err != nil {
		return err
	}
	r.wg.Go(func() { r.listen(conn, updates, lost) })
	return r.refreshAll(ctx)
}

func (r *Runtime) refreshAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, name := range r.Names() {
		if _, err := r.refresh(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// checkInterval is how often the connection is looked at.
const checkInterval = 2 * time.Second

// watch connects again when the connection was lost, and sees to it that services which stay are not started later for what was once. Daemons go on
// without a connection: they are systemd's.
func (r *Runtime) watch() {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := r.bus.get(); err == nil {
			r.forgive(r.ctx, time.Now())
			continue
		}
		if err := r.connect(r.ctx); err != nil && r.ctx.Err() == nil {
			r.log.Warn("systemd cannot be reached; retrying", "error", err)
		}
	}
}

// listen looks at each service that changes, for as long as the connection lasts.
func (r *Runtime) listen(conn *dbus.Conn, updates <-chan *dbus.PropertiesUpdate, lost <-chan error) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case u := <-updates:
			name, ok := nameOf(u.UnitName)
			if ok && r.find(name) != nil {
				r.look(name)
			}
		case <-lost: // there were more than the channel holds
			if err := r.refreshAll(r.ctx); err != nil && r.ctx.Err() == nil {
				r.log.Warn("the state of services is not known", "error", err)
			}
		case <-tick.C:
			if !conn.Connected() {
				return
			}
		}
	}
}

func (r *Runtime) look(name string) {
	ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
	defer cancel()
	if _, err := r.refresh(ctx, name); err != nil && r.ctx.Err() == nil {
		r.log.Warn("the state of a service is not known", "daemon", name, "error", err)
	}
}

func nameOf(unit string) (string, bool) {
	name, ok := strings.CutPrefix(unit, prefix)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, suffix)
}

// runJob runs a job of systemd and waits for its end.
func runJob(ctx context.Context, job func(chan<- string) (int, error)) error {
	done := make(chan string, 1)
	if _, err := job(done); err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemd's job ended as %q", result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func notLoaded(err error) bool {
	var e godbus.Error
	return errors.As(err, &e) && e.Name == "org.freedesktop.systemd1.NoSuchUnit"
}
