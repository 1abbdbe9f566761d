package ceph

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

func disturbStores(t *rapid.T, f *fakeWorld) {
	if len(f.objects) == 0 {
		return
	}
	o := f.objects[rapid.IntRange(0, len(f.objects)-1).Draw(t, "object")]
	o.SetGeneration(o.GetGeneration() + 1)
	event := rapid.IntRange(0, 4).Draw(t, "store event")
	if event == 4 {
		now := metav1.NewTime(f.now)
		o.SetDeletionTimestamp(&now)
	}
	switch x := o.(type) {
	case *api.ObjectStore:
		x.Spec.DeletionPolicy = rapid.SampledFrom([]api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe}).Draw(t, "policy")
		x.Spec.Gateways.Port = rapid.SampledFrom([]int32{7480, 7481}).Draw(t, "port")
		x.Spec.Gateways.Placement.Count = numberOf(rapid.Int32Range(1, 3).Draw(t, "gateways"))
	case *api.ObjectStoreUser:
		if u := f.s3["app"]; u != nil {
			u.buckets = []string{"b"}[:rapid.IntRange(0, 1).Draw(t, "buckets")]
		}
	}
}

// checkGateways: of each store there is at most one gateway on a host.
func checkGateways(t *rapid.T, f *fakeWorld) {
	on := map[string]string{}
	for name, d := range f.daemons {
		if d.Spec.Type != rgw.Type || d.DeletionTimestamp != nil {
			continue
		}
		store := d.Spec.Host + " " + d.Spec.Parameters[rgw.ParamStore]
		if on[store] != "" {
			t.Fatalf("%s and %s are both on %s", name, on[store], store)
		}
		on[store] = name
	}
}
