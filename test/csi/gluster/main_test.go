// Package gluster tests the CSI driver with GlusterFS: a real pool that Holdfast runs on hosts made
// of namespaces, on which the parts of the driver run as on nodes of Kubernetes. It needs root.
package gluster

import (
	"os"
	"testing"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	if os.Getenv(killEnv) != "" {
		dieAtAPoint()
	}
	os.Exit(m.Run())
}
