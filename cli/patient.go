package cli

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// patience is how long a request is waited for before a person is told that it is.
const patience = 5 * time.Second

// patient tells, once for each command, that an answer is waited for. Only requests with a deadline count, as watches wait on purpose, and only where that is
// not near: of what ends soon the error tells.
type patient struct {
	by       http.RoundTripper
	patience time.Duration
	out      io.Writer
	once     *sync.Once
}

// RoundTrip tells while the goroutine that asked waits, so that nothing else of that one is written at the same time.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, ok := r.Context().Deadline()
	if !ok || time.Until(deadline) < 2*p.patience {
		return p.by.RoundTrip(r)
	}
	told := make(chan struct{})
	timer := time.AfterFunc(p.patience, func() {
		defer close(told)
		p.once.Do(func() { p.tell(r.URL.Host, time.Until(deadline)) })
	})
	defer func() {
		if !timer.Stop() {
			<-told
		}
	}()
	return p.by.RoundTrip(r)
}

func (p patient) tell(server string, left time.Duration) {
	fmt.Fprintf(p.out, "no answer from %s yet, waiting for up to %s more: it may be down, or most of the servers "+
		"('holdfast doctor' checks each of them)\n", server, left.Round(time.Second))
}
