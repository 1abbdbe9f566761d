package quorumlost

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// running is the time while there is a quorum: requests that are under way end with it. The zero
// value is ready.
type running struct {
	mu   sync.Mutex
	over chan struct{}
}

// lost is closed when the quorum is lost.
func (x *running) lost() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over == nil {
		x.over = make(chan struct{})
	}
	return x.over
}

// end ends the requests that are under way.
func (x *running) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over != nil {
		close(x.over)
		x.over = nil
	}
}

// untilLost serves a request that ends when the quorum is lost. If it has no answer then, it
// returns false: the caller answers. Whether a write was done is not known then, as after any time
// that ran out.
func (w *Watcher) untilLost(next http.Handler, rw http.ResponseWriter, r *http.Request) (answered bool) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lost := w.running.lost()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	out := &withheld{ResponseWriter: rw, lost: lost}
	next.ServeHTTP(responsewriter.WrapForHTTP1Or2(out), r.WithContext(ctx))
	return !out.failed
}

// withheld keeps back the answer that a request failed, once the quorum is lost.
type withheld struct {
	http.ResponseWriter
	lost   <-chan struct{}
	failed bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (x *withheld) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *withheld) WriteHeader(code int) {
	if x.failed = code >= http.StatusInternalServerError && isClosed(x.lost); !x.failed {
		x.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (x *withheld) Write(b []byte) (int, error) {
	if x.failed {
		return len(b), nil
	}
	return x.ResponseWriter.Write(b)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
