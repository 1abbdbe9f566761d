package hosttoken

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// server is an API server whose clock is off. It gives tokens, and takes those of its current
// account alone.
type server struct {
	off            time.Duration
	account, asked atomic.Int64
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/token") {
		s.asked.Add(1)
		answer := &authenticationv1.TokenRequest{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}}
		answer.Spec.ExpirationSeconds = ptr.To(int64(3600))
		answer.Status.Token = fmt.Sprintf("of-account-%d", s.account.Load())
		answer.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(s.off + time.Hour))
		_ = json.NewEncoder(w).Encode(answer) // the client sees what is cut off
		return
	}
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer of-account-%d", s.account.Load()) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintln(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
}

// TestToken: one token serves many requests whatever the clock of the API server says, and one that
// the API server does not take any more is replaced.
func TestToken(t *testing.T) {
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		s := &server{off: off}
		web := httptest.NewServer(s)
		defer web.Close()
		config, err := Config(t.Context(), &rest.Config{Host: web.URL}, "h1")
		if err != nil {
			t.Fatal(err)
		}
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		list := func() error {
			_, err := clients.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
			return err
		}
		for range 3 {
			if err := list(); err != nil {
				t.Fatalf("with a clock that is %v off: %v", off, err)
			}
		}
		if n := s.asked.Load(); n != 1 {
			t.Errorf("with a clock that is %v off, %d tokens were asked for", off, n)
		}
		s.account.Add(1)
		if list() == nil {
			t.Fatal("the API server takes a token of another account")
		}
		if err := list(); err != nil {
			t.Errorf("a token that was refused is not replaced: %v", err)
		}
	}
}

// late is an API server that has no account of the host before somebody watches for it.
type late struct {
	server
	watched atomic.Bool
}

// ServeHTTP implements http.Handler.
func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Has("watch"):
		w.Header().Set("Content-Type", "application/json")
		if by := r.URL.Query().Get("fieldSelector"); by != "metadata.name=h1" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		l.watched.Store(true)
		fmt.Fprintln(w, `{"type":"ADDED","object":{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"h1"}}}`)
	case strings.HasSuffix(r.URL.Path, "/token") && !l.watched.Load():
		l.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintln(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	default:
		l.server.ServeHTTP(w, r)
	}
}

// TestToken_awaitsAccount: an agent that starts before the operator hears of its account by a watch,
// and asks for its token no more often than twice.
func TestToken_awaitsAccount(t *testing.T) {
	l := &late{}
	web := httptest.NewServer(l)
	defer web.Close()
	config, err := Config(t.Context(), &rest.Config{Host: web.URL}, "h1")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the first request of an agent without an account: %v", err)
	}
	if n := l.asked.Load(); n != 2 {
		t.Errorf("the token was asked for %d times, want 2", n)
	}
}

// TestToken_mayNotWatch: where the rights are those of an earlier release, an agent is told at once
// that its account is missing.
func TestToken_mayNotWatch(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code, reason := http.StatusNotFound, metav1.StatusReasonNotFound
		if r.URL.Query().Has("watch") {
			code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}))
	defer web.Close()
	config, err := Config(t.Context(), &rest.Config{Host: web.URL}, "h1")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = clients.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsNotFound(err) || time.Since(began) > askTimeout/2 {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// TestUsable: a token is replaced in time, also a short one.
func TestUsable(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{3600: 50 * time.Minute, 600: 5 * time.Minute} {
		answer := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(seconds)}}
		if got := usable(answer); got != want {
			t.Errorf("a token that lasts %d s is used for %v, want %v", seconds, got, want)
		}
	}
}
