// Command volumes measures volumes for pods: the time from a claim and a pod that uses it to Ready, beside a pod
// without a volume, and what is written to a volume in a second, beside the storage system's own client:
// 'make bench-volumes'. What is compared is measured in turns, in one run.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/kube"
)

// rounds is how often each is measured. The median counts.
const rounds = 5

func main() {
	hosts.MaybeInit()
	if err := hosts.Script(os.Stdout, bench); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// way is one of having a volume.
type way struct{ name, class string }

var ways = []way{{"no volume", ""}, {"RBD", "storage-volumes"}, {"CephFS", "storage-home"}}

func bench(t hosts.T) {
	k := kube.New(t, kube.Options{Nodes: 3, Disks: 1, DiskSize: 8 << 30})
	k.Install(t)
	prepare(t, k)
	times := map[string][]time.Duration{}
	for range rounds {
		for _, w := range ways {
			times[w.name] = append(times[w.name], ready(t, k, w))
			remove(t, k)
		}
	}
	without := median(times["no volume"])
	for _, w := range ways {
		d := median(times[w.name])
		fmt.Printf("claim and pod to Ready, %s: %.1f s, %.1f s more than without\n", w.name, d.Seconds(),
			(d - without).Seconds())
	}
	for _, w := range ways[1:] {
		ready(t, k, w)
		compare(t, k, w)
		remove(t, k)
	}
}

// prepare installs the driver, and makes a pool and a filesystem with a class each.
func prepare(t hosts.T, k *kube.Cluster) {
	manifests, err := os.ReadFile("deploy/csi/csi.yaml")
	if err != nil {
		t.Fatalf("bench: %v", err)
	}
	k.Apply(t, string(manifests))
	k.AwaitPods(t, "holdfast-system", "app.kubernetes.io/name=holdfast-csi-controller", 2)
	k.AwaitPods(t, "holdfast-system", "app.kubernetes.io/name=holdfast-csi-node", 3)
	spec := home.Spec{Mons: 3, Mgrs: 2, DeletionPolicy: "Wipe", Config: home.Quick, Devices: map[string][]string{}}
	for _, n := range k.Nodes() {
		spec.Devices[n.Name] = []string{n.Disk(0).ID()}
	}
	k.Kubectl(t, "create", "namespace", "storage")
	k.Kubectl(t, "create", "namespace", "apps")
	k.Apply(t, spec.YAML()+kinds, "-n", "storage")
	await(t, "the classes", func(ctx context.Context) error {
		_, err := k.Try(ctx, "", "get", "storageclass", ways[1].class, ways[2].class)
		return err
	})
}

const kinds = `---
apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: volumes}
spec: {cluster: ceph, application: rbd}
---
apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: home}
spec: {cluster: ceph, deletionPolicy: Wipe}
`

// ready is the time from the claim and its pod to a pod that is Ready.
func ready(t hosts.T, k *kube.Cluster, w way) time.Duration {
	text, volume := "", "emptyDir: {}"
	if w.class != "" {
		text = fmt.Sprintf(claim, w.class)
		volume = "persistentVolumeClaim: {claimName: one}"
	}
	begun := time.Now()
	k.Apply(t, text+fmt.Sprintf(pod, volume), "-n", "apps")
	await(t, "the pod", func(ctx context.Context) error {
		out, err := k.Try(ctx, "", "-n", "apps", "get", "pod", "one", "-o",
			`jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			err = errors.New(out)
		}
		return err
	})
	return time.Since(begun)
}

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: one}
spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: 2Gi}}}
---`

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {kubernetes.io/hostname: h1}
  containers:
  - name: one
    image: localhost/holdfast:dev
    imagePullPolicy: IfNotPresent
    command: [sleep, infinity]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, %s}]
`

func remove(t hosts.T, k *kube.Cluster) {
	k.Kubectl(t, "-n", "apps", "delete", "pod,pvc", "one", "--ignore-not-found")
	await(t, "the volume to be gone", func(ctx context.Context) error {
		out, err := k.Try(ctx, "", "get", "pv", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}

// compare writes by the pod's volume, and by Ceph's own client, in turns.
func compare(t hosts.T, k *kube.Cluster, w way) {
	plain := byLibrbd
	if w.name == "CephFS" {
		plain = byHand(t, k)
	}
	var volume, client []float64
	for range rounds {
		out := k.Kubectl(t, "-n", "apps", "exec", "one", "--", "bash", "-c", write("/data/f"))
		volume = append(volume, rateOf(t, out))
		client = append(client, plain(t, k))
	}
	v, c := median(volume), median(client)
	fmt.Printf("%s, %d MiB written and synced: volume %.0f MiB/s, Ceph's own client %.0f MiB/s, ratio %.2f\n", w.name,
		mebibytes, v, c, v/c)
}

const mebibytes = 256

func write(path string) string {
	return fmt.Sprintf("dd if=/dev/zero of=%s bs=4M count=%d oflag=direct conv=fsync,notrunc 2>&1", path, mebibytes/4)
}

var (
	ofDD    = regexp.MustCompile(`copied, ([0-9.e-]+) s`)
	ofBench = regexp.MustCompile(`bytes/sec: ([0-9.]+) ([KMG])iB/s`)
)

// rateOf is what dd says of its speed, in MiB/s.
func rateOf(t hosts.T, out string) float64 {
	found := ofDD.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("bench: dd says %q", out)
	}
	return mebibytes / number(t, found[1])
}

// byLibrbd writes to an image by librbd, in the same steps.
func byLibrbd(t hosts.T, k *kube.Cluster) float64 {
	out := operator(t, k, "bash", "-c", fmt.Sprintf("rbd info volumes/plain >/dev/null 2>&1 || "+
		"rbd create --size 2G volumes/plain; "+
		"rbd bench --io-type write --io-size 4M --io-threads 1 --io-total %dM volumes/plain", mebibytes))
	found := ofBench.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("bench: rbd bench says %q", out)
	}
	return number(t, found[1]) * map[string]float64{"K": 1. / 1024, "M": 1, "G": 1024}[found[2]]
}

func number(t hosts.T, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("bench: %v", err)
	}
	return n
}

// byHand mounts the filesystem on the pod's node with ceph-fuse, and returns what writes to it.
func byHand(t hosts.T, k *kube.Cluster) func(hosts.T, *kube.Cluster) float64 {
	keyring := operator(t, k, "ceph", "auth", "get-or-create", "client.bench", "mon", "allow r", "mds", "allow rw",
		"osd", "allow rw tag cephfs data=home", "-f", "plain")
	conf := operator(t, k, "ceph", "config", "generate-minimal-conf", "-f", "plain")
	n := k.Node(1)
	n.Run(t, context.Background(), "sh", "-c", "umask 077; mkdir -p /tmp/plain/mnt\n"+
		"cat >/tmp/plain/conf <<'.'\n"+conf+"\n.\ncat >/tmp/plain/keyring <<'.'\n"+keyring+"\n.\n"+
		"ceph-fuse -c /tmp/plain/conf -k /tmp/plain/keyring -n client.bench /tmp/plain/mnt")
	t.Cleanup(func() { n.Run(t, context.Background(), "umount", "/tmp/plain/mnt") })
	return func(t hosts.T, _ *kube.Cluster) float64 {
		return rateOf(t, n.Run(t, context.Background(), "bash", "-c", write("/tmp/plain/mnt/f")))
	}
}

func operator(t hosts.T, k *kube.Cluster, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := k.Operator(ctx, append([]string{"-n", "storage", "ceph", "shell", "--"}, args...)...)
	if err != nil {
		t.Fatalf("bench: %v", err)
	}
	return out
}

func await(t hosts.T, what string, check func(context.Context) error) {
	home.AwaitFor(t, 5*time.Minute, what, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return check(ctx)
	})
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
