package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestNoWrites keeps clients from pools, a file system and an object store in one way after the other, and each
// object says why, and what to do.
func TestNoWrites(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1)
	spec.Interval = "1s"
	b.mustApply(spec.YAML() + poolYAML("web") + filesystemYAML("deletionPolicy: Wipe") +
		storeYAML("s3", "gateways: {placement: {count: 1}}"))
	for _, step := range []struct {
		name string
		do   func(*bed)
	}{
		{"commands", (*bed).commandsAreKnown},
		{"flags", (*bed).paused},
		{"quotas", (*bed).quotas},
		{"full OSDs", (*bed).fullOSDs},
		{"a pool by hand", (*bed).poolOfFour},
		{"OSDs that are out and down", (*bed).osdsOutAndDown},
		{"a file system without MDS", (*bed).fsUnserved},
		{"a store without gateways", (*bed).storeUnserved},
		{"a mon that is stopped", (*bed).monOut},
		{"a StorageNode without a host", (*bed).nodeWithoutHost},
		{"a finalizer", (*bed).foreignFinalizer},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do(&bed{t, b.Home})
		})
		b.isOnline("pools", "web")
	}
}

// isOnline waits until a resource is Online without a cause.
func (b *bed) isOnline(kind, name string) {
	b.Helper()
	b.await(kind+" "+name+" to be Online", func() error {
		out, err := b.Holdfast("get", kind, name, "-o", "json")
		if err != nil {
			return err
		}
		var x struct{ Status api.ResourceStatus }
		if err := json.Unmarshal([]byte(out), &x); err != nil {
			return err
		}
		if x.Status.State != api.ResourceOnline || x.Status.Reason != "" {
			return fmt.Errorf("%s, %s: %s", x.Status.State, x.Status.Reason, x.Status.Message)
		}
		return nil
	})
}

func (b *bed) paused() {
	b.ceph("osd", "pause")
	b.tells("pool-paused")
	b.tells("fs-paused")
	b.tells("check-flags")
	b.ceph("health", "mute", "OSDMAP_FLAGS", "1h")
	b.tells("check-muted")
	b.ceph("health", "unmute", "OSDMAP_FLAGS")
	b.ceph("osd", "unset", "pause")
}

func (b *bed) quotas() {
	put := func(n int) {
		b.holdfast(0, "ceph", "shell", "--", "bash", "-c",
			fmt.Sprintf("for i in $(seq %d); do echo x | timeout 10 rados -p web put o$i -; done", n))
	}
	put(9)
	b.mustApply(poolYAML("web", "quota: {maxObjects: 10}"))
	b.tells("pool-quota-near")
	put(10)
	b.tells("pool-quota-reached")
	b.mustApply(poolYAML("web"))
}

func (b *bed) fullOSDs() {
	b.ceph("osd", "set-nearfull-ratio", "0.0001")
	b.tells("pool-osds-nearfull")
	b.ceph("osd", "set-backfillfull-ratio", "0.0002")
	b.ceph("osd", "set-full-ratio", "0.0003")
	b.tells("pool-osds-full")
	b.ceph("osd", "set-full-ratio", "0.95")
	b.ceph("osd", "set-backfillfull-ratio", "0.90")
	b.ceph("osd", "set-nearfull-ratio", "0.85")
}

// poolOfFour makes a pool by hand that wants more copies than there are hosts.
func (b *bed) poolOfFour() {
	b.ceph("config", "set", "global", "mon_pg_stuck_threshold", "3") // and not 60 s
	b.ceph("osd", "pool", "create", "hand", "8", "8", "replicated")
	b.ceph("osd", "pool", "set", "hand", "size", "4")
	b.tells("check-few-hosts")
	b.ceph("config", "set", "mon", "mon_allow_pool_delete", "true")
	b.ceph("osd", "pool", "delete", "hand", "hand", "--yes-i-really-really-mean-it")
}

