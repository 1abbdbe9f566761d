package systemd

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// What systemd is told to forget, and what it forgets by itself at a boot, stays counted.
func TestCount(t *testing.T) {
	var c count
	for _, step := range []struct{ seen, total int }{{0, 0}, {1, 1}, {3, 3}, {3, 3}, {0, 3}, {2, 5}, {1, 6}, {1, 6}} {
		if c = c.with(step.seen); c.Total != step.total {
			t.Fatalf("%d after systemd said %d, want %d", c.Total, step.seen, step.total)
		}
	}
}

// A service that stayed for as long as the longest pause begins anew with short ones; it is still told how often it was started again, also by the next
// agent. One that was stopped and is started anew begins at zero.
func TestForgive(t *testing.T) {
	units := t.TempDir()
	address := startBus(t)
	stand := newStandIn(t, address, units)
	r := open(t, address, units)
	p := runtime.Process{Name: "one", Command: []string{"sleep", "1000"}, LogFile: filepath.Join(units, "log"), StopTimeout: time.Second}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for want := 1; want <= 2; want++ {
		s, _ := r.State("one")
		if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitRestarts(t, r, want)
	}
	s, _ := r.State("one")
	r.forgive(t.Context(), s.Started.Add(longestPause-time.Millisecond))
	if n := stand.restarts("one"); n != 2 {
		t.Errorf("systemd was told to forget too early: it says %d", n)
	}
	r.forgive(t.Context(), s.Started.Add(longestPause))
	if n := stand.restarts("one"); n != 0 {
		t.Errorf("systemd was not told to forget: it says %d", n)
	}
	awaitRestarts(t, r, 2)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, address, units)
	defer r.Close()
	awaitRestarts(t, r, 2)
	if err := r.Stop(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	awaitRestarts(t, r, 0)
	if err := r.Stop(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
}

func (s *standIn) restarts(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.services[unitName(name)].restarts)
}

func awaitRestarts(t *testing.T, r *Runtime, want int) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		s, _ := r.State("one")
		if s.Running && s.Restarts == want {
			return
		}
		select {
		case <-r.Changes():
		case <-timeout:
			t.Fatalf("%+v, want it to have been started again %d times", s, want)
		}
	}
}
