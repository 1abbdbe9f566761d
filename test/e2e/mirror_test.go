package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// site is one of two clusters that mirror: each has a namespace, hosts and a mon of its own.
type site struct {
	namespace string
	host      int
}

var sites = []site{{"near", 1}, {"far", 2}}

// TestMirror has an image of one cluster mirrored to another one by snapshots: the copy is equal, follows what is written later, also after an rbd-mirror was
// killed, and is taken out of its role for the other one's. What cannot be is refused.
func TestMirror(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 2, Disks: 1})
	b := &bed{t, home.Start(t, lab, binary)}
	quick := maps.Clone(home.Quick)
	// An rbd-mirror looks every 30 s whether a pool has another peer, and waits as long for one that is gone.
	maps.Copy(quick, map[string]string{"rbd_mirror_pool_replayers_refresh_interval": "1", "rbd_mirror_leader_heartbeat_interval": "1", "rbd_mirror_image_state_check_interval": "2", "osd_pool_default_pg_autoscale_mode": "off"})
	var specs []string
	all := "" // both come up at the same time
	for _, s := range sites {
		lab.Host(1).Run(t, t.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "create", "namespace", s.namespace)
		host := lab.Host(s.host)
		cluster := home.Spec{Mons: 1, Mgrs: 1, DeletionPolicy: "Wipe", Interval: "2s", Config: quick, Devices: map[string][]string{host.Name: {host.Disk(0).ID()}}}
		specs = append(specs, inNamespace(s.namespace, cluster.YAML()))
		all += "---\n" + specs[len(specs)-1] + inNamespace(s.namespace, mirrorPool)
	}
	b.mustApply(all)
	near, far := sites[0], sites[1]
	b.applySite(near, mirrorYAML(""), 0)
	if out := b.applySite(far, mirrorYAML("near"), 3); !strings.Contains(out, "Secret near of type holdfast.io/rbd-mirror-token does not exist") {
		t.Errorf("a token that is not there: %s", out)
	}
	token := b.run("-n", near.namespace, "ceph", "mirror-token", "near")
	b.applySite(far, token+"\n---\n"+mirrorYAML("near"), 0)

	b.rbd(near, "create", "--size", "32M", "vms/disk")
	b.rbd(near, "bench", "--io-type", "write", "--io-total", "4M", "--io-size", "256K", "vms/disk")
	b.rbd(near, "mirror", "image", "enable", "vms/disk", "snapshot")
	b.awaitCopy("the copy", near, far)
	b.await("the mirroring to be told", b.mirrorIs(far, func(s api.RBDMirrorStatus) bool {
		return s.Daemons == "1/1" && len(s.Pools) == 1 && s.Pools[0].Health == "OK" && strings.Contains(s.Pools[0].Images, "1 replaying")
	}))

	b.unscheduled(near)

	pid := int(b.mirrorDaemon(far).Status.PID)
	lab.Host(far.host).Run(t, t.Context(), "kill", "-9", strconv.Itoa(pid))
	b.rbd(near, "bench", "--io-type", "write", "--io-total", "2M", "--io-size", "128K", "--io-pattern", "rand", "vms/disk")
	b.rbd(near, "mirror", "image", "snapshot", "vms/disk")
	b.awaitCopy("the copy after rbd-mirror was killed", near, far)
	if now := int(b.mirrorDaemon(far).Status.PID); now == pid {
		t.Error("no other rbd-mirror runs")
	}
	start := time.Now()
	b.run("-n", far.namespace, "delete", "rbdmirror", "dr", "--wait")
	t.Logf("deleted after %.1f s", time.Since(start).Seconds())
	for _, entity := range []string{"client.rbd-mirror.dr-a", "client.rbd-mirror-peer"} {
		if out, err := b.Holdfast("-n", far.namespace, "ceph", "shell", "--", "ceph", "auth", "get", entity); err == nil {
			t.Errorf("the key of %s is left: %s", entity, out)
		}
	}
	b.takenAway(near, far, specs[0])
}

