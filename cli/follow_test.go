package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// api401 serves whoever has the token "good", and keeps what it was told.
type api401 struct {
	*httptest.Server
	told []string
}

func newAPI401(t *testing.T) *api401 {
	t.Helper()
	a := &api401{}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a body that is cut off is another one than is wanted
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		a.told = append(a.told, token+" "+string(body))
		if token != "good" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// kubeconfig is one that reaches a server with a token, and believes an authority.
func (a *api401) kubeconfig(server string, ca []byte, token string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: %s}}]\nusers: [{name: u, user: {token: %s}}]\n",
		server, base64.StdEncoding.EncodeToString(ca), token)
}

// TestFollower: a command that runs goes on by a kubeconfig that was written anew, and sends nothing again that somebody may have done.
func TestFollower(t *testing.T) {
	other, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI401(t)
	own := pki.EncodeCert(a.Certificate())
	closed := httptest.NewServer(nil)
	closed.Close()
	good := a.kubeconfig(a.URL, own, "good")
	for _, test := range []struct {
		name          string
		before, after []byte
		told          []string
		fails         bool
	}{
		{"the same", good, good, []string{"good body"}, false},
		{"another credential", a.kubeconfig(a.URL, own, "old"), good, []string{"old body", "good body"}, false},
		{"another authority", a.kubeconfig(a.URL, other.CertPEM(), "good"), good, []string{"good body"}, false},
		{"another server", a.kubeconfig(closed.URL, own, "good"), good, []string{"good body"}, false},
		{"refused as before", a.kubeconfig(a.URL, own, "old"), a.kubeconfig(a.URL, own, "old"), []string{"old body"}, true},
		{"refused again", a.kubeconfig(a.URL, own, "old"), a.kubeconfig(a.URL, own, "older"), []string{"old body", "older body"}, true},
		{"a file that is none", a.kubeconfig(a.URL, own, "old"), []byte("{"), []string{"old body"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a.told = nil
			path := filepath.Join(t.TempDir(), "kubeconfig")
			write := func(text []byte) {
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(test.before)
			config, err := (&globals{kubeconfig: path}).restConfig()
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			write(test.after)
			post := func() (failed bool) {
				response, err := client.Post(config.Host+"/x", "text/plain", strings.NewReader("body"))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				return response.StatusCode != http.StatusOK
			}
			if post() != test.fails || !slices.Equal(a.told, test.told) {
				t.Errorf("it was told %q, want %q", a.told, test.told)
			}
			if a.told = nil; !test.fails && (post() || !slices.Equal(a.told, []string{"good body"})) {
				t.Errorf("then it was told %q", a.told)
			}
		})
	}
}
