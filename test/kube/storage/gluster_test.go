package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/kube"
)

const glusterNS = "files"

// gluster is examples/glusterfs-three-nodes.yaml with the names and disks of the nodes. The second
// Node's label is the name in the example: it may differ from the Node's name.
func (b *bed) gluster() string {
	b.t.Helper()
	text, err := os.ReadFile("../../../examples/glusterfs-three-nodes.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	b.Kubectl(b.t, "label", "node", "h2", "kubernetes.io/hostname=node2", "--overwrite")
	all := string(text)
	for i, n := range b.Nodes() {
		name := fmt.Sprintf("kubernetes.io/hostname: node%d\n", i+1)
		before, after, found := strings.Cut(all, name)
		if !found || !strings.Contains(after, "/dev/sdb") {
			b.t.Fatalf("the example has no %s with a device", name)
		}
		if i != 1 {
			name = "kubernetes.io/hostname: " + n.Name + "\n"
		}
		all = before + name + strings.Replace(after, "/dev/sdb", n.Disk(0).ID(), 1)
	}
	return all
}

// TestGluster: GlusterFS in a namespace of its own: the pool forms, the volume is served and
// mounted by the FUSE client on a node, what was written outlives a glusterd's pod with its bricks,
// the volume is served by NFS, and nothing is left in the end. One node has another host name than its Node.
func TestGluster(t *testing.T) {
	b := newBedOf(t, kube.Options{Nodes: 3, Disks: 1, DiskSize: 30 << 30}) // the example wants 20 GiB of each
	b.Node(3).Run(t, t.Context(), "hostname", "elsewhere")
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
	b.volumeByNFS()
	b.step("the volume was read and written by NFS")
	n.Run(t, t.Context(), "umount", "/run/vol1")
	for _, object := range []string{"volume/vol1", "storagecluster/gluster"} {
		b.Kubectl(t, "-n", glusterNS, "patch", object, "--type=merge", "-p", `{"spec":{"deletionPolicy":"Wipe"}}`)
	}
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

// volumeByNFS has NFS-Ganesha serve the volume from a pod: a client reads there what was written by
// FUSE, and the other way round.
func (b *bed) volumeByNFS() {
	b.t.Helper()
	b.Apply(b.t, "apiVersion: holdfast.io/v1alpha1\nkind: NFSExport\nmetadata: {name: vol1}\n"+
		"spec: {cluster: gluster, volume: vol1, squash: None}\n", "-n", glusterNS)
	b.Kubectl(b.t, "-n", glusterNS, "wait", "nfsexport/vol1", "--for=condition=Ready", "--timeout=2m")
	b.awaitReady(glusterNS, 4)
	source := b.Kubectl(b.t, "-n", glusterNS, "get", "nfsexport", "vol1", "-o", "jsonpath={.status.source}")
	url := "nfs://" + strings.Replace(source, ":", "", 1) + "/"
	b.Node(1).Run(b.t, b.t.Context(), "sh", "-c", `set -e
		nfs-cat "$0seq?version=4" | cmp - /run/vol1/seq
		seq 1000 >/run/by-nfs
		nfs-cp /run/by-nfs "$0by-nfs?version=4"
		cmp /run/by-nfs /run/vol1/by-nfs`, url)
	b.Kubectl(b.t, "-n", glusterNS, "delete", "nfsexport", "vol1", "--timeout=2m")
	b.awaitReady(glusterNS, 3)
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