// unscheduled takes the interval of a pool's snapshots out, and with it the schedule.
func (b *bed) unscheduled(s site) {
	b.Helper()
	schedule := func() string {
		return b.run("-n", s.namespace, "ceph", "shell", "--", "ceph", "rbd", "mirror", "snapshot", "schedule", "list", "vms/")
	}
	if got := schedule(); !strings.Contains(got, `"1h"`) {
		b.Errorf("snapshots are made by %s", got)
	}
	b.applySite(s, strings.Replace(mirrorYAML(""), ", snapshotInterval: 1h", "", 1), 0)
	b.await("no snapshot to be scheduled any more", func() error {
		if got := schedule(); strings.Contains(got, "interval") {
			return errors.New(got)
		}
		return nil
	})
}

// takenAway deletes clusters alone, while pools and what mirrors them are still declared: no process and no key is left, disks are free, and what is declared
// is made anew when the cluster is declared again.
func (b *bed) takenAway(near, far site, spec string) {
	b.Helper()
	start := time.Now()
	for _, s := range []site{far, near} {
		b.Wipe(b, inNamespace(s.namespace, "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: ceph}\nspec: {type: ceph}\n"))
	}
	b.AwaitFreeDisks(b)
	if left, processes := b.allPIDs(), b.cephProcesses(); len(left)+len(processes) > 0 {
		b.Errorf("left are the daemons %v and the processes %q", left, processes)
	}
	for _, s := range list[metav1.PartialObjectMetadata](b, "secrets", "-A") {
		if strings.HasPrefix(s.Name, "ceph-key-") {
			b.Errorf("Secret %s/%s is left", s.Namespace, s.Name)
		}
	}
	b.Logf("taken away after %.1f s", time.Since(start).Seconds())
	b.mustApply(spec)
	b.await("what is still declared to be made anew", b.mirrorIs(near, func(s api.RBDMirrorStatus) bool { return s.Daemons == "1/1" }))
}

const mirrorPool = "---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: vms}\nspec: {cluster: ceph, application: rbd, replicated: {size: 1}, deletionPolicy: Wipe}\n"

// mirrorYAML is an RBDMirror that fetches from the cluster of a Secret.
func mirrorYAML(peer string) string {
	return "apiVersion: holdfast.io/v1alpha1\nkind: RBDMirror\nmetadata: {name: dr}\nspec: {cluster: ceph, pools: [{name: vms, peerSecret: \"" + peer + "\", snapshotInterval: 1h}]}\n"
}

// applySite applies a manifest in a site's namespace, and wants a code.
func (b *bed) applySite(s site, manifest string, want int) string {
	b.Helper()
	start := time.Now()
	out, code := b.apply(1, inNamespace(s.namespace, manifest), "--wait", "--timeout", "60s")
	b.Logf("in %s after %.1f s", s.namespace, time.Since(start).Seconds())
	if code != want {
		b.Fatalf("in %s holdfast apply ended with %d, not %d:\n%s", s.namespace, code, want, out)
	}
	return out
}

func (b *bed) rbd(s site, args ...string) string {
	b.Helper()
	return b.run(append([]string{"-n", s.namespace, "ceph", "shell", "--", "rbd"}, args...)...)
}

// awaitCopy waits until the image of the other site has what that of the first one has.
func (b *bed) awaitCopy(what string, from, to site) {
	b.Helper()
	sum := func(s site) (string, error) {
		return b.Holdfast("-n", s.namespace, "ceph", "shell", "--", "sh", "-c", "rbd export --no-progress vms/disk - | sha256sum")
	}
	want, err := sum(from)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	b.await(what, func() error {
		got, err := sum(to)
		if err == nil && got != want {
			err = errors.New("it differs")
		}
		return err
	})
	b.Logf("%s was equal after %.1f s", what, time.Since(start).Seconds())
}

func (b *bed) mirrorIs(s site, check func(api.RBDMirrorStatus) bool) func() error {
	return func() error {
		out, err := b.Holdfast("-n", s.namespace, "get", "rbdmirrors", "dr", "-o", "json")
		var m api.RBDMirror
		if err == nil {
			err = json.Unmarshal([]byte(out), &m)
		}
		if err == nil && (m.Status.State != api.ResourceOnline || !check(m.Status)) {
			err = fmt.Errorf("it is %+v", m.Status)
		}
		return err
	}
}

func (b *bed) mirrorDaemon(s site) api.Daemon {
	b.Helper()
	for _, d := range list[api.Daemon](b, "daemons", "-n", s.namespace) {
		if d.Spec.Type == "ceph-rbd-mirror" {
			return d
		}
	}
	b.Fatal("no rbd-mirror")
	return api.Daemon{}
}
