// Package e2e tests Holdfast as a person would use it, with real Ceph and GlusterFS on hosts made
// of namespaces. It needs root.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// binary and kubectl are the programs that 'make build kubectl' has made.
var binary, kubectl string

// used are the waits of all servers and commands of these tests. They are shorter than those of
// production where a test waits one out, and still longer than what must not be taken for an absence
// lasts on a machine with much to do:
//   - hostDead: a host that is said to be gone comes back when its OSD was removed from Ceph, and is
//     not to be dead by then (goneIsBack).
//   - nodeGone: two commands take less.
//   - replicaLost: an agent whose network was cut is heard again sooner (leaderCutOff).
//   - daemonFresh: a mon or an OSD starts sooner.
//   - mgrHangs: a mgr loads its modules sooner. A minute was too short on a machine with much to do.
//   - brickHeal: only has GlusterFS heal sooner.
//
// agentSilent stays: agents are heard every 5 s, and two beats that come late are no silence. So does
// replicaSteady: no test waits for it, and a daemon that is one too many would go in the midst of one.
// Whoever sets the variable has other waits; where it is empty, those of production.
var used = waits.Waits{
	HostDead: time.Minute, NodeGone: 10 * time.Second, ReplicaLost: 30 * time.Second, DaemonFresh: 30 * time.Second,
	MgrHangs:  90 * time.Second,
	BrickHeal: 20 * time.Second,
}

// setWaits puts the waits into the environment of this program, which all that it starts on hosts
// has.
func setWaits() (err error) {
	text, set := os.LookupEnv(waits.Variable)
	if !set {
		text = used.String()
	}
	if used, err = waits.Parse(text); err != nil {
		return err
	}
	return os.Setenv(waits.Variable, text)
}

func TestMain(m *testing.M) {
	hosts.MaybeInit()
	if err := setWaits(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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

// newStorageBed is newBed for a test that is about storage alone. The core tier starts one server
// and agents, which takes less of the machine; the full tier starts a server on each host.
func newStorageBed(t *testing.T, count, disks int) *bed {
	t.Helper()
	start := home.Start
	if testing.Short() {
		start = home.StartOne
	}
	return &bed{t, start(t, hosts.New(t, hosts.Options{Count: count, Disks: disks}), binary)}
}
