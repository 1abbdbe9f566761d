package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/tier"
)

// services is what a Ceph cluster offers beside pools: two MDS, two gateways, a server of NFS and a
// daemon that mirrors.
const services = `---
apiVersion: holdfast.io/v1alpha1
kind: Filesystem
metadata: {name: home}
spec: {cluster: ceph, deletionPolicy: Wipe}
---
apiVersion: holdfast.io/v1alpha1
kind: Client
metadata: {name: desktop}
spec: {cluster: ceph, caps: {mon: allow r, mds: allow rw, osd: allow rw tag cephfs data=home}}
---
apiVersion: holdfast.io/v1alpha1
kind: NFSExport
metadata: {name: home}
spec: {cluster: ceph, filesystem: home, squash: None}
---
apiVersion: holdfast.io/v1alpha1
kind: ObjectStore
metadata: {name: s3}
spec: {cluster: ceph, deletionPolicy: Wipe}
---
apiVersion: holdfast.io/v1alpha1
kind: ObjectStoreUser
metadata: {name: app}
spec: {cluster: ceph, store: s3, deletionPolicy: Wipe}
---
apiVersion: holdfast.io/v1alpha1
kind: Pool
metadata: {name: vms}
spec: {cluster: ceph, application: rbd, deletionPolicy: Wipe}
---
apiVersion: holdfast.io/v1alpha1
kind: RBDMirror
metadata: {name: dr}
spec: {cluster: ceph, pools: [{name: vms}]}
`

// servicePods counts the pods of the services by type, cephPods those of the cluster itself.
var servicePods = map[string]int{"ceph-mds": 2, "ceph-rgw": 2, "nfs-ganesha": 1, "ceph-rbd-mirror": 1}

const cephPods = 8

// TestServices has a Ceph cluster in pods serve a filesystem, objects and NFS, and mirror images:
// each is used by a client on a node, comes back when its pod is deleted, may do no more than it
// needs, and leaves nothing. One node has a host name and a label that are not its Node's name.
func TestServices(t *testing.T) {
	tier.Full(t)
	b := newBed(t, 1)
	b.Kubectl(t, "create", "namespace", ns)
	b.Apply(t, b.elsewhere(b.ceph())+services, "-n", ns)
	b.servicesReady()
	b.step("Ceph and all its services are Ready")
	b.privileges(nil)
	b.clients()
	b.used("before")
	b.step("clients of each service have written and read")
	b.servicesDeleted()
	b.step("all pods and resources are Ready again")
	b.used("after")
	b.read("before")
	b.step("clients of each service have written and read again")
	b.keptPort()
	b.step("the gateways listen at a port that the kernel keeps for root")
	b.servicesGone()
	b.step("the services are deleted, and nothing of them is left")
	b.wiped()
	b.Uninstall(t)
	b.step("the cluster is wiped")
}

// elsewhere gives the second node a host name and a label that are not its Node's name, as some
// platforms do, and returns the manifest with that label.
func (b *bed) elsewhere(manifest string) string {
	b.t.Helper()
	b.Node(2).Run(b.t, b.t.Context(), "hostname", "machine2")
	b.Kubectl(b.t, "label", "node", "h2", "kubernetes.io/hostname=label2", "--overwrite")
	out := strings.Replace(manifest, "kubernetes.io/hostname: h2", "kubernetes.io/hostname: label2", 1)
	if out == manifest {
		b.t.Fatalf("no node has the label of h2:\n%s", manifest)
	}
	return out
}

// servicesReady waits until all resources are Ready, and all pods.
func (b *bed) servicesReady() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", ns, "wait", "filesystem/home", "client/desktop", "nfsexport/home", "objectstore/s3",
		"objectstoreuser/app", "pool/vms", "rbdmirror/dr", "--for=condition=Ready", "--timeout=3m")
	count := cephPods
	for _, n := range servicePods {
		count += n
	}
	b.awaitReady(ns, count)
	b.awaitStatus(ns)
}

// podOf is the first pod of a type.
func (b *bed) podOf(kind string) string {
	b.t.Helper()
	var names []string
	for name, pod := range b.Pods(b.t, ns) {
		if pod.Labels["holdfast.io/type"] == kind {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		b.t.Fatalf("there is no pod of type %s", kind)
	}
	return slices.Min(names)
}

// field is a field of an object of the namespace.
func (b *bed) field(object, path string) string {
	b.t.Helper()
	return b.Kubectl(b.t, "-n", ns, "get", object, "-o", "jsonpath={"+path+"}")
}

// servicesDeleted deletes one pod of each service: another container runs in its place.
func (b *bed) servicesDeleted() {
	b.t.Helper()
	before, deleted := b.lives(ns), []string{}
	for kind := range servicePods {
		name := b.podOf(kind)
		if active := b.field("filesystem/home", ".status.active"); kind == "ceph-mds" {
			name = "ceph-mds-" + active
		}
		deleted = append(deleted, name)
	}
	b.Kubectl(b.t, append([]string{"-n", ns, "delete", "pod"}, deleted...)...)
	b.step("one pod of each service has ended")
	b.servicesReady()
	for name, id := range b.lives(ns) {
		if other := slices.Contains(deleted, name); (before[name] != id) != other {
			b.t.Errorf("%s has container %s, and had %s", name, id, before[name])
		}
	}
}

// keptPort has the gateways listen at port 80: they get the right for that, and no other.
func (b *bed) keptPort() {
	b.t.Helper()
	b.Kubectl(b.t, "-n", ns, "patch", "objectstore", "s3", "--type=merge", "-p", `{"spec":{"gateways":{"port":80}}}`)
	b.await("the gateways to listen at port 80", func(context.Context) error {
		at := b.field("objectstore/s3", ".status.state}:{.status.endpoints[*]")
		if !strings.HasPrefix(at, "Online:http") || strings.Contains(at, "7480") {
			return errors.New(at)
		}
		return nil
	})
	b.servicesReady()
	b.privileges(map[string]string{"ceph-rgw": netBindService})
	b.s3Put("port")
}

// servicesGone deletes the services: their pods, keys, pools and directories are gone.
func (b *bed) servicesGone() {
	b.t.Helper()
	b.Node(1).Run(b.t, b.t.Context(), "umount", mounted)
	rb := b.s3(0, "rb", "--recursive", "--force", "s3://bucket")
	b.Node(1).Run(b.t, b.t.Context(), rb[0], rb[1:]...)
	b.Kubectl(b.t, "-n", ns, "delete",
		"rbdmirrors,nfsexports,objectstoreusers,objectstores,filesystems,clients,pools", "--all", "--timeout=2m")
	for name, pod := range b.Pods(b.t, ns) {
		if kind := pod.Labels["holdfast.io/type"]; servicePods[kind] > 0 {
			b.t.Errorf("pod %s is left", name)
		}
	}
	b.awaitReady(ns, cephPods)
	left := strings.Join([]string{
		b.Kubectl(b.t, "-n", ns, "get", "secrets,daemons", "-o", "name"),
		b.operator("-n", ns, "ceph", "shell", "--", "sh", "-c", "ceph osd pool ls; ceph fs ls; ceph auth ls | "+
			"grep '^[a-z]' | grep -v bootstrap"),
		strings.Join(b.left(), "\n"),
	}, "\n")
	for _, word := range []string{
		"mds.", "mds-", "rgw", "ganesha", "client.nfs", "mirror-", "desktop", "home", "s3", "vms",
	} {
		if strings.Contains(left, word) {
			b.t.Errorf("%q is left in:\n%s", word, left)
		}
	}
}
