package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/torus"
)

// TestSideBySide runs Ceph, GlusterFS and Torus on the same three hosts, each in a namespace of its own: all become ready, and when one
// is deleted with all of its data, the processes of the others are the same as before and go on serving.
func TestSideBySide(t *testing.T) {
	begin(t)
	programs, err := torus.Programs(t.Context(), t.TempDir(), "../..", torus.StandIn)
	if err != nil {
		t.Fatal(err)
	}
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 2, Share: []string{programs}, Env: []string{"TORUS_BIN=" + programs}})
	b := &bed{t, home.Start(t, lab, binary)}
	ceph := home.Spec{Mons: 3, Mgrs: 1, DeletionPolicy: "Wipe", Config: home.Quick, Devices: map[string][]string{}}
	files, ring := glusterPool+glusterVolume("data", "300Mi", "replicate: {count: 3}"), torusSpec
	for _, h := range lab.Hosts() {
		files += glusterNode(h, 1)
		ceph.Devices[h.Name] = []string{h.Disk(1).ID()}
		ring += torusNode(h)
	}
	specs := map[string]string{"blocks": inNamespace("blocks", ceph.YAML()), "files": inNamespace("files", files), "ring": inNamespace("ring", ring)}
	for namespace, spec := range specs {
		lab.Host(1).Run(t, t.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "create", "namespace", namespace)
		b.applies(1, spec)
	}
	b.await("all clusters to be online", b.online(3))
	c := b.mountVolume(1, "data", "-n", "files")

	for _, namespace := range []string{"blocks", "ring"} {
		want := b.allPIDs()
		maps.DeleteFunc(want, func(name string, _ int32) bool { return strings.HasPrefix(name, namespace+"/") })
		b.Wipe(t, specs[namespace])
		delete(specs, namespace)
		b.await("nothing else to be left of "+namespace, func() error {
			if got := b.allPIDs(); !maps.Equal(got, want) {
				return fmt.Errorf("daemons are %v, want %v", got, want)
			}
			return nil
		})
		c.goesOn(t)
		b.await("the others to be online", b.online(len(specs)))
	}
	if left := b.cephProcesses(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	c.end(t)
	b.Wipe(t, specs["files"])
	b.await("nothing to be left", func() error {
		if left := b.allPIDs(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	if left := b.glusterProcesses(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	b.AwaitFreeDisks(t)
}

// inNamespace puts all objects of a manifest into a namespace.
func inNamespace(namespace, manifest string) string {
	return strings.ReplaceAll(manifest, "metadata: {", "metadata: {namespace: "+namespace+", ")
}

// online checks that there are so many clusters, and that all of them are ONLINE.
func (b *bed) online(count int) func() error {
	return func() error {
		all := list[api.StorageStatus](b, "storagestatuses", "-A")
		for _, s := range all {
			if s.Status.Status != api.StorageOnline {
				return fmt.Errorf("%s/%s is %s: %s", s.Namespace, s.Name, s.Status.Status, s.Status.Message)
			}
		}
		if len(all) != count {
			return fmt.Errorf("%d clusters have a status", len(all))
		}
		return nil
	}
}

// allPIDs are the processes of the daemons of all namespaces.
func (b *bed) allPIDs() map[string]int32 {
	b.Helper()
	pids := map[string]int32{}
	for _, d := range list[api.Daemon](b, "daemons", "-A") {
		pids[d.Namespace+"/"+d.Name] = d.Status.PID
	}
	return pids
}
