package control_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

func newToken(t *testing.T, s *control.Server, role join.Role) string {
	t.Helper()
	token, err := join.Create(t.Context(), s.Config(), role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// joinAgent joins as an agent would, and closes again.
func joinAgent(t *testing.T, dir, name, token string) error {
	t.Helper()
	a, err := control.OpenAgent(timeout(t), control.AgentConfig{DataDir: dir, Name: name, JoinToken: token, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer a.Close()
	return newClient(t, a.Config()).List(t.Context(), &api.DaemonList{}, client.MatchingFields{"spec.host": a.Name()})
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func TestJoin_agent(t *testing.T) {
	s, _ := sharedServer(t)
	dir, token := t.TempDir(), newToken(t, s, join.RoleAgent)
	if err := joinAgent(t, dir, "agent1", token); err != nil {
		t.Fatal(err)
	}
	if err := joinAgent(t, dir, "", ""); err != nil {
		t.Errorf("starting again without a token: %v", err)
	}
	wantError(t, joinAgent(t, dir, "agent2", ""), "belongs to the host agent1")
	wantError(t, joinAgent(t, t.TempDir(), "agent3", token), "was already used by host agent1 at 20")
	wantError(t, joinAgent(t, t.TempDir(), "agent1", newToken(t, s, join.RoleAgent)), "a host named agent1 joined before")
	host := &api.Host{}
	if err := newClient(t, s.Config()).Get(t.Context(), client.ObjectKey{Name: "agent1"}, host); err != nil {
		t.Fatal(err)
	}
	if host.Labels[api.LabelHostname] != "agent1" {
		t.Errorf("the Host has the labels %v", host.Labels)
	}
	// The identity is an agent's: a server shall not be made over it.
	c := newConfig(t, dir, "agent1")
	c.Init = true
	_, err := control.Start(timeout(t), c)
	wantError(t, err, "holds the identity of an agent")
}

// TestJoin_repeated: a join that was cut off after the server took the token is repeated with it by the same host.
func TestJoin_repeated(t *testing.T) {
	s, _ := sharedServer(t)
	text := newToken(t, s, join.RoleAgent)
	token, err := join.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	key, err := pki.LoadOrMakeKey(t.TempDir(), "host")
	if err != nil {
		t.Fatal(err)
	}
	joiner := join.Joiner{Token: token, Role: join.RoleAgent, Name: "repeats", Key: key, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	for range 2 {
		if _, err := joiner.Join(timeout(t)); err != nil {
			t.Fatal(err)
		}
	}
	if joiner.Key, err = pki.LoadOrMakeKey(t.TempDir(), "host"); err != nil {
		t.Fatal(err)
	}
	_, err = joiner.Join(timeout(t))
	wantError(t, err, "was already used by host repeats")
}

func TestJoin_refusals(t *testing.T) {
	s, _ := sharedServer(t)
	agent := newToken(t, s, join.RoleAgent)
	parsed, err := join.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(*join.Token)) string {
		token := *parsed
		f(&token)
		return token.String()
	}
	for _, test := range []struct{ name, token, want string }{
		{"no token", "", "token create"},
		{"not a token", "secret", "invalid token"},
		{"cut off", agent[:len(agent)-20], "the token is damaged"},
		{"for a server", newToken(t, s, join.RoleServer), "create one with 'holdfast token create --role agent'"},
		{"wrong secret", change(func(t *join.Token) { t.Secret = "00" }), "does not know this token"},
		{"unknown", change(func(t *join.Token) { t.ID = "00" }), "does not know this token"},
		{"evil id", change(func(t *join.Token) { t.ID = "../x" }), "does not know this token"},
		{"of another control plane", change(func(t *join.Token) { t.Fingerprint = "00" }), "belongs to another control plane than the token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, joinAgent(t, t.TempDir(), "refused", test.token), test.want)
		})
	}
	if err := newClient(t, s.Config()).Get(t.Context(), client.ObjectKey{Name: "refused"}, &api.Host{}); !apierrors.IsNotFound(err) {
		t.Errorf("a refused host was made: %v", err)
	}
	wantError(t, joinAgent(t, t.TempDir(), "Bad_Name", agent), "a host cannot be named")
}

// handler is a server's side of joining, with a clock of the test's own.
func handler(t *testing.T, s *control.Server, c control.Config, now func() time.Time) *httptest.Server {
	t.Helper()
	return loggingHandler(t, s, c, now, slog.New(slog.DiscardHandler))
}

func loggingHandler(
	t *testing.T, s *control.Server, c control.Config, now func() time.Time, log *slog.Logger,
) *httptest.Server {
	t.Helper()
	clients, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := join.NewHosts(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.OpenAuthority(c.DataDir + "/pki")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.NewPair(pki.Leaf{User: "s", Server: true, DNS: []string{endpoints.ServerName}}, now())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(join.Path, &join.Handler{
		Client: clients, Hosts: hosts, Authority: func() *pki.Authority { return authority }, Now: now, Log: log,
		Free: func(context.Context, string, string) error { return etcd.ErrTaken },
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{pair.Cert.Raw, authority.Certificate().Raw}, PrivateKey: pair.Key,
	}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestJoin_clocks(t *testing.T) {
	s, c := sharedServer(t)
	text := newToken(t, s, join.RoleAgent)
	for _, test := range []struct {
		name   string
		server time.Duration
		want   string
	}{
		{"host is an hour late", time.Hour, "the clocks are 1h0m0s apart"},
		{"host is an hour early", -time.Hour, "Set the clock, e.g. with chrony"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := time.Now()
			server := handler(t, s, c, func() time.Time { return now.Add(test.server) })
			token, err := join.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			token.Servers = []string{server.Listener.Addr().String()}
			key, err := pki.LoadOrMakeKey(t.TempDir(), "host")
			if err != nil {
				t.Fatal(err)
			}
			joiner := join.Joiner{
				Token: token, Role: join.RoleAgent, Name: "skewed", Key: key,
				Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
			}
			_, err = joiner.Join(timeout(t))
			wantError(t, err, test.want)
		})
	}
}

func TestJoin_expired(t *testing.T) {
	s, c := sharedServer(t)
	later := time.Now().Add(2 * time.Hour)
	server := handler(t, s, c, func() time.Time { return later })
	token, err := join.Parse(newToken(t, s, join.RoleAgent))
	if err != nil {
		t.Fatal(err)
	}
	token.Servers = []string{server.Listener.Addr().String()}
	key, err := pki.LoadOrMakeKey(t.TempDir(), "host")
	if err != nil {
		t.Fatal(err)
	}
	joiner := join.Joiner{
		Token: token, Role: join.RoleAgent, Name: "late", Key: key,
		Now: func() time.Time { return later }, Log: slog.New(slog.DiscardHandler),
	}
	_, err = joiner.Join(timeout(t))
	wantError(t, err, "the token expired at")
}

// TestToken_record: the server keeps a hash of the token's secret alone.
func TestToken_record(t *testing.T) {
	s, _ := sharedServer(t)
	token, err := join.Parse(newToken(t, s, join.RoleServer))
	if err != nil {
		t.Fatal(err)
	}
	record := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "holdfast-system", Name: "join-token-" + token.ID}
	if err := newClient(t, s.Config()).Get(t.Context(), key, record); err != nil {
		t.Fatal(err)
	}
	for name, value := range record.Data {
		if strings.Contains(string(value), token.Secret) {
			t.Errorf("%s holds the token's secret", name)
		}
	}
	_, err = join.Create(t.Context(), s.Config(), "admin", time.Hour)
	wantError(t, err, "a token is for a server or an agent")
	_, err = join.Create(t.Context(), s.Config(), join.RoleAgent, time.Second)
	wantError(t, err, "choose between 1m and 720h")
}
