package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// glusterBed is a lab with servers on three hosts, an agent on each other one, and two disks in
// each host. Tests with one wait far more than they compute, so they run beside each other.
func glusterBed(t *testing.T, count int) *bed {
	t.Helper()
	lab := hosts.New(t, hosts.Options{Count: count, Disks: 2, DiskSize: 2 << 30})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.explain()
	for n := 4; n <= count; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, count)
	return b
}

// glusterPool declares a cluster, in whose pool the test waits for work and not for clocks.
const glusterPool = `apiVersion: holdfast.io/v1alpha1
kind: StorageCluster
metadata: {name: gluster}
spec: {type: glusterfs, deletionPolicy: Wipe, interval: 2s, glusterfs: {options: {network.ping-timeout: "10", storage.health-check-interval: "5"}}}
`

// glusterNode declares a host with so many of its disks for the cluster.
func glusterNode(h *hosts.Host, disks int) string {
	var ids []string
	for n := range disks {
		ids = append(ids, strconv.Quote(h.Disk(n).ID()))
	}
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata: {name: %s}
spec:
  type: glusterfs
  cluster: gluster
  nodeSelector: {kubernetes.io/hostname: %s}
  storageNetwork: {ips: [%s]}
  devices: [%s]
  glusterfs: {zone: %s}
`, h.Name, h.Name, h.IP, strings.Join(ids, ", "), strings.TrimPrefix(h.Name, "h"))
}

// glusterVolume declares a volume. Copies are looked for that lack something more often than by
// default; fragments cannot be.
func glusterVolume(name, size, durability string) string {
	options := `cluster.heal-timeout: "5"`
	if strings.HasPrefix(durability, "disperse") {
		options = ""
	}
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: %s}
spec: {cluster: gluster, size: %s, durability: {%s}, options: {%s}, deletionPolicy: Wipe}
`, name, size, durability, options)
}

// applies applies a manifest on a host that must take it.
func (b *bed) applies(host int, manifest string) {
	b.Helper()
	if err := b.takes(host, manifest)(); err != nil {
		b.Fatalf("%v", err)
	}
}

// takes checks that a manifest is applied.
func (b *bed) takes(host int, manifest string) func() error {
	return func() error {
		if out, code := b.apply(host, manifest); code != 0 {
			return fmt.Errorf("holdfast apply ended with %d: %s", code, out)
		}
		return nil
	}
}

// bricksServe checks that the volume has so many bricks, and that all of them serve and agree.
func (b *bed) bricksServe(server int, name string, count int) func() error {
	return func() error {
		v, err := read[api.Volume](b, server, "volumes", name)
		if err != nil {
			return err
		}
		online := 0
		for _, brick := range v.Status.Bricks {
			if brick.Online {
				online++
			}
		}
		if online != count || len(v.Status.Bricks) != count || v.Status.Heals != 0 || v.Status.State != api.ResourceOnline {
			return fmt.Errorf("%d of %d bricks serve, %d entries to heal, %s: %s", online, len(v.Status.Bricks), v.Status.Heals, v.Status.State, v.Status.Message)
		}
		return nil
	}
}

// servesWithout is bricksServe, and checks that no brick is on a device any more.
func (b *bed) servesWithout(server int, name string, count int, device string) func() error {
	return func() error {
		v, err := read[api.Volume](b, server, "volumes", name)
		for _, brick := range v.Status.Bricks {
			if brick.Device == device {
				return fmt.Errorf("brick %+v is on %s", brick, device)
			}
		}
		return errors.Join(err, b.bricksServe(server, name, count)())
	}
}

