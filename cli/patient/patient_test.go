package patient_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-storage/holdfast/cli/patient"
)

// slowServer answers after a while, or says that the time is up.
type slowServer time.Duration

func (s slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Duration(s)):
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// TestPatient: a person is told of an answer that takes long, once, and not of what waits on purpose.
func TestPatient(t *testing.T) {
	for _, test := range []struct {
		name     string
		takes    time.Duration
		deadline time.Duration
		says     string
		failed   bool
	}{
		{"quick", time.Second, 30 * time.Second, "", false},
		{"slow", 20 * time.Second, 30 * time.Second, "no answer from h1:6443 yet, waiting for up to 25s more", false},
		{"never", time.Hour, 30 * time.Second, "no answer from h1:6443 yet", true},
		{"ends soon", time.Hour, 5 * time.Second, "", true},
		{"a watch", time.Hour, 0, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				p := patient.RoundTripper{By: slowServer(test.takes), Out: &out, Once: new(sync.Once)}
				for range 2 {
					ctx := t.Context()
					if test.deadline > 0 {
						limited, cancel := context.WithTimeout(ctx, test.deadline)
						defer cancel()
						ctx = limited
					}
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://h1:6443/apis", nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := p.RoundTrip(r)
					if (err != nil) != test.failed || (response == nil) != test.failed {
						t.Errorf("got %v, %v", response, err)
					}
					if response != nil {
						response.Body.Close()
					}
				}
				if got := out.String(); !strings.HasPrefix(got, test.says) || strings.Count(got, "\n") != min(len(test.says), 1) {
					t.Errorf("told %q", got)
				}
			})
		})
	}
}
