package detached

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// What counts for the pause are ends in a row of a process that does not stay. Six are on record already, so that one more means an hour.
func TestWhatCounts(t *testing.T) {
	const runs, ended, atOnce, later = false, true, false, true
	for name, c := range map[string]struct {
		ran   time.Duration // what is on record
		ended bool
		boot  string // empty is this one
		kill  bool   // after an agent has seen that it runs
		later bool
		// What is on record and shown then.
		ends, restarts int
	}{
		"it ended soon":                         {time.Second, runs, "", true, later, 7, 10},
		"it had stayed":                         {2 * time.Minute, runs, "", true, atOnce, 1, 10},
		"it ended with its agent":               {time.Second, runs, "", false, atOnce, 1, 10},
		"the power failed":                      {time.Second, runs, "before", false, atOnce, 0, 9},
		"the power failed in its pause":         {time.Second, ended, "before", false, atOnce, 0, 9},
		"another agent came while it had ended": {time.Second, ended, "", false, atOnce, 6, 9},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pid := recorded(t, dir, func(rec *record) {
				rec.Started, rec.Ended, rec.Ends, rec.Restarts = time.Now().Add(-c.ran), c.ended, 6, 9
				if c.boot != "" {
					rec.Identity.BootID = c.boot
				}
			})
			if !c.kill {
				end(t, pid)
				reapWhenEnded(t, pid)
			}
			r, err := New(Config{Dir: dir, BackOff: BackOff{First: time.Millisecond, Min: time.Hour, Max: time.Hour, Reset: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if c.kill {
				end(t, pid)
			}
			awaitState(t, r, func(s runtime.State) bool {
				return s.PID != pid && (s.Running || time.Until(s.BackOffUntil) > time.Minute)
			})
			rec, err := readRecord(recordPath(dir, "one"))
			if s, _ := r.State("one"); err != nil || s.Running == c.later || rec.Ends != c.ends || s.Restarts != c.restarts {
				t.Errorf("%+v, %d ends in a row (%v)", s, rec.Ends, err)
			}
			if err := r.Stop(t.Context(), "one"); err != nil {
				t.Error(err)
			}
		})
	}
}

// recorded starts a process that an agent of before has on record.
func recorded(t *testing.T, dir string, change func(*record)) (pid int) {
	t.Helper()
	p := exec.Command("sleep", "1000")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := identify(p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	rec := record{Process: sleeper(filepath.Dir(dir), "one"), Identity: id}
	change(&rec)
	if err := rec.write(dir); err != nil {
		t.Fatal(err)
	}
	return p.Process.Pid
}

// reapWhenEnded waits until nothing is left of a process that was killed.
func reapWhenEnded(t *testing.T, pid int) {
	t.Helper()
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}

// end kills a process. It is left to the runtime to reap it, if there is one.
func end(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func awaitState(t *testing.T, r *Runtime, is func(runtime.State) bool) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		s, _ := r.State("one")
		if is(s) {
			return
		}
		select {
		case <-r.Changes():
		case <-timeout:
			t.Fatalf("%+v", s)
		}
	}
}
