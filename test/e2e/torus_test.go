package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/torus"
)

const torusSpec = `apiVersion: holdfast.io/v1alpha1
kind: StorageCluster
metadata: {name: t}
spec: {type: torus, interval: 2s, deletionPolicy: Wipe, torus: {replication: 2}}
---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: vol1}
spec: {cluster: t, size: 100Mi, deletionPolicy: Wipe}
`

// torusNode declares a host for the cluster.
func torusNode(h *hosts.Host) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata: {name: %s}
spec: {type: torus, cluster: t, nodeSelector: {kubernetes.io/hostname: %s}, torus: {size: 1Gi}}
`, h.Name, h.Name)
}

// torusIs checks the cluster's state and the members of its ring.
func (b *bed) torusIs(state api.StorageState, members, down int32) func() error {
	return func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "t")
		if err != nil {
			return err
		}
		if x := s.Status.Torus; s.Status.Status != state || x == nil || x.Members != members || x.MembersDown != down {
			return fmt.Errorf("%s, %+v: %s", s.Status.Status, s.Status.Torus, s.Status.Message)
		}
		return nil
	}
}

// TestTorus is the life of a Torus cluster on real hosts with a real etcd, and the real torusd and
// torusctl of v0.1.2, or yours by TORUS_BIN.
func TestTorus(t *testing.T) {
	begin(t)
	programs, err := torus.Programs(t.Context(), t.TempDir(), "../..", torus.Last)
	if err != nil {
		t.Fatal(err)
	}
	lab := hosts.New(t, hosts.Options{Count: 4, Share: []string{programs}, Env: []string{"TORUS_BIN=" + programs}})
	b := &bed{t, home.Start(t, lab, binary)}
	spec := torusSpec + torusNode(lab.Host(1)) + torusNode(lab.Host(2)) + torusNode(lab.Host(3))
	b.mustApply(spec)
	b.await("three members", b.torusIs(api.StorageOnline, 3, 0))

	b.mustApply(torusNode(lab.Host(4)))
	b.await("a fourth member", b.torusIs(api.StorageOnline, 4, 0))
	b.run("delete", "storagenode", "h4")
	b.await("the fourth one to be gone", func() error {
		for _, d := range b.daemons() {
			if d.Spec.ID == "h4" {
				return fmt.Errorf("%s is %s: %s", d.Name, d.Status.State, d.Status.Message)
			}
		}
		return b.torusIs(api.StorageOnline, 3, 0)()
	})

	was := b.daemon("t-torusd-h2")
	lab.Host(2).Run(t, t.Context(), "kill", "-9", fmt.Sprint(was.Status.PID))
	b.await("torusd to be back", func() error {
		if d := b.daemon("t-torusd-h2"); d.Status.PID == was.Status.PID || d.Status.State != api.DaemonRunning {
			return fmt.Errorf("it is %s", d.Status.State)
		}
		return b.torusIs(api.StorageOnline, 3, 0)()
	})

	lab.Host(3).PowerOff(t)
	b.await("the lost node to be DOWN", b.torusIs(api.StorageDegraded, 3, 1))
	lab.Host(3).PowerOn(t)
	b.StartServer(t, 3)
	b.await("all to be well again", b.torusIs(api.StorageOnline, 3, 0))
	b.torusComesBack(programs)
	b.Wipe(t, spec)
	b.await("nothing to be left", func() error {
		if n := len(b.daemons()); n > 0 {
			return fmt.Errorf("%d daemons are left", n)
		}
		for _, h := range lab.Hosts() {
			if out, err := h.Try(t.Context(), "ps", "-e", "-o", "comm"); err != nil || strings.Contains(out, "torusd") {
				return fmt.Errorf("on %s: %w %s", h.Name, err, out)
			}
		}
		return nil
	})
}

// torusComesBack writes while a host is in maintenance. When it is back, no other one may be stopped before it has what was written.
func (b *bed) torusComesBack(programs string) {
	b.setMode(3, api.HostMaintenance)
	b.await("the third host to be DOWN", b.torusIs(api.StorageDegraded, 3, 1))
	s, err := read[api.StorageStatus](b, 1, "storagestatuses", "t")
	if err != nil {
		b.Fatalf("%v", err)
	}
	h := b.Lab.Host(1)
	h.Run(b, b.Context(), "bash", "-c", "dd if=/dev/urandom of=/var/lib/image bs=1M count=100 && "+programs+"/torusctl block load /var/lib/image image --etcd "+s.Status.Torus.Etcd)
	b.setMode(3, api.HostActive)
	b.await("it to be told that it is not whole", b.reasonOf("node h3 came back"))
	b.setMode(2, api.HostMaintenance)
	b.await("the second host to wait for it", b.reasonOf("host/h2: node h3 came back"))
	b.await("the second host to be stopped", b.torusIs(api.StorageDegraded, 3, 1))
	b.setMode(2, api.HostActive)
	b.await("all to be well", b.torusIs(api.StorageOnline, 3, 0))
}

// reasonOf checks that the cluster gives a reason that begins so.
func (b *bed) reasonOf(want string) func() error {
	return func() error {
		s, err := read[api.StorageStatus](b, 1, "storagestatuses", "t")
		if err == nil && !slices.ContainsFunc(s.Status.Reasons, func(r string) bool { return strings.HasPrefix(r, want) }) {
			err = fmt.Errorf("%s %q", s.Status.Status, s.Status.Reasons)
		}
		return err
	}
}