// allServe checks that volumes have so many bricks each, and that all of them serve and agree.
func (b *bed) allServe(server, count int, names ...string) func() error {
	return func() error {
		var errs []error
		for _, name := range names {
			if err := b.bricksServe(server, name, count)(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		return errors.Join(errs...)
	}
}

// missed checks that each of some volumes misses a brick, or is not healed.
func (b *bed) missed(server int, names ...string) func() error {
	return func() error {
		for _, name := range names {
			if b.bricksServe(server, name, 3)() == nil {
				return fmt.Errorf("all bricks of %s serve", name)
			}
		}
		return nil
	}
}

// speaker is the number of the host whose agent reports on the whole pool.
func (b *bed) speaker() (number int) {
	b.Helper()
	b.awaitPool("one node to report on the pool", func() error {
		var all []string
		for _, d := range b.daemons() {
			if d.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool {
				all = append(all, d.Spec.Host)
				number = b.number(d.Spec.Host)
			}
		}
		if len(all) != 1 {
			return fmt.Errorf("it is %q", all)
		}
		return nil
	})
	return number
}

// copiesAgree checks that each brick of a volume has all that a client wrote, right. Arbiters have
// names alone.
func (b *bed) copiesAgree(c *client, arbiter bool) {
	b.Helper()
	v, err := read[api.Volume](b, 1, "volumes", c.name)
	if err != nil {
		b.Fatalf("%v", err)
	}
	want, err := os.ReadFile(c.host.Path(c.dir() + "/written"))
	if err != nil {
		b.Fatalf("%v", err)
	}
	for i, brick := range v.Status.Bricks {
		if arbiter && i%3 == 2 {
			continue
		}
		// sha256sum writes "sum  name", the client "name sum".
		out := b.hostNamed(brick.Node).Run(b, context.Background(), "bash", "-c", "cd "+brick.Path+"/"+c.host.Name+` && sha256sum o* | awk '{print $2, $1}'`)
		compare(b, "files of brick "+brick.Node+":"+brick.Path, strings.Fields(out), strings.Fields(string(want)))
	}
}

// explain prints what a person would look at first, if the test has failed when it ends.
func (b *bed) explain() {
	b.Cleanup(func() {
		if !b.Failed() {
			return
		}
		for _, kind := range []string{"storagestatuses", "volumes", "storageclusters", "storagenodes", "daemons", "plans", "actions"} {
			for n := range b.Lab.Hosts()[:3] {
				if out, err := b.HoldfastOn(n+1, "get", kind, "-o", "yaml"); err == nil {
					b.Logf("== holdfast get %s\n%s", kind, out)
					break
				}
			}
		}
	})
}

// glusterProcesses are the processes of GlusterFS as "host program".
func (b *bed) glusterProcesses() []string {
	b.Helper()
	var all []string
	for _, h := range b.Lab.Hosts() {
		if !h.On() {
			continue
		}
		for line := range strings.Lines(h.Run(b, context.Background(), "ps", "-e", "-o", "args=")) {
			f := strings.Fields(line)
			if len(f) > 0 && slices.Contains([]string{"glusterd", "glusterfsd", "glusterfs"}, f[0][strings.LastIndex(f[0], "/")+1:]) {
				all = append(all, h.Name+" "+strings.TrimSpace(line))
			}
		}
	}
	return all
}

// poolLimit bounds a step that a pool has to take. A glusterd that dies in the middle of a
// transaction may leave a lock with another one, which drops it after 3 minutes (GF_LOCK_TIMER of
// glusterfs). Nothing can be changed before; the agent and the leader try again all the time.
const poolLimit = 3*time.Minute + home.Limit

// awaitPool is await of what a pool has to do.
func (b *bed) awaitPool(what string, check func() error) {
	b.Helper()
	b.awaitFor(poolLimit, what, check)
}

// glusterGone deletes everything: no process, mount, file or object is left, and the disks are
// empty.
func (b *bed) glusterGone(spec string) {
	b.Helper()
	b.Wipe(b, spec)
	b.awaitPool("all objects to be gone", func() error {
		for _, kind := range []string{"daemons", "volumes", "storageclusters", "storagenodes", "storagestatuses"} {
			if left := list[metav1.PartialObjectMetadata](b, kind); len(left) > 0 {
				return fmt.Errorf("%d %s are left", len(left), kind)
			}
		}
		return nil
	})
	if left := b.glusterProcesses(); len(left) > 0 {
		b.Errorf("processes are left: %q", left)
	}
	for _, h := range b.Lab.Hosts() {
		// A host's table begins with what is mounted on the machine, such as by tests that run
		// there. HideGeoReplication of test/hosts mounts gsyncd.
		if out := h.Run(b, context.Background(), "bash", "-c", "grep -E 'xfs|glusterfs' /proc/mounts | grep -vE ' /tmp/Test|/glusterfs/gsyncd '; find /var/lib/holdfast/agent/daemons -mindepth 1; true"); out != "" {
			b.Errorf("%s: left behind:\n%s", h.Name, out)
		}
	}
	b.AwaitFreeDisks(b)
}
