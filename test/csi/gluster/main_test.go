// Package gluster tests the CSI driver with GlusterFS: a real pool that Holdfast runs on hosts made
// of namespaces, on which the parts of the driver run as on nodes of Kubernetes. It needs root.
package gluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// binary is the program that 'make build' has made.
var binary string

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	if os.Getenv(killEnv) != "" {
		dieAtAPoint()
	}
	binary, _ = filepath.Abs("../../../bin/holdfast") // it fails where there is no working directory
	if _, err := os.Stat(binary); err != nil {
		fmt.Fprintf(os.Stderr, "there is no %s: run 'make build' first\n", binary)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
