package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// TestQuarterMaster goes through what QuarterMaster's design promises: a storage system that is
// OFFLINE until its nodes are registered, one by one, a StorageClass that appears then, and claims
// that are satisfied by Kubernetes. Pods on two nodes share a volume of GlusterFS while the driver is restarted and the
// volume grows. In the end nothing is left of it.
func TestQuarterMaster(t *testing.T) {
	tier.Full(t)
	b := newBedOf(t, kube.Options{Nodes: 3, Disks: 1, DiskSize: 4 << 30})
	b.driver()
	b.step("the driver runs")
	b.Kubectl(t, "create", "namespace", glusterNS)
	b.Kubectl(t, "create", "namespace", claims)
	b.Apply(t, glusterCluster, "-n", glusterNS)
	b.awaitOffline("StorageNode")
	b.Apply(t, sharedClaim, "-n", claims)
	b.awaitReason()
	b.step("the storage system is OFFLINE, and a claim waits for the StorageClass")
	for i := range b.Nodes() {
		b.Apply(t, b.storageNode(i+1), "-n", glusterNS)
		if i < 2 {
			b.awaitOffline(fmt.Sprintf("%d of the 3 nodes", i+1))
		}
	}
	b.awaitClass(glusterNS, classOfGluster)
	b.step("three nodes were registered one by one, it is ONLINE, and the StorageClass appears")
	b.Kubectl(t, "-n", claims, "wait", "pvc/shared", "--for=jsonpath={.status.phase}=Bound", "--timeout=3m")
	b.step("the claim is bound")
	b.Apply(t, sharingPods, "-n", claims)
	b.AwaitPods(t, claims, "app=sharing", 2)
	b.step("pods on two nodes read each other's files")
	b.listsNodes()
	b.driverReplaced()
	b.step("the driver was restarted, and the volume grew")
	b.Kubectl(t, "-n", claims, "delete", "deployment", "sharing")
	b.Kubectl(t, "-n", claims, "delete", "pvc", "--all")
	b.noVolumes()
	b.step("the volume is removed, and nothing is left")
}

const glusterCluster = `
apiVersion: holdfast.io/v1alpha1
kind: StorageCluster
metadata: {name: cluster1}
spec: {type: glusterfs, interval: 2s, deletionPolicy: Wipe}
`

// storageNode is QuarterMaster's example of a StorageNode, for one of the nodes.
func (b *bed) storageNode(number int) string {
	n := b.Node(number)
	return fmt.Sprintf(`
apiVersion: holdfast.io/v1alpha1
kind: StorageNode
metadata:
  name: storage-node%[1]d
spec:
  type: glusterfs
  nodeSelector:
    'kubernetes.io/hostname': %[2]s
  storageNetwork:
    ips:
      - %[3]s
  devices:
    - %[4]s
  glusterfs:
    cluster: cluster1
    zone: %[1]d
`, number, n.Name, n.IP, n.Disk(0).ID())
}

// classOfGluster is the StorageClass of the cluster.
const classOfGluster = glusterNS + "-cluster1"

const sharedClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ` + classOfGluster + `
  resources: {requests: {storage: 128Mi}}
`

// sharingPods are on two nodes. Each writes a file, which its group may, and is Ready while it reads
// one that the other has written in the last ten seconds.
const sharingPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: sharing}
spec:
  replicas: 2
  selector: {matchLabels: {app: sharing}}
  template:
    metadata: {labels: {app: sharing}}
    spec:
      terminationGracePeriodSeconds: 2
      securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 4711}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: sharing}}
      containers:
      - name: writer
        image: localhost/holdfast:dev
        imagePullPolicy: IfNotPresent
        command:
        - bash
        - -c
        - |
          set -e
          trap 'exit 0' TERM
          while :; do date +%s >"/data/$HOSTNAME"; sync "/data/$HOSTNAME"; sleep 0.2; done
        readinessProbe:
          exec:
            command:
            - bash
            - -c
            - |
              for f in /data/*; do
                [ "$f" = "/data/$HOSTNAME" ] || [ $(($(date +%s) - $(cat "$f"))) -gt 10 ] || exit 0
              done
              exit 1
          periodSeconds: 1
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: shared}}]
`

