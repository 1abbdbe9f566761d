// Package csi tests the CSI driver as Kubernetes uses it: by its sockets, with a real Ceph, FUSE,
// loop devices and mounts of this machine. It needs root.
package csi

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/cli"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// commandEnv makes the test binary the program holdfast, with these arguments, one a line.
const commandEnv = "HOLDFAST_TEST_COMMAND"

func TestMain(m *testing.M) {
	rados.MaybeServe()
	if args := os.Getenv(commandEnv); args != "" {
		os.Exit(cli.Main(strings.Split(args, "\n")))
	}
	if os.Getenv(killEnv) != "" {
		dieAtAPoint()
	}
	os.Exit(m.Run())
}
