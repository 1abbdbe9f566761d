package systemd

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// The end of a service that Stop did not ask for is systemd's to deal with: of one that ended by itself and has left processes behind, and of one that
// somebody else stopped, as a shutdown does.
func TestStopping_notAsked(t *testing.T) {
	units := t.TempDir()
	address := startBus(t)
	stand := newStandIn(t, address, units)
	r := open(t, address, units)
	defer r.Close()
	p := runtime.Process{Name: "one", Command: []string{"sleep", "1000"}, LogFile: filepath.Join(units, "log"), StopTimeout: time.Second}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first, _ := r.State("one")
	held := stand.hold("one")
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if s := awaitState(t, r, func(s runtime.State) bool { return !s.Running }); s.Stopping || !s.BackOffUntil.IsZero() {
		t.Errorf("while what it left behind is killed, it is %+v", s)
	}
	close(held)
	awaitState(t, r, func(s runtime.State) bool { return s.Running && s.Restarts == 1 && s.PID != first.PID })
	if _, err := (manager{stand}).StopUnit(unitName("one"), "replace"); err != nil {
		t.Fatal(err)
	}
	s := awaitState(t, r, func(s runtime.State) bool { return !s.Running && s.LastExit.Reason == "signal: terminated" })
	if _, err := os.Stat(filepath.Join(units, unitName("one"))); err != nil || s.Stopping {
		t.Errorf("stopped by somebody else, it is %+v (%v)", s, err)
	}
	if err := r.Stop(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
}

// A Stop whose service runs again, as after a boot, and one that another service of the same name was asked for, are forgotten.
func TestStopping_outdated(t *testing.T) {
	units := t.TempDir()
	address := startBus(t)
	newStandIn(t, address, units)
	r := open(t, address, units)
	defer func() { r.Close() }()
	p := runtime.Process{Name: "one", Command: []string{"sleep", "1000"}, LogFile: filepath.Join(units, "log"), StopTimeout: time.Second}
	if err := os.WriteFile(r.stopPath("one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first, _ := r.State("one")
	if r.stopNoted("one") || r.isStopping("one") || first.Stopping {
		t.Errorf("a stop of before counts for a new service: %+v", first)
	}
	if err := r.noteStop("one"); err != nil {
		t.Fatal(err)
	}
	r.Close()
	r = open(t, address, units)
	if s, _ := r.State("one"); !r.isStopping("one") || s.Stopping {
		t.Errorf("noted %v, and it is %+v", r.isStopping("one"), s)
	}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.State("one"); s.PID != first.PID || r.stopNoted("one") || r.isStopping("one") {
		t.Errorf("was %+v, is %+v, and the stop is noted", first, s)
	}
	if err := r.Stop(t.Context(), "one"); err != nil || r.stopNoted("one") {
		t.Errorf("the stop is still noted (%v)", err)
	}
}

// hold has the next end of a service last until the channel is closed.
func (s *standIn) hold(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.services[unitName(name)]
	v.held = make(chan struct{})
	return v.held
}

func awaitState(t *testing.T, r *Runtime, is func(runtime.State) bool) runtime.State {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		s, _ := r.State("one")
		if is(s) {
			return s
		}
		select {
		case <-r.Changes():
		case <-timeout:
			t.Fatalf("%+v", s)
		}
	}
}
