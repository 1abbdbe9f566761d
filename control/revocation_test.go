package control_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// host is one that joined.
type host struct {
	config *rest.Config
	keyID  string
}

// newHost makes a Host and a certificate for it, as a join does.
func newHost(t *testing.T, s *control.Server, c control.Config, name string) host {
	t.Helper()
	config := configAs(t, s, c, join.HostLeaf(name))
	cert, err := pki.ParseCert(config.CertData)
	if err != nil {
		t.Fatal(err)
	}
	h := host{config, pki.Fingerprint(cert)}
	hosts, err := join.NewHosts(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.Register(t.Context(), name, h.keyID); err != nil {
		t.Fatal(err)
	}
	return h
}

func nodes(name string) *api.Host { return &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// TestRevocation: a host whose Host is deleted, or belongs to another key, is out as soon as its watches end, which is at once.
// Nobody else notices.
func TestRevocation(t *testing.T) {
	s, c := sharedServer(t)
	admin := newClient(t, s.Config())
	for _, test := range []struct {
		name, want string
		revoke     func(h *api.Host) error
	}{
		{"deleted", "was deleted", func(h *api.Host) error { return admin.Delete(t.Context(), h) }},
		{"another-key", "joined again with another key", func(h *api.Host) error {
			patch := client.MergeFrom(h.DeepCopy())
			h.Annotations = map[string]string{access.HostKey: "0000"}
			return admin.Patch(t.Context(), h, patch)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, in := newHost(t, s, c, "out-"+test.name), newHost(t, s, c, "in-"+test.name)
			outside, inside := watchOwn(t, out.config, "out-"+test.name), watchOwn(t, in.config, "in-"+test.name)
			h, client := nodes("out-"+test.name), newClient(t, out.config)
			if err := admin.Get(t.Context(), key("", h.Name), h); err != nil {
				t.Fatal(err)
			}
			if err := client.Get(t.Context(), key("", h.Name), nodes("")); err != nil {
				t.Fatal(err)
			}
			if err := test.revoke(h); err != nil {
				t.Fatal(err)
			}
			if !ends(outside) {
				t.Error("the watch of a revoked host goes on")
			}
			err := client.Get(t.Context(), key("", h.Name), nodes(""))
			wantError(t, err, test.want)
			wantError(t, err, "holdfast token create")
			if !apierrors.IsUnauthorized(err) {
				t.Errorf("got %v, want unauthorized", err)
			}
			if err := newClient(t, in.config).Get(t.Context(), key("", "in-"+test.name), nodes("")); err != nil {
				t.Errorf("another host: %v", err)
			}
			select {
			case _, open := <-inside:
				if !open {
					t.Error("the watch of another host ended")
				}
			default:
			}
		})
	}
}

// watchOwn watches a host's own Host, and returns once the watch runs.
func watchOwn(t *testing.T, config *rest.Config, name string) <-chan struct{} {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: newClient(t, config).Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), &api.HostList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	<-w.ResultChan() // the Host as it is
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range w.ResultChan() {
		}
	}()
	return ended
}

func ends(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

// TestRevocation_server: the deletion of a server's own Host locks its agent out, never the server; its next start brings the
// Host back.
func TestRevocation_server(t *testing.T) {
	t.Parallel()
	c := newConfig(t, t.TempDir(), "only")
	c.Init = true
	s, stop := start(t, c)
	if _, err := endpoints.List(t.Context(), s.AgentConfig()); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, s.Config()).Delete(t.Context(), nodes("only")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if _, err := endpoints.List(t.Context(), s.AgentConfig()); apierrors.IsUnauthorized(err) {
			return nil
		}
		return errStillReady
	})
	newNamespace(t, newClient(t, s.Config()))
	stop()
	c.Init = false
	s, _ = start(t, c)
	if _, err := endpoints.List(t.Context(), s.AgentConfig()); err != nil {
		t.Errorf("the server's agent after a start: %v", err)
	}
}

// TestRejoin: a host that was deleted stays out with the token that it used, and comes back with a new one, under the key that
// it had.
func TestRejoin(t *testing.T) {
	s, _ := sharedServer(t)
	dir, token := t.TempDir(), newToken(t, s, join.RoleAgent)
	if err := joinAgent(t, dir, "comes-back", token); err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, s.Config()).Delete(t.Context(), nodes("comes-back")); err != nil {
		t.Fatal(err)
	}
	wantError(t, joinAgent(t, dir, "", ""), "asked for the client to provide credentials")
	wantError(t, joinAgent(t, dir, "", token), "was deleted since: create another token")
	if err := joinAgent(t, dir, "", newToken(t, s, join.RoleAgent)); err != nil {
		t.Errorf("with a new token: %v", err)
	}
	if err := joinAgent(t, dir, "", ""); err != nil {
		t.Errorf("without a token, afterwards: %v", err)
	}
}

// TestExpired: an agent that slept through the end of its certificate says what to do, and that helps.
func TestExpired(t *testing.T) {
	s, c := sharedServer(t)
	dir := t.TempDir()
	if err := joinAgent(t, dir, "sleeper", newToken(t, s, join.RoleAgent)); err != nil {
		t.Fatal(err)
	}
	authority, err := pki.OpenAuthority(c.DataDir + "/pki")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := pki.LoadPair(control.HostDir(dir), "host")
	if err != nil {
		t.Fatal(err)
	}
	old, err := authority.Signing(time.Hour).Issue(join.HostLeaf("sleeper"), pair.Key.Public(), time.Now().Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := pki.SaveCert(control.HostDir(dir), "host", old); err != nil {
		t.Fatal(err)
	}
	servers, err := endpoints.Open(control.HostDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if got := servers.Expired(time.Now()); got == "" {
		t.Error("the agent does not say that its certificate has ended")
	}
	if err := joinAgent(t, dir, "", ""); err == nil {
		t.Error("an expired certificate was taken")
	}
	if err := joinAgent(t, dir, "", newToken(t, s, join.RoleAgent)); err != nil {
		t.Errorf("with a token: %v", err)
	}
}
