package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// glusterBed is a lab with servers on three hosts, an agent on each other one, and two disks in each host.
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
spec: {type: glusterfs, deletionPolicy: Wipe, interval: 2s, glusterfs: {options: {network.ping-timeout: "10", cluster.heal-timeout: "5"}}}
`

// glusterNode declares a host with its disks for the cluster.
func glusterNode(h *hosts.Host) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata: {name: %s}
spec:
  type: glusterfs
  cluster: gluster
  nodeSelector: {kubernetes.io/hostname: %s}
  storageNetwork: {ips: [%s]}
  devices: [%q, %q]
  glusterfs: {zone: %s}
`, h.Name, h.Name, h.IP, h.Disk(0).ID(), h.Disk(1).ID(), strings.TrimPrefix(h.Name, "h"))
}

// glusterVolume declares a volume.
func glusterVolume(name, size, durability string) string {
	return fmt.Sprintf(`---
apiVersion: holdfast.io/v1alpha1
kind: Volume
metadata: {name: %s}
spec: {cluster: gluster, size: %s, durability: {%s}, deletionPolicy: Wipe}
`, name, size, durability)
}

// applies applies a manifest on a host that must take it.
func (b *bed) applies(host int, manifest string) {
	b.Helper()
	if out, code := b.apply(host, manifest); code != 0 {
		b.Fatalf("holdfast apply ended with %d:\n%s", code, out)
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
		if online != count || len(v.Status.Bricks) != count || v.Status.Heals != 0 || v.Status.State != api.VolumeOnline {
			return fmt.Errorf("%d of %d bricks serve, %d entries to heal, %s: %s", online, len(v.Status.Bricks), v.Status.Heals, v.Status.State, v.Status.Message)
		}
		return nil
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
