package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// filesystem is what the class of examples/kubernetes/shared-files.yaml comes from.
const filesystem = `---
apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: home}
spec: {cluster: ceph, deletionPolicy: Wipe}
`

// TestSharedFiles has pods on two nodes share a volume of a CephFS, while the driver is restarted and
// the volume grows. In the end nothing is left.
func TestSharedFiles(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.driver()
	b.step("the driver runs")
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.ceph()+filesystem, "-n", ns)
	b.awaitClass(ns, "storage-home")
	b.step("Ceph is ONLINE, and the filesystem has a StorageClass")
	b.Kubectl(t, "create", "namespace", claims)
	b.Apply(t, b.sharedFiles(), "-n", claims)
	b.AwaitPods(t, claims, "app=shared", 2)
	b.step("pods on two nodes read each other's files")
	carriers := b.lives("holdfast-volumes")
	if len(carriers) != 2 {
		t.Errorf("pods that carry volumes: %v", carriers)
	}
	lives := b.lives(claims)
	b.Kubectl(t, "-n", "holdfast-system", "rollout", "restart", "ds/holdfast-csi-node")
	b.Kubectl(t, "-n", "holdfast-system", "rollout", "status", "ds/holdfast-csi-node", "--timeout=3m")
	b.sharedGrown()
	b.AwaitPods(t, claims, "app=shared", 2)
	if now := b.lives(claims); !maps.Equal(now, lives) {
		t.Errorf("containers were %v, and are %v", lives, now)
	}
	if now := b.lives("holdfast-volumes"); !maps.Equal(now, carriers) {
		t.Errorf("the pods that carry volumes were %v, and are %v", carriers, now)
	}
	b.step("the driver was restarted, and the volume grew")
	b.sharedRemoved()
	b.step("the volume is removed, and nothing is left")
}

// sharedFiles is the example, with the one image that the nodes have.
func (b *bed) sharedFiles() string {
	b.t.Helper()
	text, err := os.ReadFile("../../../examples/kubernetes/shared-files.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "image: debian:12-slim", "image: localhost/holdfast:dev")
}

// sharedGrown makes the volume larger, and waits until each pod sees that.
func (b *bed) sharedGrown() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", claims, "patch", "pvc", "shared", "-p",
		`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	for pod := range b.Pods(b.t, claims) {
		b.await("the volume to grow", func(ctx context.Context) error {
			out, err := b.Try(ctx, "", "-n", claims, "exec", pod, "--", "df", "--output=size", "-BM", "/data")
			size := 0
			if err == nil {
				_, err = fmt.Sscanf(strings.Join(strings.Fields(out), " "), "1M-blocks %dM", &size)
			}
			if err == nil && size != 2048 {
				err = errors.New(out)
			}
			return err
		})
	}
	b.await("the claim to have its size", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", claims, "get", "pvc", "shared", "-o", "jsonpath={.status.capacity.storage}")
		if err == nil && out != "2Gi" {
			err = errors.New(out)
		}
		return err
	})
}

func (b *bed) sharedRemoved() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", claims, "delete", "deployment", "shared")
	b.Kubectl(b.t, "-n", claims, "delete", "pvc", "--all")
	b.awaitNoVolumes()
	b.await("the subvolumes to be gone, also from the trash", func(ctx context.Context) error {
		out, err := b.Operator(ctx, "-n", ns, "ceph", "shell", "--", "bash", "-c",
			"ceph fs subvolume ls home csi --format plain; ceph fs volume info home --format json")
		if err == nil && (strings.Contains(out, "pvc-") || !strings.Contains(out, `"pending_subvolume_deletions": 0`)) {
			err = errors.New(out)
		}
		return err
	})
	b.nothingLeftOfVolumes()
}
