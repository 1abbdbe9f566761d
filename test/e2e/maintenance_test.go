package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
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

// writer writes objects and reads them back from a host until it is stopped. It counts what was right.
type writer struct {
	bed  *bed
	host int
	good int
	errs []error
	done chan struct{}
	end  context.CancelFunc
}

func (b *bed) startWriter(host int) *writer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &writer{bed: b, host: host, done: make(chan struct{}), end: cancel}
	go func() {
		defer close(c.done)
		for i := 0; ctx.Err() == nil; i++ {
			if err := c.once(i); err != nil {
				c.errs = append(c.errs, err)
			} else {
				c.good++
			}
		}
	}()
	b.Cleanup(cancel)
	return c
}

// once writes one object and compares what it reads. What is under way is not cut off by the end of the client.
func (c *writer) once(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	data := make([]byte, 256<<10)
	_, _ = rand.Read(data) // it never fails
	name := fmt.Sprintf("object-%d", i%50)
	put := c.bed.Lab.Host(c.host).Command(ctx, c.bed.Binary, "ceph", "shell", "--", "rados", "-p", "data", "put", name, "-")
	put.Stdin = bytes.NewReader(data)
	if out, err := put.CombinedOutput(); err != nil {
		return fmt.Errorf("writing %s: %w: %s", name, err, out)
	}
	got, err := c.bed.Lab.Host(c.host).Command(ctx, c.bed.Binary, "ceph", "shell", "--", "rados", "-p", "data", "get", name, "-").Output()
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("%s reads differently from what was written", name)
	}
	return nil
}

// stop ends the client and fails the test if anything went wrong.
func (c *writer) stop() {
	c.bed.Helper()
	c.end()
	<-c.done
	if len(c.errs) > 0 || c.good == 0 {
		c.bed.Errorf("of the client's operations %d were good, %d failed: %v", c.good, len(c.errs), errors.Join(c.errs...))
	}
	c.bed.Logf("the client wrote and read back %d objects", c.good)
}

// TestMaintenance takes a host out of service while a client writes: the flag is set, its daemons stop, the next host is
// refused, and when the first is back Ceph is well and no flag is left.
func TestMaintenance(t *testing.T) {
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 2, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	b.ceph("osd", "pool", "create", "data", "8")
	b.ceph("osd", "pool", "application", "enable", "data", "test")
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	c := b.startWriter(3)

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
	if dump := b.ceph("osd", "dump"); strings.Count(dump, "noout") != 1 {
		t.Errorf("not one OSD has the flag noout:\n%s", dump)
	}

	b.setMode(1, api.HostMaintenance)
	b.await("the first host to be refused", func() error {
		word, err := b.hostWord(1)
		if err == nil && !strings.HasPrefix(word, "Refuse: mon.") {
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
	c.stop()
	if dump := b.ceph("osd", "dump"); strings.Contains(dump, "noout") {
		t.Errorf("the flag noout was left behind:\n%s", dump)
	}
	b.noOrphans()
}
