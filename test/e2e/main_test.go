// Package e2e tests Holdfast as a person would use it, with real Ceph and GlusterFS on hosts made of namespaces. It needs root.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// binary and kubectl are the programs that 'make build kubectl' has made.
var binary, kubectl string

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	for name, path := range map[string]*string{"holdfast": &binary, "kubectl": &kubectl} {
		*path, _ = filepath.Abs("../../bin/" + name)
		if _, err := os.Stat(*path); err != nil {
			fmt.Fprintf(os.Stderr, "there is no %s: run 'make build kubectl' first\n", *path)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// bed is a lab with Holdfast on it.
type bed struct {
	*testing.T
	*home.Home
}

func newBed(t *testing.T, count, disks int) *bed {
	t.Helper()
	lab := hosts.New(t, hosts.Options{Count: count, Disks: disks})
	return &bed{t, home.Start(t, lab, binary)}
}
