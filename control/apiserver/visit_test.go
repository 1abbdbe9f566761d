package apiserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlines is a response that fails the test when somebody sets a deadline after its handler has returned.
type deadlines struct {
	*httptest.ResponseRecorder
	t     *testing.T
	ended bool
}

func (d *deadlines) SetReadDeadline(time.Time) error {
	if d.ended {
		d.t.Error("a deadline is set of a response that is over")
	}
	return nil
}

// TestReceive_ended: what a handler left reading when it timed out sets no deadline of the response, which is not there any more.
func TestReceive_ended(t *testing.T) {
	var left io.Reader
	w := &deadlines{ResponseRecorder: httptest.NewRecorder(), t: t}
	handler := newVisits(nil).receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { left = r.Body }))
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")))
	w.ended = true
	if _, err := io.ReadAll(left); err != nil {
		t.Error(err)
	}
}
