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
// returns what the caller has to answer.
func (w *Watcher) untilLost(next http.Handler, rw http.ResponseWriter, r *http.Request) (text string) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	reads := verb(r) == "get" || verb(r) == "list"
	lost := w.writes.lost()
	if reads {
		lost = w.reads.lost()
	}
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	out := &withheld{ResponseWriter: rw, lost: lost}
	next.ServeHTTP(responsewriter.WrapForHTTP1Or2(out), r.WithContext(ctx))
	if !out.failed {
		return ""
	}
	return ended(w.text.Load(), reads)
}

// ended is what a user reads whose request was under way when the quorum was lost. lost is nil
// where there is a quorum again.
func ended(lost *string, reads bool) string {
	text := "no quorum: it was lost for a moment, and is back"
	if lost != nil {
		text = *lost
	}
	switch {
	case !reads:
		return text + "; whether the change was made is unknown: check before you repeat it"
	case lost == nil:
		return text + "; try again"
	}
	return text
}

// withheld keeps back the answer that a request failed, once the quorum is lost, unless a part of
// another answer is written.
type withheld struct {
	http.ResponseWriter
	lost            <-chan struct{}
	written, failed bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (x *withheld) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *withheld) WriteHeader(code int) {
	if x.failed || !x.written && code >= http.StatusInternalServerError && isClosed(x.lost) {
		x.failed = true
		return
	}
	x.written = x.written || code >= http.StatusOK // others only inform
	x.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (x *withheld) Write(b []byte) (int, error) {
	if x.failed {
		return len(b), nil
	}
	x.written = true
	return x.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (x *withheld) Flush() {
	if x.failed {
		return
	}
	x.written = true
	_ = http.NewResponseController(x.ResponseWriter).Flush() // who cannot be flushed writes at the end
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
