package e2e

import (
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/torus"
)

// TestTutorial does what the tutorial says, word by word, from three machines without anything to a
// cluster that is gone again.
func TestTutorial(t *testing.T) {
	begin(t)
	newReader(t, hosts.New(t, hosts.Options{Count: 3, Disks: 1})).readAll()
}

// TestHowTo does what the pages on a cluster of Ceph that serves say, word by word, to the end in
// which its mons are lost and recovered.
func TestHowTo(t *testing.T) {
	begin(t)
	b := &bed{t, home.Start(t, hosts.New(t, hosts.Options{Count: 3, Disks: 2}), binary)}
	b.mustApply(home.SpecFor(b.Lab, 3, 2, 1).YAML())
	readerOn(b).readAll()
}

// TestHowTo_hosts does what the pages on hosts and disks say: a disk is replaced, and a machine,
// and one is drained and removed; at last the cluster and Holdfast are.
func TestHowTo_hosts(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 5, Disks: 2})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.StartAgent(t, 4, b.Token(t, "agent"))
	b.AwaitHosts(t, 4)
	spec := home.SpecFor(lab, 3, 2, 1)
	spec.DeletionPolicy = "Retain"
	delete(spec.Devices, lab.Host(5).Name)
	b.mustApply(spec.YAML())
	r := readerOn(b)
	r.manifests()
	r.readAll()
}

// TestHowTo_controlPlane does what the pages on the control plane say, on servers without a
// cluster.
func TestHowTo_controlPlane(t *testing.T) {
	begin(t)
	readerOn(newBed(t, 3, 1)).readAll()
}

// TestHowTo_others does what the pages on GlusterFS and Torus say, side by side on three hosts.
func TestHowTo_others(t *testing.T) {
	begin(t)
	programs, err := torus.Programs(t.Context(), t.TempDir(), "../..", torus.Last)
	if err != nil {
		t.Fatal(err)
	}
	lab := hosts.New(t, hosts.Options{
		Count: 3, Disks: 1, DiskSize: 50 << 30, Share: []string{programs},
		Env: []string{"TORUS_BIN=" + programs},
	})
	readerOn(&bed{t, home.Start(t, lab, binary)}).readAll()
}
