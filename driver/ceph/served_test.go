package ceph

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/drivertest"
	"github.com/holdfast-storage/holdfast/engine"
)

// servesAll is a world in which something of each kind serves.
func servesAll(t testing.TB) *fakeWorld {
	f := filesystemsOn(4, filesystemOf("home"))
	f.exports = append(f.exports, exportOf("home", "home"), exportOf("more", "home"))
	f.pools = append(f.pools, *replicated("images", 3))
	f.clients = append(f.clients, clientOf("app", api.ClientCaps{"mon": "allow r"}))
	f.objects = append(f.objects, storeOf("s3"), userOf("app", "s3"))
	p := f.settle(t)
	if !p.Done {
		t.Fatalf("%v", decisions(p, api.VerdictWait))
	}
	return f
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Context() context.Context
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// keepsServing runs rounds, and fails if one takes anything from clients.
func (f *fakeWorld) keepsServing(t failer, rounds int, change string) {
	t.Helper()
	for i := range rounds {
		f.agents()
		v, p, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if lost := drivertest.Withdrawn(v, p); len(lost) > 0 {
			t.Fatalf("round %d after %s: %q", i, change, lost)
		}
		if err := f.apply(t.Context(), v, p); err != nil {
			t.Fatal(err)
		}
		f.now = f.now.Add(recheckSoon)
	}
}

// TestServed_filesystem: a filesystem that is exported gets another data pool, whose placement
// groups take their time, and more MDS: its exports stay, and it goes on to serve by its own word.
func TestServed_filesystem(t *testing.T) {
	f := servesAll(t)
	x := f.filesystems[0]
	x.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "cold"}}
	x.Spec.ActiveMDS, x.Generation = 2, 2
	for range 20 {
		f.keepsServing(t, 1, "one more data pool")
		if s := f.filesystems[0].Status; s.State != api.ResourceOnline && s.State != api.ResourceDegraded {
			t.Fatalf("it is %s: %s", s.State, s.Message)
		}
	}
	f.settle(t)
	s := f.filesystems[0].Status
	if s.State != api.ResourceOnline || len(s.Pools) != 3 || !s.Served || !s.Pools[2].Served {
		t.Errorf("%+v", s)
	}
}

// TestServed_again: a filesystem that was lost and is made anew was not served yet.
func TestServed_again(t *testing.T) {
	f := servesAll(t)
	f.exports = nil
	f.ceph.DropFilesystem("home")
	f.settle(t)
	x := f.filesystems[0]
	if s := x.Status; s.State != api.ResourceOffline || !s.Served {
		t.Fatalf("%+v", x.Status)
	}
	metav1.SetMetaDataAnnotation(&x.ObjectMeta, api.AnnotationRecreate, api.LossWord(&x.Status.ResourceStatus))
	f.agents()
	for _, pool := range f.ceph.Pools() {
		if name, _, _ := strings.Cut(pool, ":"); strings.HasPrefix(name, "home-") {
			f.ceph.RenamePool(name, "old-"+name)
		}
	}
	f.round(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceCreating || s.Served {
		t.Errorf("given up: %+v", s)
	}
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || !s.Served {
		t.Errorf("made anew: %+v", s)
	}
}

// TestServed_property: no change of a spec takes anything from the clients of a resource.
func TestServed_property(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		f := servesAll(outer)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			r := rapid.SampledFrom(f.served()).Draw(t, "which")
			r.SetGeneration(r.GetGeneration() + 1)
			change := engine.ResourceObject(r)
			changeSpec(t, r)
			f.keepsServing(t, rapid.IntRange(1, 12).Draw(t, "rounds"), change)
		}
	})
}

// served are the resources that have something of a spec to change.
func (f *fakeWorld) served() (all []api.Resource) {
	all = append(all, f.filesystems[0], f.clients[0], &f.pools[0])
	return append(all, f.objects...)
}

// changeSpec changes a spec in a way that the API takes.
func changeSpec(t *rapid.T, r api.Resource) {
	count := numberOf(rapid.Int32Range(1, 4).Draw(t, "count"))
	size := resource.MustParse(rapid.SampledFrom([]string{"1Gi", "20Gi"}).Draw(t, "size"))
	copies := &api.PoolReplicated{Size: rapid.Int32Range(1, 5).Draw(t, "copies")}
	pattern := rapid.SampledFrom([]string{"", "h*", "h[12]", "h[34]", "x*"}).Draw(t, "placement")
	policy := rapid.SampledFrom([]api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe}).Draw(t, "policy")
	what := rapid.IntRange(0, 4).Draw(t, "what")
	switch x := r.(type) {
	case *api.Filesystem:
		x.Spec.DeletionPolicy = policy
		switch what {
		case 0:
			x.Spec.ActiveMDS, x.Spec.StandbyMDS = *count, count
		case 1:
			n := len(x.Spec.DataPools)
			x.Spec.DataPools = append(x.Spec.DataPools, api.FilesystemDataPool{Name: fmt.Sprintf("data%d", n)})
		case 2:
			x.Spec.Placement.Pattern = pattern
		case 3:
			x.Spec.MetadataPool.Replicated = copies
		case 4:
			x.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "users", Quota: &size}}
		}
	case *api.ObjectStore:
		x.Spec.DeletionPolicy = policy
		switch what {
		case 0, 1:
			x.Spec.Gateways.Placement.Count = count
		case 2:
			x.Spec.Gateways.Placement.Pattern = pattern
		case 3:
			x.Spec.Data.Replicated, x.Spec.Metadata.Replicated = copies, copies
		case 4:
			x.Spec.Gateways.TLS = &api.ObjectStoreTLS{SecretName: "nothing"}
		}
	case *api.ObjectStoreUser:
		x.Spec.Quota.MaxSize, x.Spec.DeletionPolicy = &size, policy
	case *api.Client:
		x.Spec.Caps = api.ClientCaps{"mon": "allow r", "osd": "allow rw"}
	case *api.Pool:
		x.Spec.Replicated, x.Spec.Quota, x.Spec.DeletionPolicy = copies, api.PoolQuota{MaxBytes: &size}, policy
	}
}

// TestServed_node: a StorageNode that gets a device which there is not keeps the NFS server that is on its host.
func TestServed_node(t *testing.T) {
	f := servesAll(t)
	host := f.exports[0].Status.Node
	for i := range f.nodes {
		if f.nodes[i].Spec.NodeSelector[api.LabelHostname] == host {
			f.nodes[i].Spec.Devices = append(f.nodes[i].Spec.Devices, "wwn-nowhere")
			f.nodes[i].Generation++
		}
	}
	f.keepsServing(t, 20, "a device that there is not")
	if s := f.exports[0].Status; s.State != api.ResourceOnline || s.Node != host {
		t.Errorf("%+v", s)
	}
}
