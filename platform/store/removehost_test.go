package store_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// dies lets so many deletions through, and none after them, as of a process that was killed.
type dies struct {
	after int
	next  http.RoundTripper
}

func (d *dies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		if d.after--; d.after < 0 {
			return nil, errors.New("killed")
		}
	}
	return d.next.RoundTrip(r)
}

// TestRemoveHost_killed: wherever the removal of a host is cut off, neither the host nor its Lease
// is there in the end, although a removal is repeated only while there is a host.
func TestRemoveHost_killed(t *testing.T) {
	whole := false
	for after := 0; !whole; after++ {
		name := fmt.Sprintf("killed-%d", after)
		c := newWorld(t).Client
		host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "holdfast-system", Name: "host-" + name}}
		for _, o := range []client.Object{host, lease} {
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		mortal := rest.CopyConfig(config)
		mortal.Wrap(func(next http.RoundTripper) http.RoundTripper { return &dies{after, next} })
		whole = storeOf(t, mortal).RemoveHost(t.Context(), name) == nil
		if c.Get(t.Context(), client.ObjectKeyFromObject(host), host) == nil {
			must(t, storeOf(t, config).RemoveHost(t.Context(), name))
		}
		for _, o := range []client.Object{host, lease} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				t.Errorf("killed after %d deletions: %T %s: %v", after, o, o.GetName(), err)
			}
		}
	}
}

func storeOf(t *testing.T, config *rest.Config) *store.Store {
	t.Helper()
	must(t, newWorld(t).LeadAs(t.Context(), "s1"))
	s, err := bare.NewStore(t.Context(), config, "s1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
