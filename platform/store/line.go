package store

import (
	"context"
	"net/http"
)

// atOncePerCore is how many requests of the engine are under way at once for each core. What is
// more waits here: the API server and etcd run in the same process, and would only have more to do
// at the same time, and be later with heartbeats.
const atOncePerCore = 8

// line lets so many requests go at once; watches go besides.
type line struct {
	next  http.RoundTripper
	seats chan struct{}
}

func newLine(seats int) func(http.RoundTripper) http.RoundTripper {
	all := make(chan struct{}, seats)
	return func(next http.RoundTripper) http.RoundTripper { return &line{next, all} }
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") {
		return l.next.RoundTrip(r)
	}
	select {
	case l.seats <- struct{}{}:
		defer func() { <-l.seats }()
		return l.next.RoundTrip(r)
	case <-r.Context().Done():
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, context.Cause(r.Context())
	}
}
