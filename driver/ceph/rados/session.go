package rados

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
)

const (
	// connectTimeout ends one attempt to connect. The next one starts from fresh state, so it need not be long.
	connectTimeout = 3 * time.Second
	// connectPause and connectPauseMax bound the pause between two attempts.
	connectPause    = 50 * time.Millisecond
	connectPauseMax = 2 * time.Second
	// maxThreads bounds the commands in librados at one time: each of them holds a thread.
	maxThreads = 32
)

// session is the child's connection to one cluster.
type session struct {
	lib     *library
	cfg     Config
	threads chan struct{} // holds a token for each command in librados
	ready   chan struct{} // closed when handle is connected
	handle  uintptr
	// images is librbd, loaded when a command first needs it.
	images func() (*rbd.Library, error)

	mu  sync.Mutex
	why error // the last reason why there is no connection
}

func newSession(lib *library, cfg Config) *session {
	return &session{
		lib: lib, cfg: cfg, why: errors.New("connecting"),
		threads: make(chan struct{}, maxThreads), ready: make(chan struct{}), images: sync.OnceValues(rbd.Load),
	}
}

// connect tries until it succeeds or ctx ends. Mons that have no quorum yet keep a client waiting, so that the first attempt
// often ends well at the very moment when the quorum is there.
func (s *session) connect(ctx context.Context) {
	for pause := connectPause; ; pause = min(2*pause, connectPauseMax) {
		handle, err := s.attempt()
		if err == nil {
			s.handle = handle
			close(s.ready)
			return
		}
		s.mu.Lock()
		s.why = err
		s.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// attempt connects with a handle of its own: one that has failed to connect is not sure to be usable again.
func (s *session) attempt() (uintptr, error) {
	var handle uintptr
	if errno := errnoOf(s.lib.create(&handle, "ceph", s.cfg.Entity, 0)); errno != 0 {
		return 0, fmt.Errorf("rados_create2: %w", errno)
	}
	for _, o := range s.options() {
		if errno := errnoOf(s.lib.confSet(handle, o[0], o[1])); errno != 0 {
			s.lib.shutdown(handle)
			return 0, fmt.Errorf("setting %s: %w", o[0], errno)
		}
	}
	errno := errnoOf(s.lib.connect(handle))
	if errno == 0 {
		return handle, nil
	}
	s.lib.shutdown(handle)
	if errno == syscall.ETIMEDOUT {
		return 0, fmt.Errorf("no quorum was reached at %s", s.cfg.MonHost)
	}
	if errno == syscall.EACCES || errno == syscall.EPERM {
		return 0, fmt.Errorf("%w of %s: %w", ErrRefused, s.cfg.Entity, errno)
	}
	return 0, fmt.Errorf("connecting to %s: %w", s.cfg.MonHost, errno)
}

// options configures librados. Nothing is read from files or the environment.
func (s *session) options() [][2]string {
	seconds := fmt.Sprintf("%d", connectTimeout/time.Second)
	return [][2]string{
		{"fsid", s.cfg.FSID},
		{"mon_host", s.cfg.MonHost},
		{"key", s.cfg.Key},
		{"keyring", "/dev/null"},
		{"log_file", "/dev/null"},
		{"log_to_stderr", "false"},
		{"err_to_stderr", "false"},
		{"admin_socket", ""},
		// While a cluster comes up its mons appear one by one. Ceph's client looks for another mon only every 3 s, and
		// ever more slowly; Holdfast's is one client for each cluster, which may ask more often.
		{"mon_client_hunt_interval", "0.2"},
		{"mon_client_hunt_interval_backoff", "1.0"},
		{"client_mount_timeout", seconds},
		// A command that a mon has swallowed gives its thread back after this time.
		{"rados_mon_op_timeout", "30"},
		// librbd writes to OSDs, which may be down for long.
		{"rados_osd_op_timeout", "30"},
	}
}

// do runs one request, and answers within its time whatever librados does.
func (s *session) do(r *request) *response {
	timer := time.NewTimer(time.Duration(r.Millis) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-s.ready:
	case <-timer.C:
		s.mu.Lock()
		defer s.mu.Unlock()
		a := &response{ID: r.ID, NoAnswer: true, Status: s.why.Error()}
		if errors.Is(s.why, ErrRefused) {
			a.Errno = int(syscall.EACCES)
		}
		return a
	}
	select {
	case s.threads <- struct{}{}:
	case <-timer.C:
		return &response{ID: r.ID, NoAnswer: true, Status: fmt.Sprintf("%d commands wait for an answer already", maxThreads)}
	}
	answer := make(chan *response, 1)
	go func() {
		defer func() { <-s.threads }()
		answer <- s.run(r)
	}()
	select {
	case a := <-answer:
		return a
	case <-timer.C:
		return &response{ID: r.ID, NoAnswer: true, Status: "no answer in time"}
	}
}

func (s *session) run(r *request) *response {
	if r.To == toRBD {
		return s.runRBD(r)
	}
	f := s.lib.monCommand
	if r.To == toMgr {
		f = s.lib.mgrCommand
	}
	out, status, errno := s.lib.command(f, s.handle, r.Cmd, r.Input)
	a := &response{ID: r.ID, Out: out, Status: status, Errno: int(errno)}
	if errno == syscall.ETIMEDOUT {
		a.NoAnswer = true
	}
	return a
}

// runRBD runs one command of package rbd.
func (s *session) runRBD(r *request) *response {
	lib, err := s.images()
	if err != nil {
		return &response{ID: r.ID, NoAnswer: true, Status: err.Error()}
	}
	out, status, errno := lib.Do(s.handle, r.Cmd)
	return &response{ID: r.ID, Out: out, Status: status, Errno: int(errno), NoAnswer: errno == syscall.ETIMEDOUT}
}
