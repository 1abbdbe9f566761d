package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockedOut: each command says what it may mean that the servers do not accept the kubeconfig, or that it does not accept them, and what to do; its exit code stays.
func TestLockedOut(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
	})
	plain, other := httptest.NewServer(refuse), httptest.NewTLSServer(refuse)
	defer plain.Close()
	defer other.Close()
	const says = "the servers refuse the certificate of the kubeconfig"
	for name, server := range map[string]string{"not let in": plain.URL, "of another authority": other.URL} {
		p := reaching(t, server)
		for _, command := range []string{
			"get hosts", "status", "why host/h1", "quorum", "host list", "action list", "token create", "delete storagecluster c", "ca show", "backup " + filepath.Join(t.TempDir(), "b"),
		} {
			t.Run(name+" "+strings.Fields(command)[0], func(t *testing.T) {
				out := p.must(t, exitFailed, "", strings.Fields(command), says, "'holdfast ca rotate'", "copy /var/lib/holdfast/admin.kubeconfig", "'holdfast kubeconfig create'")
				if n := strings.Count(out, says); n != 1 {
					t.Errorf("it is said %d times:\n%s", n, out)
				}
			})
		}
	}
}