// awaitOffline waits until the storage system is OFFLINE for a reason.
func (b *bed) awaitOffline(why string) {
	b.t.Helper()
	b.await("OFFLINE: "+why, func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", glusterNS, "get", "storagestatus")
		if err == nil && (!strings.Contains(out, "OFFLINE") || !strings.Contains(out, why)) {
			err = errors.New(out)
		}
		return err
	})
}

// awaitReason waits until the events of the claim say why it is not bound.
func (b *bed) awaitReason() {
	b.t.Helper()
	b.await("the claim to say why it waits", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", claims, "get", "events", "--field-selector=involvedObject.name=shared", "-o",
			"jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(out, `"`+classOfGluster+`" not found`) {
			err = errors.New(out)
		}
		return err
	})
}

// listsNodes fails unless the StorageStatus lists all nodes.
func (b *bed) listsNodes() {
	b.t.Helper()
	out := b.Kubectl(b.t, "-n", glusterNS, "get", "storagestatus/cluster1", "-o", "yaml")
	for i := range b.Nodes() {
		if name := fmt.Sprintf("storage-node%d", i+1); !strings.Contains(out, name) {
			b.t.Errorf("the StorageStatus does not list %s:\n%s", name, out)
		}
	}
}

// driverReplaced restarts the driver and grows the volume: the pods, and those that carry the volume,
// stay as they are.
func (b *bed) driverReplaced() {
	b.t.Helper()
	lives, carriers := b.lives(claims), b.lives("holdfast-volumes")
	if len(carriers) != 2 {
		b.t.Errorf("pods that carry volumes: %v", carriers)
	}
	b.Kubectl(b.t, "-n", "holdfast-system", "rollout", "restart", "ds/holdfast-csi-node")
	b.Kubectl(b.t, "-n", "holdfast-system", "rollout", "status", "ds/holdfast-csi-node", "--timeout=3m")
	b.Kubectl(b.t, "-n", claims, "patch", "pvc", "shared", "-p",
		`{"spec":{"resources":{"requests":{"storage":"512Mi"}}}}`)
	for name := range lives {
		b.await("df to show the new size", func(ctx context.Context) error {
			out, err := b.Try(ctx, "", "-n", claims, "exec", name, "--", "df", "--output=size", "-BM", "/data")
			if err == nil && !strings.Contains(out, "512M") {
				err = errors.New(out)
			}
			return err
		})
	}
	b.AwaitPods(b.t, claims, "app=sharing", 2)
	if now := b.lives(claims); !maps.Equal(now, lives) {
		b.t.Errorf("containers were %v, and are %v", lives, now)
	}
	if now := b.lives("holdfast-volumes"); !maps.Equal(now, carriers) {
		b.t.Errorf("the pods that carry volumes were %v, and are %v", carriers, now)
	}
}

// noVolumes waits until Kubernetes and Holdfast have no volumes, and fails if a node has anything of
// one.
func (b *bed) noVolumes() {
	b.t.Helper()
	b.await("the volumes to be removed", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "get", "pv,volumeattachments,volumes.holdfast.io", "-A", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	if left := b.Pods(b.t, "holdfast-volumes"); len(left) > 0 {
		b.t.Errorf("pods that carry volumes are left: %v", left)
	}
	for _, n := range b.Nodes() {
		out := n.Run(b.t, b.t.Context(), "sh", "-c", `find /var/lib/holdfast/csi -mindepth 1 -not -name processes
			find /var/lib/holdfast/agent -name 'pvc-*'; grep fuse.glusterfs /proc/self/mounts; true`)
		if strings.TrimSpace(out) != "" {
			b.t.Errorf("%s: left: %s", n.Name, out)
		}
	}
}
