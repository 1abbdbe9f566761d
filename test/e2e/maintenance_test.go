package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// setMode gives a host a mode, as an administrator does with kubectl.
func (b *bed) setMode(host int, mode api.HostMode) {
	b.Helper()
	h := b.Lab.Host(1)
	h.Run(b, context.Background(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "patch", "host", b.Lab.Host(host).Name,
		"--type", "merge", "-p", fmt.Sprintf(`{"spec":{"mode":%q}}`, mode))
}

// hostWord is what the last report says of a host, as "Verdict: message"; nothing when it is as it was asked to be.
func (b *bed) hostWord(host int) (string, error) {
	clusters := list[api.StorageCluster](b, "storageclusters")
	if len(clusters) != 1 || clusters[0].Status.Report == nil {
		return "", errors.New("there is no report yet")
	}
	for _, d := range clusters[0].Status.Report.Decisions {
		if d.Object == "host/"+b.Lab.Host(host).Name {
			return string(d.Verdict) + ": " + d.Message, nil
		}
	}
	return "", nil
}

// runsOn are the Ceph processes of a host.
func (b *bed) runsOn(host int) []string {
	b.Helper()
	var all []string
	for _, p := range b.cephProcesses() {
		if strings.HasPrefix(p, b.Lab.Host(host).Name+" ") {
			all = append(all, p)
		}
	}
	return all
}

// TestMaintenance takes a host out of service while a client writes: the flag is set, its daemons stop, the next host is
// refused, and when the first is back Ceph is well and no flag is left.
func TestMaintenance(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	c := b.startClient(3)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })

	start := time.Now()
	b.setMode(2, api.HostMaintenance)
	b.await("the daemons of the second host to have stopped", func() error {
		if left := b.runsOn(2); len(left) > 0 {
			return fmt.Errorf("there run %v", left)
		}
		word, err := b.hostWord(2)
		if err == nil && word != "" {
			err = errors.New(word)
		}
		return err
	})
	t.Logf("in maintenance after %.1f s", time.Since(start).Seconds())
	c.goesOn(t)
	if dump := b.ceph("osd", "dump"); strings.Count(dump, "noout") != 1 {
		t.Errorf("not one OSD has the flag noout:\n%s", dump)
	}

	b.setMode(1, api.HostMaintenance)
	b.await("the first host to be refused", func() error {
		word, err := b.hostWord(1)
		if err == nil && !strings.HasPrefix(word, "Refuse: cannot stop mon.") {
			err = fmt.Errorf("it says %q", word)
		}
		return err
	})
	if left := b.runsOn(1); len(left) < 2 {
		t.Errorf("of the host that was refused only %v runs", left)
	}
	b.setMode(1, api.HostActive)

	start = time.Now()
	b.setMode(2, api.HostActive)
	b.await("Ceph to be well again", func() error { return b.health(3, 3) })
	t.Logf("well again after %.1f s", time.Since(start).Seconds())
	c.end(t)
	if dump := b.ceph("osd", "dump"); strings.Contains(dump, "noout") {
		t.Errorf("the flag noout was left behind:\n%s", dump)
	}
	b.noOrphans()
}
