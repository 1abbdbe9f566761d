package quorumlost

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/etcd"
)

// member is one of three members, of which some answer.
type member struct {
	mu      sync.Mutex
	ready   bool
	answers string
}

func (m *member) Quorum(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	return errors.New("no leader")
}

func (*member) Members() []etcd.Info {
	return []etcd.Info{
		{Name: "s1", PeerURL: "https://10.0.0.1:7441", Voter: true},
		{
			Name: "s2", PeerURL: "https://10.0.0.2:7441",
			Voter: true,
		},
		{Name: "s3", PeerURL: "https://10.0.0.3:7441", Voter: true},
		{Name: "learner", PeerURL: "https://10.0.0.4:7441"},
	}
}

func (m *member) Answers(_ context.Context, peerURL string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(m.answers, peerURL[14:16])
}

// become has the member know another quorum.
func (m *member) become(ready bool, answers string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready, m.answers = ready, answers
}

// TestWatcher: users are refused once there is no quorum for longer than an election lasts, and
// read which servers do not answer.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{ready: true, answers: "0.1 0.2 0.3"}
		w := &Watcher{Member: m}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		defer synctest.Wait()
		defer cancel()
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		const admin, path = access.GroupAdmins, "/api/v1/namespaces"
		m.become(false, "0.1")
		if wait(2 * time.Second); w.asks(t, admin, path) != "" {
			t.Error("users are refused during an election")
		}
		wait(5 * time.Second)
		got := w.asks(t, admin, path)
		for _, want := range []string{
			"QuorumLost: no quorum: 2 of 3 servers", "s2 (10.0.0.2), s3 (10.0.0.3)",
			"systemctl start holdfast",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("users read %q, without %q", got, want)
			}
		}
		for group, path := range map[string]string{access.GroupMasters: path, access.GroupHosts: path, admin: "/readyz"} {
			if got := w.asks(t, group, path); got != "" {
				t.Errorf("%s asks for %s, and reads %q", group, path, got)
			}
		}
		m.become(false, "0.1 0.2")
		if wait(2 * time.Second); !strings.Contains(w.asks(t, admin, path), "elect a leader") {
			t.Errorf("while most answer users read %q", w.asks(t, admin, path))
		}
		m.become(true, "0.1 0.2")
		if wait(2 * time.Second); w.asks(t, admin, path) != "" {
			t.Error("users are refused with a quorum")
		}
	})
}

// TestWatcher_underWay: a request that is under way when the quorum is lost ends within seconds,
// and reads why; a watch and an agent's request stay.
func TestWatcher_underWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &member{ready: true, answers: "0.1 0.2 0.3"}
		w := &Watcher{Member: m}
		ctx, cancel := context.WithCancel(t.Context())
		go w.Run(ctx)
		defer synctest.Wait()
		defer cancel()
		hangs := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
			}
			rw.WriteHeader(http.StatusGatewayTimeout)
			_, _ = rw.Write([]byte(`{"reason":"Timeout"}`))
		})
		took, read := map[string]time.Duration{}, map[string]string{}
		var all sync.WaitGroup
		var mu sync.Mutex
		for name, ask := range map[string][2]string{
			"user": {access.GroupAdmins, "list"}, "watch": {access.GroupAdmins, "watch"}, "agent": {access.GroupHosts, "list"},
		} {
			all.Go(func() {
				began := time.Now()
				text := w.askOf(t, hangs, ask[0], "/api/v1/namespaces", ask[1])
				mu.Lock()
				defer mu.Unlock()
				took[name], read[name] = time.Since(began), text
			})
		}
		time.Sleep(10 * time.Second)
		m.become(false, "0.1")
		all.Wait()
		if took["user"] > 20*time.Second || !strings.Contains(read["user"], "QuorumLost: no quorum: 2 of 3 servers") {
			t.Errorf("after %s the user reads %q", took["user"], read["user"])
		}
		for _, name := range []string{"watch", "agent"} {
			if took[name] < time.Minute || !strings.HasPrefix(read[name], "Timeout") {
				t.Errorf("%s ends after %s and reads %q", name, took[name], read[name])
			}
		}
	})
}

// TestWatcher_write: of a write that is under way when most servers are lost nobody knows whether
// it is done, and the user reads that; it is not ended where only a disk hangs.
func TestWatcher_write(t *testing.T) {
	for name, tt := range map[string]struct{ answers, says, not string }{
		"two are lost": {"0.1", "is unknown: check before you repeat it", "try again"},
		"a disk hangs": {"0.1 0.2 0.3", "Timeout", "QuorumLost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &member{answers: tt.answers}
				w := &Watcher{Member: m}
				ctx, cancel := context.WithCancel(t.Context())
				go w.Run(ctx)
				defer synctest.Wait()
				defer cancel()
				hangs := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					select {
					case <-r.Context().Done():
					case <-time.After(time.Minute):
					}
					rw.Header().Set("Retry-After", "1") // a client of Kubernetes would repeat it unasked
					rw.WriteHeader(http.StatusGatewayTimeout)
					_, _ = rw.Write([]byte(`{"reason":"Timeout"}`))
				})
				got := w.askOf(t, hangs, access.GroupAdmins, "/api/v1/namespaces", "create")
				if !strings.Contains(got, tt.says) || strings.Contains(got, tt.not) {
					t.Errorf("the user reads %q", got)
				}
			})
		})
	}
	got := ended(nil, false)
	if strings.Contains(got, "try again") || !strings.Contains(got, "check before you repeat") {
		t.Errorf("with a quorum again the user reads %q", got)
	}
}

// TestWithheld: behind a part of an answer there is no second one.
func TestWithheld(t *testing.T) {
	lost := make(chan struct{})
	close(lost)
	for name, begin := range map[string]func(*withheld){
		"a part":   func(x *withheld) { _, _ = x.Write([]byte("{")) },
		"header":   func(x *withheld) { x.WriteHeader(http.StatusOK) },
		"a flush":  func(x *withheld) { x.Flush() },
		"no parts": nil,
	} {
		x := &withheld{ResponseWriter: httptest.NewRecorder(), lost: lost}
		if begin != nil {
			begin(x)
		}
		if x.WriteHeader(http.StatusInternalServerError); x.failed != (begin == nil) {
			t.Errorf("%s: failed: %v", name, x.failed)
		}
	}
}

// asks sends a request of a user of a group, and returns the refusal.
func (w *Watcher) asks(t *testing.T, group, path string) string {
	t.Helper()
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return w.askOf(t, nothing, group, path, "get")
}

// askOf is asks of a handler, with a verb.
func (w *Watcher) askOf(t *testing.T, next http.Handler, group, path, verb string) string {
	t.Helper()
	name := "jo"
	if group == access.GroupHosts {
		name = access.HostUser("h1")
	}
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("Accept", "application/json")
	ctx := request.WithUser(r.Context(), &user.DefaultInfo{Name: name, Groups: []string{group}})
	answer := httptest.NewRecorder()
	w.Guard(next).ServeHTTP(answer, r.WithContext(request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb})))
	if answer.Code == http.StatusOK {
		return ""
	}
	again := answer.Header().Get("Retry-After")
	if again != "" && strings.Contains(answer.Body.String(), "QuorumLost") {
		t.Errorf("asked to ask again in %s", again)
	}
	var s metav1.Status
	if err := json.Unmarshal(answer.Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	return string(s.Reason) + ": " + s.Message
}
