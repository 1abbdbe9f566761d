package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/holdfast-storage/holdfast/agent/pending"
)

func TestUnanswered(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{pending.For("the Secret s"), false},
		{apierrors.NewForbidden(secrets, "s", errors.New("no")), false},
		{apierrors.NewNotFound(secrets, "s"), false},
		{apierrors.NewTooManyRequests("later", 1), true},
		{apierrors.NewInternalError(errors.New("no quorum")), true},
		{apierrors.NewTimeoutError("slow", 1), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{context.DeadlineExceeded, true},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("while reading: %w", err)
		}
		if got := unanswered(err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestLineTripper: no more requests go to the server at once than may, heartbeats and watches besides; one that is given up while it
// waits is never sent.
func TestLineTripper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, sent := make(chan struct{}), atomic.Int64{}
		lt := &lineTripper{line: make(chan struct{}, atOnce), next: roundTrip(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			<-answer
			return &http.Response{}, nil
		})}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ask := func(ctx context.Context, path string) {
			all.Go(func() {
				if response, err := lt.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)); err == nil && response.Body != nil {
					response.Body.Close()
				}
			})
			synctest.Wait()
		}
		for range atOnce + 3 {
			ask(ctx, "/api/v1/namespaces/default/secrets/s")
		}
		if n := sent.Load(); n != atOnce {
			t.Errorf("%d requests are under way, want %d", n, atOnce)
		}
		ask(t.Context(), "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/host-h1")
		ask(t.Context(), "/apis/holdfast.io/v1alpha1/daemons?watch=true")
		if n := sent.Load(); n != atOnce+2 {
			t.Errorf("%d requests are under way with a heartbeat and a watch, want %d", n, atOnce+2)
		}
		cancel()
		synctest.Wait()
		close(answer)
		all.Wait()
		if n := sent.Load(); n != atOnce+2 {
			t.Errorf("%d requests were sent, of which %d were given up before", n, n-atOnce-2)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
