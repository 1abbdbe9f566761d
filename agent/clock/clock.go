// Package clock compares the clock of a host with that of the servers.
package clock

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// maxSkew is by how much the host's clock may differ from the server's. Ceph's monitors want far
// less of each other, and say so themselves; what differs by more than this confuses certificates,
// leases and everyone who reads a log.
const maxSkew = 30 * time.Second

// Server compares the host's clock with the server's, which each answer carries in its Date header, in seconds.
type Server struct {
	mu   sync.Mutex
	seen bool
	// ahead is by how much the host's clock is ahead.
	ahead time.Duration
}

// Tripper notes the time of each answer.
type Tripper struct {
	Next  http.RoundTripper
	Clock *Server
}

// RoundTrip implements http.RoundTripper.
func (t *Tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := time.Now()
	resp, err := t.Next.RoundTrip(req)
	if err == nil {
		t.Clock.Note(resp.Header.Get("Date"), sent, time.Now())
	}
	return resp, err
}

// Note takes the server's time for that of the middle of the request. An answer that took long says too little.
func (c *Server) Note(date string, sent, received time.Time) {
	at, err := http.ParseTime(date)
	if err != nil || received.Sub(sent) > 5*time.Second {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen, c.ahead = true, sent.Add(received.Sub(sent)/2).Round(0).Sub(at)
}

// Condition is what the host says of its clock; ok is false before the server's time is known.
func (c *Server) Condition() (cond metav1.Condition, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen {
		return metav1.Condition{}, false
	}
	if c.ahead.Abs() <= maxSkew {
		return metav1.Condition{
			Type: api.HostClockInSync, Status: metav1.ConditionTrue, Reason: "InSync",
			Message: fmt.Sprintf("the clock agrees with the server's within %v", maxSkew),
		}, true
	}
	way := "ahead of"
	if c.ahead < 0 {
		way = "behind"
	}
	// Rounded, so that the condition is not written again for each second.
	by := c.ahead.Abs().Round(time.Minute)
	if by == 0 {
		by = maxSkew
	}
	return metav1.Condition{
		Type: api.HostClockInSync, Status: metav1.ConditionFalse, Reason: "Skewed",
		Message: fmt.Sprintf("the clock is about %v %s the server's: set up time synchronization, such as 'apt-get "+
			"install chrony'", by, way),
	}, true
}
