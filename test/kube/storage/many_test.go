package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// manyPods are ten pods with five volumes each: three images and two directories of a CephFS. Each is Ready when it has
// written to all, and read what it wrote.
const manyPods = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: many}
spec:
  serviceName: many
  replicas: 10
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      terminationGracePeriodSeconds: 1
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
          for d in /v/*; do
            head -c 1M /dev/urandom >$d/f; sync $d/f; (cd $d && sha256sum f >sum && sha256sum -c sum)
          done
          touch /tmp/checked
          while :; do sleep 1; done
        readinessProbe: {exec: {command: [test, -e, /tmp/checked]}, periodSeconds: 1}
        volumeMounts:
        - {name: i0, mountPath: /v/i0}
        - {name: i1, mountPath: /v/i1}
        - {name: i2, mountPath: /v/i2}
        - {name: f0, mountPath: /v/f0}
        - {name: f1, mountPath: /v/f1}
  volumeClaimTemplates:
`

const (
	manyClaims = 50
	manyReady  = 10
)

// TestManyVolumes has fifty claims be made at once, used, and deleted: nothing is left of them in Ceph, in Kubernetes,
// or on nodes.
func TestManyVolumes(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.driver()
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.ceph()+"---"+volumePool+filesystem, "-n", ns)
	b.await("both classes", func(ctx context.Context) error {
		_, err := b.Try(ctx, "", "get", "storageclass", class, "storage-home")
		return err
	})
	b.step("the driver runs, and Ceph has classes for its pool and its filesystem")
	b.Kubectl(t, "create", "namespace", claims)
	text := manyPods
	for _, v := range []string{"i0", "i1", "i2", "f0", "f1"} {
		of := class
		if strings.HasPrefix(v, "f") {
			of = "storage-home"
		}
		text += fmt.Sprintf("  - metadata: {name: %s}\n    spec: {accessModes: [ReadWriteOnce], storageClassName: %s, "+
			"resources: {requests: {storage: 64Mi}}}\n", v, of)
	}
	begun := time.Now()
	b.Apply(t, text, "-n", claims)
	b.counted("claims are bound", manyClaims, begun, b.boundClaims)
	b.counted("pods have written and read", manyReady, begun, b.readyPods)
	b.step("fifty volumes are in use")
	b.carriersMemory()
	begun = time.Now()
	b.Kubectl(t, "-n", claims, "delete", "statefulset", "many")
	b.Kubectl(t, "-n", claims, "delete", "pvc", "--all", "--wait=false")
	b.counted("volumes are deleted", manyClaims, begun, b.deletedVolumes)
	b.awaitNoVolumes()
	b.nothingLeftInCeph()
	b.nothingLeftOfVolumes()
	b.step("nothing is left")
}

// counted waits until there are as many of something, and logs when the first, the middle and the last one came.
func (b *bed) counted(what string, wanted int, begun time.Time, count func(ctx context.Context) (int, error)) {
	b.t.Helper()
	var first, middle time.Duration
	b.await(what, func(ctx context.Context) error {
		n, err := count(ctx)
		if n > 0 && first == 0 {
			first = time.Since(begun)
		}
		if n >= wanted/2 && middle == 0 {
			middle = time.Since(begun)
		}
		if err == nil && n < wanted {
			err = fmt.Errorf("%d of %d", n, wanted)
		}
		return err
	})
	b.t.Logf("%d %s: the first after %.1f s, half after %.1f s, all after %.1f s", wanted, what, first.Seconds(),
		middle.Seconds(), time.Since(begun).Seconds())
}

func (b *bed) boundClaims(ctx context.Context) (n int, err error) {
	all, err := b.Client().CoreV1().PersistentVolumeClaims(claims).List(ctx, meta.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range all.Items {
		if all.Items[i].Status.Phase == core.ClaimBound {
			n++
		}
	}
	return n, nil
}

func (b *bed) readyPods(ctx context.Context) (n int, err error) {
	all, err := b.Client().CoreV1().Pods(claims).List(ctx, meta.ListOptions{LabelSelector: "app=many"})
	if err != nil {
		return 0, err
	}
	for i := range all.Items {
		ready := func(c core.PodCondition) bool { return c.Type == core.PodReady && c.Status == core.ConditionTrue }
		if slices.ContainsFunc(all.Items[i].Status.Conditions, ready) {
			n++
		}
	}
	return n, nil
}

func (b *bed) deletedVolumes(ctx context.Context) (int, error) {
	left, err := b.Client().CoreV1().PersistentVolumes().List(ctx, meta.ListOptions{})
	return manyClaims - len(left.Items), err
}

// nothingLeftInCeph waits until Ceph has no image, no subvolume, and nothing in a trash.
func (b *bed) nothingLeftInCeph() {
	b.t.Helper()
	b.await("images, subvolumes and trash to be gone", func(ctx context.Context) error {
		out, err := b.Operator(ctx, "-n", ns, "ceph", "shell", "--", "bash", "-c",
			"rbd ls volumes && rbd trash ls --all volumes && ceph fs subvolume ls home csi && ceph fs volume info home")
		flat := strings.Join(strings.Fields(out), "")
		if err == nil && (!strings.HasPrefix(flat, "[]{") || !strings.Contains(flat, `"pending_subvolume_deletions":0`)) {
			err = errors.New(out)
		}
		return err
	})
}

// carriersMemory logs how much memory the processes that carry volumes have, by their program.
func (b *bed) carriersMemory() {
	b.t.Helper()
	sum, count := map[string]int{}, map[string]int{}
	for _, n := range b.Nodes() {
		out := n.Run(b.t, b.t.Context(), "sh", "-c", `for p in $(pgrep -x 'qemu-storage-da|ceph-fuse'); do
			echo $(cat /proc/$p/comm) $(awk '/^Pss:/ {print $2}' /proc/$p/smaps_rollup); done`)
		for line := range strings.Lines(out) {
			var program string
			var kib int
			if _, err := fmt.Sscan(line, &program, &kib); err != nil {
				b.t.Fatalf("%q: %v", line, err)
			}
			sum[program] += kib
			count[program]++
		}
	}
	for program, kib := range sum {
		b.t.Logf("%d processes %s have %d MiB each (proportional set size)", count[program], program,
			kib/count[program]>>10)
	}
}
