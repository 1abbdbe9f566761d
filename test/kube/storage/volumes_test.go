package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// claims is the namespace of those who use volumes.
const claims = "apps"

// TestVolumes has pods use volumes of a Ceph pool: they are bound, written to, grown while the
// driver is restarted, moved to another node, and removed, and nothing is left.
func TestVolumes(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.ceph(), "-n", ns)
	b.Apply(t, volumePool, "-n", ns)
	b.awaitStatus(ns)
	b.step("Ceph is ONLINE")
	b.driver()
	b.step("the driver runs")
	b.Kubectl(t, "create", "namespace", claims)
	b.Apply(t, b.classOfPool())
	b.Apply(t, statefulSet, "-n", claims)
	b.awaitWriters()
	b.step("three pods write to their volumes")
	carriers := b.lives("holdfast-volumes")
	if len(carriers) != 3 {
		t.Errorf("pods that carry volumes: %v", carriers)
	}
	b.Kubectl(t, "-n", "holdfast-system", "rollout", "restart", "ds/holdfast-csi-node")
	b.Kubectl(t, "-n", "holdfast-system", "rollout", "status", "ds/holdfast-csi-node", "--timeout=3m")
	b.grown()
	b.step("the driver was restarted, and a volume grew")
	for name, id := range b.lives("holdfast-volumes") {
		if carriers[name] != id {
			t.Errorf("the pod %s that carries a volume is another one", name)
		}
	}
	b.drained()
	b.moved()
	b.step("a pod and its volume are on another node")
	b.volumesRemoved()
	b.step("the volumes are removed, and nothing is left")
}

const volumePool = `
apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: volumes}
spec: {cluster: ceph, application: rbd}
---
apiVersion: holdfast.io/v1alpha1
kind: Client
metadata: {name: csi-provisioner}
spec: {cluster: ceph, caps: {mon: profile rbd, mgr: allow rw, osd: profile rbd pool=volumes}}
---
apiVersion: holdfast.io/v1alpha1
kind: Client
metadata: {name: csi-node}
spec: {cluster: ceph, caps: {mon: profile rbd, osd: profile rbd pool=volumes}}
`

// driver installs the CSI driver as a person does.
func (b *bed) driver() {
	b.t.Helper()
	manifests, err := os.ReadFile("../../../deploy/csi/csi.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	b.Apply(b.t, string(manifests))
	b.AwaitPods(b.t, "holdfast-system", "app.kubernetes.io/name=holdfast-csi-controller", 2)
	b.AwaitPods(b.t, "holdfast-system", "app.kubernetes.io/name=holdfast-csi-node", 3)
	b.await("the kubelets to know the driver", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "get", "csinodes", "-o", "jsonpath={.items[*].spec.drivers[*].name}")
		if err == nil && strings.Count(out, "holdfast.io") != 3 {
			err = errors.New(out)
		}
		return err
	})
}

// classOfPool is a StorageClass with its Secrets.
func (b *bed) classOfPool() string {
	b.t.Helper()
	return b.secretOf("csi-provisioner") + b.secretOf("csi-node") + `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: storage-volumes}
provisioner: holdfast.io
allowVolumeExpansion: true
parameters:
  pool: volumes
  csi.storage.k8s.io/provisioner-secret-name: csi-provisioner
  csi.storage.k8s.io/provisioner-secret-namespace: storage
  csi.storage.k8s.io/controller-publish-secret-name: csi-provisioner
  csi.storage.k8s.io/controller-publish-secret-namespace: storage
  csi.storage.k8s.io/controller-expand-secret-name: csi-provisioner
  csi.storage.k8s.io/controller-expand-secret-namespace: storage
  csi.storage.k8s.io/node-stage-secret-name: csi-node
  csi.storage.k8s.io/node-stage-secret-namespace: storage
`
}