func (b *bed) osdsOutAndDown() {
	b.ceph("osd", "out", "2")
	b.tells("pool-osd-out")
	b.ceph("osd", "in", "2")
	b.isOnline("pools", "web")
	resume := b.suspend("ceph-osd-2") // 'daemon stop' is refused: three copies need three OSDs
	b.tells("pool-osd-down")
	b.tells("check-osd-down")
	resume()
	b.isOnline("pools", "web")
	b.ceph("osd", "set", "noup")
	b.ceph("osd", "down", "1", "2")
	b.tells("pool-noup")
	b.ceph("osd", "unset", "noup")
}

func (b *bed) fsUnserved() {
	if _, err := b.filesystem(); err != nil {
		b.Fatal(err)
	}
	b.ceph("fs", "fail", "home")
	b.tells("fs-failed")
	b.ceph("fs", "set", "home", "joinable", "true")
	b.isOnline("filesystems", "home")
	s, err := b.filesystem()
	if err != nil {
		b.Fatal(err)
	}
	b.ceph("tell", "mds."+s.Active, "force_readonly")
	b.tells("fs-read-only", "mds.home-a", "mds."+s.Active)
	b.run("daemon", "restart", "mds."+s.Active, "--wait")
	b.isOnline("filesystems", "home")
	var resume []func()
	for _, d := range b.daemons() {
		if d.Spec.Type == "ceph-mds" {
			resume = append(resume, b.suspend(d.Name))
		}
	}
	b.tells("fs-no-mds", "mds.home-a", "mds.home-")
	for _, f := range resume {
		f()
	}
	b.isOnline("filesystems", "home")
}

// stopAll stops all daemons of a type, and returns their short names.
func (b *bed) stopAll(kind string) (names []string) {
	b.Helper()
	for _, d := range b.daemons() {
		if d.Spec.Type == kind {
			names = append(names, strings.TrimPrefix(kind, "ceph-")+"."+d.Spec.ID)
			b.run("daemon", "stop", d.Name, "--wait")
		}
	}
	return names
}

func (b *bed) startAll(names []string) {
	b.Helper()
	for _, name := range names {
		b.run("daemon", "start", name)
	}
}

func (b *bed) storeUnserved() {
	names := b.stopAll(storeType)
	b.tells("store-no-gateway", "rgw.s3-a", names[0])
	b.startAll(names)
	b.isOnline("objectstores", "s3")
}

func (b *bed) monOut() {
	mon := b.daemonOf(1, "ceph-mon")
	b.run("daemon", "stop", mon.Name, "--wait")
	b.tells("quorum-mon-out", "mon.a", "mon."+mon.Spec.ID)
	b.run("daemon", "start", mon.Name)
}

const hostlessYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: n9}\nspec:\n" +
	"  type: ceph\n  cluster: ceph\n  nodeSelector: {kubernetes.io/hostname: h9}\n  devices: [wwn-9]\n"

// applyAnyway declares what cannot be carried out yet.
func (b *bed) applyAnyway(manifest string) {
	b.Helper()
	if out, code := b.apply(1, manifest, "--when-possible"); code != 0 {
		b.Fatalf("apply ended with %d: %s", code, out)
	}
}

func (b *bed) nodeWithoutHost() {
	b.applyAnyway(hostlessYAML)
	b.applyAnyway(poolYAML("fresh"))
	b.tells("pool-node-without-host", "pool/web", "pool/fresh")
	b.run("delete", "storagenode", "n9")
	b.isOnline("pools", "fresh")
}

func (b *bed) foreignFinalizer() {
	kubectlRuns := func(args ...string) {
		b.Helper()
		args = append([]string{"--kubeconfig", "/var/lib/holdfast/admin.kubeconfig"}, args...)
		if out, err := b.Lab.Host(1).Command(b.Context(), kubectl, args...).CombinedOutput(); err != nil {
			b.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	kubectlRuns("patch", "pool", "fresh", "--type", "json", "-p",
		`[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/backup"}]`)
	kubectlRuns("delete", "pool", "fresh", "--wait=false")
	b.tells("pool-foreign-finalizer", "pool/web", "pool/fresh", "pool web", "pool fresh")
	kubectlRuns("patch", "pool", "fresh", "--type", "merge", "-p", `{"metadata":{"finalizers":null}}`)
}
