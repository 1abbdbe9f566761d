package operate

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/storetest"
	"github.com/holdfast-storage/holdfast/platform/kube"
	"github.com/holdfast-storage/holdfast/platform/store"
	bed "github.com/holdfast-storage/holdfast/test/kube"
	"github.com/holdfast-storage/holdfast/test/storeworld"
)

// TestStore runs the suites of the Store on a real kube-apiserver: its writer is the operator, with
// the rights of the manifests, and the policies hold the fence.
func TestStore(t *testing.T) {
	p := install(t, "20-fence")
	own := operator(t, p)
	h := storeworld.Home{
		Config: own, Writers: p.ConfigFor(t, "admin", bed.Masters),
		NewStore: func(ctx context.Context, token string) (*store.Store, error) { return newStore(ctx, own, token) },
		Lead: func(ctx context.Context, c client.Client, token string) error {
			if err := hold(ctx, c, token); err != nil {
				return err
			}
			return terms(t, own).Won(ctx, token)
		},
	}
	w, err := storeworld.New(h)
	must(t, err)
	must(t, w.Lead(t.Context()))
	s, err := h.NewStore(t.Context(), storeworld.Own)
	must(t, err)
	defer s.Close()
	t.Run("engine", func(t *testing.T) { storetest.Run(t, storetest.Backend{Store: s, World: w}) })
	t.Run("actions", func(t *testing.T) {
		must(t, w.Lead(t.Context()))
		actions, err := s.Actions(t.Context())
		must(t, err)
		actiontest.RunStore(t, actions, storeworld.ActionWorld{World: w})
	})
}

func newStore(ctx context.Context, own *rest.Config, token string) (*store.Store, error) {
	return store.New(ctx, store.Options{Config: own, Token: token, Fence: kube.Fenced, NodeLabels: true})
}

// hold makes the owner of a token the holder of the leader's Lease.
func hold(ctx context.Context, c client.Client, token string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease}}
	if err := c.Delete(ctx, lease.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return err
	}
	lease.Spec.HolderIdentity = &token
	return c.Create(ctx, lease)
}
