package join

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slowClient is a request whose body never ends, and the connection that it comes by.
type slowClient struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (c *slowClient) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

func (c *slowClient) Read([]byte) (int, error) {
	if c.deadline.IsZero() {
		panic("the body is waited for without an end")
	}
	return 0, io.ErrUnexpectedEOF
}

// TestHandler_slowBody: anybody may open a connection, and nobody may hold one by sending half a request.
func TestHandler_slowBody(t *testing.T) {
	c := &slowClient{ResponseRecorder: httptest.NewRecorder()}
	h := &Handler{Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	h.ServeHTTP(c, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, c))
	if left := time.Until(c.deadline); left <= 0 || left > bodyTimeout {
		t.Errorf("the body is waited for until %s", c.deadline)
	}
	if c.Code != http.StatusForbidden {
		t.Errorf("got %d, want 403", c.Code)
	}
}
