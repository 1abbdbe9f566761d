package apiserver

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"

	"github.com/holdfast-storage/holdfast/control/access"
)

// TestSharesUnderLoad: while a fleet asks for far more than the server can do, heartbeats, people and the servers themselves are
// answered at once, and as soon as the server gets on with it everybody is.
func TestSharesUnderLoad(t *testing.T) { synctest.Test(t, testSharesUnderLoad) }

func testSharesUnderLoad(t *testing.T) {
	work := make(chan struct{})
	s := newShares()
	s.hosts.fair = newFair(2, 5)
	api := newLimited(s, func(r *http.Request) {
		if r.URL.Path != heartbeat && r.Header.Get("User") == agentOf("h1") {
			<-work
		}
	})
	var all sync.WaitGroup
	answers := make(chan int, 10)
	for range 7 { // the seats, and all places in the line
		all.Go(func() { answers <- api(t, agentOf("h1"), access.GroupHosts, report) })
	}
	synctest.Wait()
	for _, tt := range []struct {
		user, group, path string
		want              int
	}{
		{agentOf("h1"), access.GroupHosts, report, http.StatusTooManyRequests},
		{agentOf("h1"), access.GroupHosts, heartbeat, http.StatusOK},
		{agentOf("h2"), access.GroupHosts, heartbeat, http.StatusOK},
		{"alice", access.GroupAdmins, report, http.StatusOK},
		{"engine", user.SystemPrivilegedGroup, report, http.StatusOK},
	} {
		if code := api(t, tt.user, tt.group, tt.path); code != tt.want {
			t.Errorf("under load %s is answered %d for %s, want %d", tt.user, code, tt.path, tt.want)
		}
	}
	close(work)
	all.Wait()
	close(answers)
	for code := range answers {
		if code != http.StatusOK {
			t.Errorf("one that waited was answered %d", code)
		}
	}
	if code := api(t, agentOf("h2"), access.GroupHosts, report); code != http.StatusOK {
		t.Errorf("after the load an agent is answered %d", code)
	}
}

const (
	heartbeat = "/apis/coordination.k8s.io/v1/namespaces/holdfast-system/leases/host-h"
	report    = "/apis/holdfast.io/v1alpha1/namespaces/default/daemons/d/status"
)

func agentOf(host string) string { return access.HostUser(host) }

// newLimited is the library's filter with shares before a handler. What it returns asks as a user, and returns the answer's code.
func newLimited(s *shares, do func(*http.Request)) func(t *testing.T, who, group, path string) int {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { do(r) })
	limited := filters.WithPriorityAndFairness(handler, func(*http.Request, *request.RequestInfo) bool { return false }, s, nil, time.Minute)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return func(t *testing.T, who, group, path string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPatch, path, nil)
		r.Header.Set("User", who)
		info, err := resolver.NewRequestInfo(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		ctx := request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: who, Groups: []string{group}}), info)
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r.WithContext(ctx))
		return w.Code
	}
}
