package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// claims is the namespace of those who use volumes.
const claims = "apps"

// TestVolumes has pods use volumes of a Ceph pool: its StorageClass appears when Ceph is ONLINE, and
// volumes are bound, written to, grown while the driver is restarted, moved to another node, and
// removed. A claim of a cluster that is OFFLINE waits. Nothing is left.
func TestVolumes(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.driver()
	b.step("the driver runs")
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.ceph(), "-n", ns)
	b.Apply(t, volumePool, "-n", ns)
	b.awaitClass(ns, class)
	b.step("Ceph is ONLINE, and the pool has a StorageClass")
	b.Kubectl(t, "create", "namespace", claims)
	b.Apply(t, b.statefulSet(), "-n", claims)
	b.awaitWriters()
	b.step("three pods write to their volumes")
	b.noKeys()
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
	b.carrierDeleted()
	b.step("what carried a volume was deleted by hand, its user was told, and the next one works")
	b.waited()
	b.step("a claim waited for the quorum, and is bound")
	b.volumesRemoved()
	b.step("the volumes are removed, and nothing is left")
	b.poolDeleted()
	b.step("the class and its keys are gone with the pool")
}

const volumePool = `
apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: volumes}
spec: {cluster: ceph, application: rbd}
`

// class is the StorageClass of volumePool.
const class = ns + "-volumes"

// awaitClass waits until there is the class of a cluster. No class is there before the cluster is
// ONLINE.
func (b *bed) awaitClass(namespace, class string) {
	b.t.Helper()
	online := false
	b.await("the StorageClass", func(ctx context.Context) error {
		classes, err := b.Try(ctx, "", "get", "storageclass", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		status, err := b.Try(ctx, "", "-n", namespace, "get", "storagestatus", "-o",
			"jsonpath={.items[*].status.status}")
		online = online || status == "ONLINE"
		switch {
		case err != nil:
			return err
		case classes != "" && !online:
			b.t.Fatalf("there are the classes %q, and the cluster is %q", classes, status)
		case classes != class:
			return fmt.Errorf("the classes are %q, and the cluster is %q", classes, status)
		}
		return nil
	})
}

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

// statefulSet is examples/kubernetes/statefulset.yaml with the image that the nodes have: three pods
// that write to a volume each, and read what they wrote.
func (b *bed) statefulSet() string {
	b.t.Helper()
	const theirs = "image: debian:12-slim"
	text, err := os.ReadFile("../../../examples/kubernetes/statefulset.yaml")
	if err != nil || !strings.Contains(string(text), theirs) {
		b.t.Fatalf("the example has no %s: %v", theirs, err)
	}
	return strings.Replace(string(text), theirs, "image: localhost/holdfast:dev", 1)
}

func (b *bed) awaitWriters() {
	b.t.Helper()
	b.AwaitPods(b.t, claims, "app=web", 3)
}

// grown makes a volume larger, and waits until its pod sees that. No pod is started again for it.
func (b *bed) grown() {
	b.t.Helper()
	lives := b.lives(claims)
	b.Kubectl(b.t, "-n", claims, "patch", "pvc", "data-web-0", "-p",
		`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	b.await("the volume to grow", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "-n", claims, "exec", "web-0", "--", "df", "--output=size", "-BM", "/data")
		size := 0
		if err == nil {
			_, err = fmt.Sscanf(strings.Join(strings.Fields(out), " "), "1M-blocks %dM", &size)
		}
		if err == nil && size < 1800 {
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

// carrierDeleted deletes the pod that carries the volume of web-1: the events of web-1 say so, and what to do. When
// that is done, the pod that follows has the volume and its data.
func (b *bed) carrierDeleted() {
	b.t.Helper()
	volume := b.claim("data-web-1", "{.spec.volumeName}")
	carrier := b.Kubectl(b.t, "-n", "holdfast-volumes", "get", "pods", "-l", "holdfast.io/id="+volume, "-o", "name")
	carrier = strings.TrimPrefix(strings.TrimSpace(carrier), "pod/")
	if !strings.Contains(b.eventsOf("web-1"), "VolumeCarried pod holdfast-volumes/"+carrier+" carries volume "+volume) {
		b.t.Errorf("no event names what carries the volume: %s", b.eventsOf("web-1"))
	}
	b.Kubectl(b.t, "-n", "holdfast-volumes", "delete", "pod", carrier)
	b.await("the user of the volume to be told", func(context.Context) error {
		says := b.eventsOf("web-1")
		if !strings.Contains(says, "VolumeCarrierEnded the pod holdfast-volumes/"+carrier) ||
			!strings.Contains(says, "delete the pod that uses the volume") {
			return errors.New(says)
		}
		return nil
	})
	b.Kubectl(b.t, "-n", claims, "delete", "pod", "web-1")
	b.awaitWriters()
}

// eventsOf are the reasons and messages of a pod's events.
func (b *bed) eventsOf(pod string) string {
	b.t.Helper()
	return b.Kubectl(b.t, "-n", claims, "get", "events", "--field-selector=involvedObject.name="+pod, "-o",
		`jsonpath={range .items[*]}{.reason} {.message}{"\n"}{end}`)
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
	// A loop device of a file that is not there any more has the file "/".
	const look = "grep -lx / /sys/block/loop*/loop/backing_file || true"
	if out := b.Node(1).Run(b.t, b.t.Context(), "sh", "-c", look); out != "" {
		b.t.Errorf("loop devices without a file are left: %s", out)
	}
	for _, n := range b.Nodes() {
		out := n.Run(b.t, b.t.Context(), "find", "/var/lib/holdfast/csi", "-mindepth", "1", "-not", "-name",
			"processes")
		if strings.TrimSpace(out) != "" {
			b.t.Errorf("%s: left: %s", n.Name, out)
		}
	}
}

// noKeys looks for the keys of the class where people may read.
func (b *bed) noKeys() {
	b.t.Helper()
	text := b.Kubectl(b.t, "get", "pv,storageclass,volumeattachments", "-o", "yaml") +
		b.Kubectl(b.t, "-n", claims, "get", "pvc,events", "-o", "yaml") +
		b.Kubectl(b.t, "-n", "holdfast-volumes", "get", "pods", "-o", "yaml") +
		b.Kubectl(b.t, "-n", "holdfast-system", "logs", "-l", "app.kubernetes.io/part-of=holdfast", "--tail=-1",
			"--all-containers", "--max-log-requests=99", "--prefix")
	ours := meta.ListOptions{LabelSelector: "holdfast.io/class"}
	secrets, err := b.Client().CoreV1().Secrets(ns).List(b.t.Context(), ours)
	if err != nil || len(secrets.Items) != 2 {
		b.t.Fatalf("the class has %d Secrets: %v", len(secrets.Items), err)
	}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if key := string(s.Data["userKey"]); key == "" || strings.Contains(text, key) {
			b.t.Errorf("the key of %s is empty, or in objects or logs that people may read", s.Name)
		}
	}
}

// poolDeleted deletes the pool, with which its class goes, and its keys.
func (b *bed) poolDeleted() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", ns, "delete", "pool", "volumes")
	b.await("the class and its keys to be gone", func(ctx context.Context) error {
		out, err := b.Try(ctx, "", "get", "storageclass,clients,secrets", "-A", "-l", "holdfast.io/class", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
	out := b.operator("-n", ns, "ceph", "shell", "--", "ceph", "auth", "ls")
	if strings.Contains(out, "client.csi-") {
		b.t.Errorf("Ceph still knows a key of the driver: %s", out)
	}
}
