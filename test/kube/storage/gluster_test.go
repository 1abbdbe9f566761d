package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
)

const glusterNS = "files"

// gluster is the cluster of examples/glusterfs-three-nodes.yaml with the names and disks of the
// nodes, and a smaller volume.
func (b *bed) gluster() string {
	b.t.Helper()
	all := "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: gluster}\n" +
		"spec: {type: glusterfs, deletionPolicy: Wipe, interval: 2s, glusterfs: {options: {network.ping-timeout: " +
		"\"10\"}}}\n"
	for i, n := range b.Nodes() {
		all += fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: "+
			"%s}\nspec:\n  type: glusterfs\n  cluster: gluster\n"+
			"  nodeSelector: {kubernetes.io/hostname: %s}\n  devices: [%q]\n  glusterfs: {zone: %d}\n", n.Name, n.Name, n.Disk(0).ID(), i+1)
	}
	return all + "---\napiVersion: holdfast.io/v1alpha1\nkind: Volume\nmetadata: {name: vol1}\n" +
		"spec: {cluster: gluster, size: 500Mi, durability: {replicate: {count: 3}}, deletionPolicy: Wipe}\n"
}

// TestGluster: GlusterFS in a namespace of its own: the pool forms, the volume is served and
// mounted by the FUSE client on a node, what was written outlives a glusterd's pod with its bricks,
// and nothing is left in the end.
func TestGluster(t *testing.T) {
	b := newBed(t, 1)
	b.Kubectl(t, "create", "namespace", glusterNS)
	b.Apply(t, b.gluster(), "-n", glusterNS)
	b.Kubectl(t, "-n", glusterNS, "wait", "volume/vol1", "--for=condition=Ready", "--timeout=4m")
	b.awaitReady(glusterNS, 3)
	b.awaitStatus(glusterNS)
	b.step("GlusterFS is ONLINE, and the volume is served")
	n := b.Node(1)
	source := b.Kubectl(t, "-n", glusterNS, "get", "volume", "vol1", "-o", "jsonpath={.status.source}")
	n.Run(t, t.Context(), "mkdir", "-p", "/run/vol1")
	n.Run(t, t.Context(), "mount", "-t", "glusterfs", "-o", "backup-volfile-servers="+b.Node(2).IP+":"+b.Node(3).IP,
		source, "/run/vol1")
	n.Run(t, t.Context(), "sh", "-c", "seq 100000 > /run/vol1/seq && sync /run/vol1/seq")
	b.step("a client has written")
	lives := b.lives(glusterNS)
	pod := podOn(b, "h2")
	b.Kubectl(t, "-n", glusterNS, "delete", "pod", pod)
	b.awaitReady(glusterNS, 3)
	if now := b.lives(glusterNS); now[pod] == lives[pod] {
		t.Errorf("the pod %s was not replaced", pod)
	}
	b.await("all bricks to be healed", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", glusterNS, "get", "volume", "vol1", "-o",
			`jsonpath={.status.state}:{range .status.bricks[*]}{.state} {.toHeal};{end}`)
		if err == nil && !strings.Contains(out, "Online") {
			err = errors.New(out)
		}
		return err
	})
	b.awaitStatus(glusterNS)
	n.Run(t, t.Context(), "sh", "-c", "seq 100000 | cmp - /run/vol1/seq")
	b.step("a node's glusterd and bricks were replaced")
	n.Run(t, t.Context(), "umount", "/run/vol1")
	b.Kubectl(t, "-n", glusterNS, "delete", "volume", "vol1", "--timeout=2m")
	b.Kubectl(t, "-n", glusterNS, "delete", "storagenodes,storageclusters", "--all", "--timeout=3m")
	home.Await(t, "nothing to be left on the nodes", func() error {
		if left := b.left(); len(left) > 0 {
			return errors.New(strings.Join(left, "\n"))
		}
		return nil
	})
	b.step("the cluster is wiped, and nothing is left")
}

// podOn is the name of the pod on a node.
func podOn(b *bed, node string) string {
	b.t.Helper()
	for name, pod := range b.Pods(b.t, glusterNS) {
		if pod.Spec.NodeName == node {
			return name
		}
	}
	b.t.Fatalf("no pod is on %s", node)
	return ""
}