// secretOf is the Secret for the driver that is made from the files of a Client.
func (b *bed) secretOf(client string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.await("the key of "+client, func(ctx context.Context) error {
		out, err := exec.CommandContext(ctx, "../../../bin/holdfast", "--kubeconfig", b.Kubeconfig, "-n", ns, "ceph",
			"client-files", client, dir).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	values := map[string]string{}
	for _, file := range []string{"ceph.conf", "ceph.client." + client + ".keyring"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			b.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, "="); ok {
				values[strings.TrimSpace(key)] = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
stringData: {fsid: %q, monHost: %q, userID: %q, userKey: %q}
---`, client, ns, values["fsid"], values["mon_host"], client, values["key"])
}

// statefulSet has three pods that write to a volume each, and read what they wrote.
const statefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 2
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
          cd /data
          n=0
          if [ -e sum ]; then sha256sum -c sum; ! grep -q 'f.0' sum || n=1; fi
          while :; do
            head -c 1M /dev/urandom >f.$n; sync f.$n
            sha256sum f.$n >sum.new; sync sum.new; mv sum.new sum
            sha256sum -c sum; date +%s >last
            n=$((1 - n)); sleep 0.1
          done
        readinessProbe: {exec: {command: [test, -s, /data/last]}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      storageClassName: storage-volumes
      resources: {requests: {storage: 320Mi}}
`

func (b *bed) awaitWriters() {
	b.t.Helper()
	b.AwaitPods(b.t, claims, "app=web", 3)
}

// grown makes a volume larger, and waits until its pod sees that. No pod is started again for it.
func (b *bed) grown() {
	b.t.Helper()
	lives := b.lives(claims)
	b.Kubectl(b.t, "-n", claims, "patch", "pvc", "data-web-0", "-p",
		`{"spec":{"resources":{"requests":{"storage":"640Mi"}}}}`)
	b.await("the volume to grow", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", claims, "exec", "web-0", "--", "df", "--output=size", "-BM", "/data")
		size := 0
		if err == nil {
			_, err = fmt.Sscanf(strings.Join(strings.Fields(out), " "), "1M-blocks %dM", &size)
		}
		if err == nil && size < 500 {
			err = errors.New(out)
		}
		return err
	})
	if now := b.lives(claims); !maps.Equal(now, lives) {
		b.t.Errorf("containers were %v, and are %v", lives, now)
	}
}

// drained shows that a drain leaves pods alone that carry volumes.
func (b *bed) drained() {
	b.t.Helper()
	lives := b.lives("holdfast-volumes")
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	out, err := b.Try(ctx, "", "drain", "h1", "--pod-selector=app.kubernetes.io/managed-by=holdfast-csi",
		"--timeout=2s")
	if err == nil {
		b.t.Errorf("pods that carry volumes were drained: %s", out)
	}
	b.Kubectl(b.t, "uncordon", "h1")
	if now := b.lives("holdfast-volumes"); !maps.Equal(now, lives) {
		b.t.Errorf("after a drain the pods that carry volumes are %v, and were %v", now, lives)
	}
}

// moved sends a pod to another node.
func (b *bed) moved() {
	b.t.Helper()
	was := b.Pods(b.t, claims)["web-0"].Spec.NodeName
	b.Kubectl(b.t, "cordon", was)
	begun := time.Now()
	b.Kubectl(b.t, "-n", claims, "delete", "pod", "web-0")
	b.awaitWriters()
	b.t.Logf("the pod was Ready after %.1f s", time.Since(begun).Seconds())
	if now := b.Pods(b.t, claims)["web-0"].Spec.NodeName; now == was {
		b.t.Errorf("the pod is on %s again", now)
	}
	b.Kubectl(b.t, "uncordon", was)
}

func (b *bed) volumesRemoved() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", claims, "delete", "statefulset", "web")
	b.Kubectl(b.t, "-n", claims, "delete", "pvc", "--all")
	b.awaitNoVolumes()
	b.await("the images to be gone", func(ctx context.Context) error {
		out, err := b.Operator(ctx, "-n", ns, "ceph", "shell", "--", "bash", "-c",
			"rbd ls volumes; rbd trash ls volumes")
		if err == nil && strings.TrimSpace(out) != "" {
			err = errors.New(out)
		}
		return err
	})
	b.nothingLeftOfVolumes()
}

// awaitNoVolumes waits until Kubernetes has no volume any more.
func (b *bed) awaitNoVolumes() {
	b.t.Helper()
	b.await("the volumes to be removed", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "get", "pv,volumeattachments", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	if left := b.Pods(b.t, "holdfast-volumes"); len(left) > 0 {
		b.t.Errorf("pods that carry volumes are left: %v", left)
	}
}

// nothingLeftOfVolumes fails if a node has anything of a volume.
func (b *bed) nothingLeftOfVolumes() {
	b.t.Helper()
	for _, n := range b.Nodes() {
		out := n.Run(b.t, b.t.Context(), "find", "/var/lib/holdfast/csi", "-mindepth", "1", "-not", "-name",
			"processes")
		if strings.TrimSpace(out) != "" {
			b.t.Errorf("%s: left: %s", n.Name, out)
		}
	}
}
