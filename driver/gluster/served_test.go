package gluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/drivertest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// TestServed_property: no change of a Volume, an export, a StorageNode or an option of the cluster
// takes an export from its clients.
func TestServed_property(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		w := newNFSWorld(outer)
		w.export("e", "v")
		w.export("f", "v")
		w.settle()
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			change := w.changeSpec(t)
			for i := range rapid.IntRange(1, 8).Draw(t, "rounds") {
				w.agents()
				w.world.agents()
				p := w.round()
				if lost := drivertest.Withdrawn(w.seen, p); len(lost) > 0 {
					t.Fatalf("round %d after %s: %q", i, change, lost)
				}
				w.world.apply(withoutNFS(p))
				w.gluster.heal()
				w.gluster.move()
			}
		}
	})
}

// changeSpec changes what is declared in a way that the API takes.
func (w *nfsWorld) changeSpec(t *rapid.T) (what string) {
	v, n := &w.vol("v").Spec, &w.nodes[rapid.IntRange(0, 2).Draw(t, "node")]
	w.vol("v").Generation++
	all := []string{"size", "options", "auth", "durability", "device", "excluded", "cluster", "pseudo"}
	switch what = rapid.SampledFrom(all).Draw(t, "what"); what {
	case "size":
		v.Size = resource.MustParse(rapid.SampledFrom([]string{"5Gi", "20Gi", "900Gi"}).Draw(t, "size"))
	case "options":
		v.Options = api.VolumeOptions{"performance.cache-size": "64MB"}
	case "auth":
		v.Auth.Allow = []string{"192.0.2.1"}
	case "durability":
		v.Durability = &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: 2}}
	case "device":
		n.Generation, n.Spec.Devices = n.Generation+1, append(n.Spec.Devices, "wwn-nowhere")
	case "excluded":
		n.Generation, n.Spec.Exclude = n.Generation+1, []string{"nothing"}
	case "cluster":
		w.cluster.Generation++
		w.cluster.Spec.GlusterFS = &api.GlusterFSSpec{Options: api.VolumeOptions{"network.ping-timeout": "20"}}
	case "pseudo":
		w.exports["e"].Generation++
		w.exports["e"].Spec.Pseudo = "/f"
	}
	return what
}

// TestServed_glusterdDown: the NFS server stays where it is while the glusterd of its node does not run.
func TestServed_glusterdDown(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	w.daemons["c-glusterd-n1"].Status.State = api.DaemonBackOff
	p := w.round()
	if lost := drivertest.Withdrawn(w.seen, p); len(lost) > 0 || len(p.Remove) > 0 {
		t.Errorf("%q, removed %v", lost, p.Remove)
	}
	w.settle()
	w.wants("e", api.ResourceOnline, "", "c-nfs-n1")
	w.gluster.volumes["v"].state = glusterd.VolumeStopped
	w.world.agents()
	w.settle()
	w.wants("e", api.ResourceOffline, "volume v is Offline", "c-nfs-n1")
}

// withoutNFS is what a plan has beside NFS, which the world does not know.
func withoutNFS(p *engine.Plan) *engine.Plan {
	rest := *p
	rest.Daemons = slices.DeleteFunc(slices.Clone(p.Daemons), func(c engine.DaemonChange) bool {
		return c.Daemon.Spec.Type == ganesha.Type
	})
	rest.Commands = slices.DeleteFunc(slices.Clone(p.Commands), func(c engine.Command) bool {
		return c.Verb == ganesha.VerbReload
	})
	rest.Resources = slices.DeleteFunc(slices.Clone(p.Resources), func(c engine.ResourceChange) bool {
		_, export := c.Resource.(*api.NFSExport)
		return export
	})
	rest.Remove = nil
	return &rest
}

// TestServed_pseudo: an export that is served keeps its pseudo path when an older one wants it.
func TestServed_pseudo(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.export("f", "v")
	w.settle()
	w.exports["e"].Generation++
	w.exports["e"].Spec.Pseudo = "/f"
	w.settle()
	w.wants("f", api.ResourceOnline, "", "c-nfs-n1")
	w.wants("e", api.ResourcePending, "NFSExport f has the pseudo path /f already", "c-nfs-n1")
}

// TestServed_again: an export that is declared again has the number that it had. While its volume is being
// deleted it has none, and the volume does not wait for it.
func TestServed_again(t *testing.T) {
	w := newNFSWorld(t)
	w.export("e", "v")
	w.settle()
	id := w.exports["e"].Status.ExportID
	w.export("e", "v").UID = "another"
	w.settle()
	if got := w.exports["e"].Status.ExportID; got != id {
		t.Errorf("it was %d, and is %d", id, got)
	}
	w.export("e", "v")
	w.vol("v").DeletionTimestamp = &metav1.Time{Time: w.now}
	for range 3 {
		w.agents()
		w.round()
		if s := w.exports["e"].Status; s.ExportID != 0 || s.State != api.ResourcePending {
			t.Fatalf("%+v", s)
		}
	}
	if text := w.vol("v").Status.Message; strings.Contains(text, "NFSExport") {
		t.Error(text)
	}
}
