package apiserver

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// TestRun_stopped: a server that is told to stop while it starts, because etcd tells it nothing, ends in order. A hook of the library's that fails
// would end the whole process instead.
func TestRun_stopped(t *testing.T) {
	exited := make(chan int, 1)
	exit := klog.OsExit
	klog.OsExit = func(code int) {
		exited <- code
		runtime.Goexit()
	}
	t.Cleanup(func() { klog.OsExit = exit })
	etcd := silentEtcd(t)
	for _, begun := range []bool{false, true} {
		s := newServer(t, etcd)
		judged(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		if !begun {
			cancel()
		}
		go func() { done <- s.Run(ctx) }()
		if begun {
			answering(t, s)
		}
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
		}
		for hooksRun() {
			time.Sleep(10 * time.Millisecond)
		}
		select {
		case code := <-exited:
			t.Errorf("begun %t: the process would have ended with code %d", begun, code)
		default:
		}
	}
}

// hooksRun says whether a hook goes on: it may end after the server.
func hooksRun() bool {
	stacks := make([]byte, 16<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "runPostStartHook")
}

// answering waits until the server answers, and fails the test if it says that it knows the definitions.
func answering(t *testing.T, s *Server) {
	t.Helper()
	client := &http.Client{Transport: s.loopback.Transport, Timeout: time.Minute}
	response, err := client.Get(s.loopback.Host + "/readyz/poststarthook/" + definitionsHook)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusInternalServerError {
		t.Errorf("without etcd the server says of itself: %s", response.Status)
	}
}

// judged fails the test if the server has another hook than those of the library's that were looked at: of them none but crdHook fails when it is stopped.
func judged(t *testing.T, s *Server) {
	t.Helper()
	want := []string{
		definitionsHook, "priority-and-fairness-config-consumer", "priority-and-fairness-filter",
		"start-apiextensions-controllers", "start-apiextensions-informers", "storage-object-count-tracker-hook",
	}
	if got := slices.Sorted(maps.Keys(s.extensions.GenericAPIServer.PostStartHooks())); !slices.Equal(got, want) {
		t.Errorf("the hooks are %v, want %v", got, want)
	}
}

// silentEtcd runs one of two members of etcd: it lets clients in, and answers none of their questions.
func silentEtcd(t *testing.T) Etcd {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.StrictReconfigCheck = t.TempDir(), "panic", false
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenPeerUrls, c.ListenClientUrls = []url.URL{local}, []url.URL{local}
	member, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(member.Close)
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not begin")
	}
	if _, err := member.Server.AddMember(t.Context(), *membership.NewMember("", types.URLs{local}, "", nil)); err != nil {
		t.Fatal(err)
	}
	return Etcd{URL: "http://" + member.Clients[0].Addr().String()}
}

// newServer is one with a certificate of its own authority.
func newServer(t *testing.T, etcd Etcd) *Server {
	t.Helper()
	authority, err1 := pki.NewAuthority(time.Now())
	leaf := pki.Leaf{User: "server", Groups: []string{"system:masters"}, Server: true, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	pair, err2 := authority.NewPair(leaf, time.Now())
	listener, err3 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	transport, credentials := pki.NewTransport("127.0.0.1", nil), NewCredentials()
	transport.Set(pair, authority.Pool())
	t.Cleanup(transport.CloseIdleConnections)
	if err := credentials.Set(pair, nil, []*x509.Certificate{authority.Certificate()}); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{
		Listener: listener, Credentials: credentials, Etcd: etcd,
		Loopback:   &rest.Config{Host: "https://" + listener.Addr().String(), Transport: transport, QPS: -1},
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Guard:      func(api http.Handler) http.Handler { return api },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
