package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/routine"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// TestGuard_forgets: a request is followed while it is answered, a watch that is served after its handler returned as well, and none of them after
// its end, however it ended.
func TestGuard_forgets(t *testing.T) {
	for name, ending := range map[string]func(){"ends": func() {}, "panics": func() { panic(http.ErrAbortHandler) }} {
		t.Run("a request "+name, func(t *testing.T) {
			testFollowed(t, func(serving func()) http.HandlerFunc {
				return func(http.ResponseWriter, *http.Request) { serving(); ending() }
			})
		})
		t.Run("a watch "+name, func(t *testing.T) {
			testFollowed(t, func(serving func()) http.HandlerFunc {
				return func(_ http.ResponseWriter, q *http.Request) {
					routine.TaskFrom(q.Context()).Func = func() { serving(); ending() }
				}
			})
		})
	}
}

// testFollowed has a host ask for what a handler serves.
func testFollowed(t *testing.T, handler func(serving func()) http.HandlerFunc) {
	r, cert := guarding(t, "h1")
	serving, end := make(chan struct{}), make(chan struct{})
	guarded := r.Guard(handler(func() { close(serving); <-end }))
	watch := func(*http.Request, *request.RequestInfo) bool { return true }
	server := httptest.NewServer(as("h1", cert, routine.WithRoutine(guarded, watch)))
	t.Cleanup(server.Close)
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release) // before the server's
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if a, err := server.Client().Do(q); err == nil { // a panic ends the connection
			_ = a.Body.Close() // it is empty
		}
	}()
	select {
	case <-serving:
	case <-ctx.Done():
		t.Fatal("nothing is served")
	}
	if n := r.followed(); n != 1 {
		t.Errorf("%d requests are followed while one is answered", n)
	}
	release()
	<-answered
	for r.followed() > 0 { // what follows the end of a request's context runs beside it
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d requests are followed after their end", r.followed())
		}
	}
}

// guarding returns a Revocation that knows a host, and the host's certificate.
func guarding(t *testing.T, host string) (*Revocation, *x509.Certificate) {
	t.Helper()
	r, err := NewRevocation(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{RawSubjectPublicKeyInfo: []byte(host)}
	known := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: host, Annotations: map[string]string{HostKey: pki.Fingerprint(cert)}}}
	if err := r.hosts.GetStore().Add(known); err != nil {
		t.Fatal(err)
	}
	return r, cert
}

// as has requests come from a host.
func as(host string, cert *x509.Certificate, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		who := &user.DefaultInfo{Name: userHost + host, Groups: []string{GroupHosts}}
		next.ServeHTTP(w, q.WithContext(request.WithUser(q.Context(), who)))
	})
}

func (r *Revocation) followed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}
