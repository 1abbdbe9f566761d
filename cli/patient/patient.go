// Package patient informs a person that the command waits for an answer of the API.
package patient

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// After is how long a request takes before the person is informed.
const After = 5 * time.Second

// RoundTripper tells, once for each command, that an answer is waited for. Only requests with a
// deadline count, as watches wait on purpose, and only where that is not near: of what ends soon
// the error tells.
type RoundTripper struct {
	// By carries requests out.
	By http.RoundTripper
	// Out is where the person reads, and Once is the command's.
	Out  io.Writer
	Once *sync.Once
}

// RoundTrip tells while the goroutine that asked waits, so that nothing else of that one is written at the same time.
func (p RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, ok := r.Context().Deadline()
	if !ok || time.Until(deadline) < 2*After {
		return p.By.RoundTrip(r)
	}
	told := make(chan struct{})
	timer := time.AfterFunc(After, func() {
		defer close(told)
		p.Once.Do(func() { p.tell(r.URL.Host, time.Until(deadline)) })
	})
	defer func() {
		if !timer.Stop() {
			<-told
		}
	}()
	return p.By.RoundTrip(r)
}

func (p RoundTripper) tell(server string, left time.Duration) {
	fmt.Fprintf(p.Out, "no answer from %s yet, waiting for up to %s more: it may be down, or most of the servers "+
		"('holdfast doctor' checks each of them)\n", server, left.Round(time.Second))
}
