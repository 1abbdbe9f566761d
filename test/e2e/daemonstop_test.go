package e2e

import (
	"fmt"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestDaemonStop stops an OSD and a mon by a user's word: they stay stopped, a second one of each is refused by
// Ceph's word, and they run again when they are started. Then a service is restarted, one daemon after the
// other.
func TestDaemonStop(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1)
	b.mustApply(spec.YAML())
	b.ceph("osd", "pool", "create", "images", "8")
	b.ceph("osd", "pool", "application", "enable", "images", "rbd")
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	refusals := map[string]string{"osd": "would become offline", "mon": "not enough monitors would be available"}
	for _, kind := range []string{"osd", "mon"} {
		first, second := b.daemonOf(1, "ceph-"+kind), b.daemonOf(2, "ceph-"+kind)
		b.run("daemon", "stop", first.Name, "--wait")
		b.isStopped(first.Name)
		b.refused("daemon stop "+second.Name, refusals[kind])
		b.run("orchestrate", "ceph")
		b.isStopped(first.Name)
		b.run("daemon", "start", kind+"."+first.Spec.ID)
		b.await(first.Name+" to run", func() error {
			if d := b.daemon(first.Name); d.Status.State != api.DaemonRunning {
				return fmt.Errorf("it is %s: %s", d.Status.State, d.Status.Message)
			}
			return nil
		})
		b.await("Ceph to be well", func() error { return b.health(3, 3) })
	}

	before := b.pids()
	b.mustApply("apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: osds, namespace: default}\n" +
		"spec: {kind: ceph.restart-service, target: service/osd, cluster: ceph}\n")
	after := b.pids()
	for _, d := range b.daemons() {
		if restarted := before[d.Name] != after[d.Name]; restarted != (d.Spec.Type == "ceph-osd") {
			t.Errorf("%s was restarted: %v", d.Name, restarted)
		}
	}
	b.await("Ceph to be well at the end", func() error { return b.health(3, 3) })
	b.noOrphans()
}

// isStopped checks that a daemon was stopped by a user's word.
func (b *bed) isStopped(name string) {
	b.Helper()
	d := b.daemon(name)
	if d.Spec.State != api.WantStopped || d.Status.State != api.DaemonStopped || d.Annotations[api.AnnotationStop] == "" {
		b.Errorf("%s is wanted %s and is %s: %v", name, d.Spec.State, d.Status.State, d.Annotations)
	}
}
