package store_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// TestNewStore_endsWhileFilling loses the leadership while the caches are being filled: one kind
// does not answer, and what is known of another wants to be compared with it. The server must be
// able to lead again.
func TestNewStore_endsWhileFilling(t *testing.T) {
	w := newWorld(t)
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "filling"}}
	must(t, w.Create(t.Context(), h))
	defer func() { must(t, w.Delete(t.Context(), h)) }()
	must(t, w.LeadAs(t.Context(), "s1"))

	asked := make(chan struct{}, 100)
	stalled := rest.CopyConfig(config)
	stalled.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/storageclusters") {
				asked <- struct{}{}
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := bare.NewStore(ctx, stalled, "s1")
		ended <- err
	}()
	<-asked
	// The watch of hosts is told of this one sooner or later, and of each change.
	for range 20 {
		h.Labels = map[string]string{"changed": time.Now().Format("150405.000000000")}
		must(t, w.Update(t.Context(), h))
	}
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a store without clusters was made")
		}
	case <-time.After(time.Minute):
		t.Fatal("the store does not end")
	}
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
