package gluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// inside marks the process that has mounts of its own.
const inside = "HOLDFAST_TEST_OWN_MOUNTS"

// TestMain runs the tests in a mount namespace of their own. A program on this machine that copies the machine's mounts, as
// each new container or host of a lab does, would keep the tests' file systems in use after they are unmounted.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" && os.Geteuid() == 0 {
		os.Exit(runInside())
	}
	if os.Getenv(inside) != "" {
		if err := hideGeoReplication(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	m.Run()
}

// hideGeoReplication leaves no file behind: what is mounted stays without its name.
func hideGeoReplication() error {
	dir, err := os.MkdirTemp("", "holdfast-gluster-")
	if err != nil {
		return err
	}
	return errors.Join(hosts.HideGeoReplication(dir), os.RemoveAll(dir))
}

// runInside runs this program anew, and returns its exit code.
func runInside() int {
	if err := os.Setenv(inside, "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Unshareflags, unlike Cloneflags, makes all mounts private: nothing that happens inside is seen outside.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "while giving the tests mounts of their own:", err)
		return 1
	}
	return 0
}
