package noquorum_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/noquorum"
)

// hung accepts connections, and says nothing: a server that waits for the others.
func hung(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// down does not run.
func down(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answering answers each question for readiness with a status, and nothing else for as long as the question may last.
func answering(t *testing.T, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestRoundTripper: without a quorum a request ends at once, and names the servers that do not
// answer; with one it is waited for.
func TestRoundTripper(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		servers []string
		lost    bool
	}{
		{"one of three runs", []string{answering(t, http.StatusInternalServerError), hung(t), down(t)}, true},
		{"none of three runs", []string{hung(t), hung(t), down(t)}, true},
		{"the only one is down", []string{down(t)}, true},
		{"two elect", []string{
			answering(t, http.StatusServiceUnavailable), answering(t, http.StatusGatewayTimeout), down(t),
		}, false},
		{"one is ready, the others are standbys", []string{answering(t, http.StatusOK), down(t), down(t)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := &rest.Config{Host: "http://" + test.servers[0]}
			rt := &noquorum.RoundTripper{By: http.DefaultTransport, Look: func(ctx context.Context) *noquorum.Error {
				return &noquorum.Error{Servers: noquorum.Look(ctx, config, test.servers)}
			}}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := rt.RoundTrip(r)
			if err == nil {
				response.Body.Close()
			}
			var lost *noquorum.Error
			if errors.As(err, &lost) != test.lost || lost != nil && ctx.Err() != nil {
				t.Fatalf("got %v", err)
			}
			for _, server := range test.servers {
				if lost != nil && !strings.Contains(lost.Error(), server) {
					t.Errorf("%s is not in: %v", server, lost)
				}
			}
		})
	}
}

// TestRoundTripper_cutOff: a request that ends by itself in the middle of a look says nothing about
// the servers.
func TestRoundTripper_cutOff(t *testing.T) {
	t.Parallel()
	server := hung(t)
	ctx, cancel := context.WithCancel(t.Context())
	rt := &noquorum.RoundTripper{By: http.DefaultTransport, Look: func(ctx context.Context) *noquorum.Error {
		cancel()
		return &noquorum.Error{Servers: []noquorum.Server{{Address: server, Err: ctx.Err()}}}
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rt.RoundTrip(r)
	if err == nil {
		response.Body.Close()
	}
	if _, _, lost := noquorum.Of(err); lost || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the request's own end", err)
	}
}

// TestRoundTripper_meanwhile: a request that is under way when the quorum is lost ends within
// seconds.
func TestRoundTripper_meanwhile(t *testing.T) {
	t.Parallel()
	var begun atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			<-r.Context().Done()
			return
		}
		if begun.Add(1) > 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer s.Close()
	config, servers := &rest.Config{Host: s.URL}, []string{s.Listener.Addr().String(), down(t), down(t)}
	rt := &noquorum.RoundTripper{By: http.DefaultTransport, Look: func(ctx context.Context) *noquorum.Error {
		return &noquorum.Error{Servers: noquorum.Look(ctx, config, servers)}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := rt.RoundTrip(r)
	if err == nil {
		response.Body.Close()
	}
	if state, next, lost := noquorum.Of(err); !lost || state == "" || next == "" || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}

// TestOf_server: what a server without a quorum answers is divided as well.
func TestOf_server(t *testing.T) {
	err := fmt.Errorf("while reading: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReason(api.ReasonQuorumLost), Message: "no quorum: h2 does not answer; start it",
	}})
	if state, next, lost := noquorum.Of(err); !lost || state != "no quorum: h2 does not answer; start it" || next == "" {
		t.Errorf("%q, %q", state, next)
	}
	if _, _, lost := noquorum.Of(errors.New("no quorum")); lost {
		t.Error("an error that says so is taken for one")
	}
}
