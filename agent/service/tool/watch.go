package tool

import (
	"os/exec"
	"sync/atomic"
)

// Guard stands between service agents and the programs that they run: it has one run, or fail. It may change the command before.
type Guard func(cmd *exec.Cmd, run func() error) error

// guard is that of a test; nil outside of tests.
var guard atomic.Pointer[Guard]

// Watch is for tests. It has every program that a service agent runs pass a guard, until end is called.
func Watch(g Guard) (end func()) {
	guard.Store(&g)
	return func() { guard.Store(nil) }
}

// Do runs a command as its method Run does. All that service agents run to prepare, change or ask something is run by it or by Ask.
func Do(cmd *exec.Cmd) error { return guarded(cmd, cmd.Run) }

// Ask runs a command as its method Output does.
func Ask(cmd *exec.Cmd) (out []byte, err error) {
	err = guarded(cmd, func() (err error) {
		out, err = cmd.Output()
		return err
	})
	return out, err
}

func guarded(cmd *exec.Cmd, run func() error) error {
	if g := guard.Load(); g != nil {
		return (*g)(cmd, run)
	}
	return run()
}
