package store

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestLine: the engine has so many requests under way and no more, watches besides; one that is
// given up while it waits is not sent.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, sent := make(chan struct{}), atomic.Int64{}
		l := newLine(2)(roundTrip(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			<-answer
			return &http.Response{Body: http.NoBody}, nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ask := func(ctx context.Context, path string) {
			all.Go(func() {
				if response, err := l.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)); err == nil {
					response.Body.Close()
				}
			})
			synctest.Wait()
		}
		for range 5 {
			ask(ctx, "/apis/holdfast.io/v1alpha1/daemons")
		}
		ask(t.Context(), "/apis/holdfast.io/v1alpha1/daemons?watch=true")
		if n := sent.Load(); n != 3 {
			t.Errorf("%d requests are under way, want 2 and a watch", n)
		}
		cancel()
		synctest.Wait()
		close(answer)
		all.Wait()
		if n := sent.Load(); n != 3 {
			t.Errorf("%d requests were sent, and but 3 were not given up before", n)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
