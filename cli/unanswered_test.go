package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/holdfast-storage/holdfast/control/quorumview"
)

const saysUnanswered = "no server answered"

// reaching is somebody whose kubeconfig names this server.
func reaching(t *testing.T, server string) *person {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	p := &person{namespace: "default", kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := clientcmd.WriteToFile(*config, p.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestUnanswered: each command says, where no server answers or none has a quorum, what that means and who can say more; its exit code stays.
func TestUnanswered(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusGatewayTimeout
		if r.URL.Path == quorumview.Path {
			status = http.StatusMisdirectedRequest
		}
		http.Error(w, "no quorum", status)
	}))
	defer slow.Close()
	work := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(work, []byte("apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, ceph: {}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]string{"none listens": "http://" + l.Addr().String(), "none has a quorum": slow.URL} {
		p := reaching(t, server)
		for _, command := range []string{"get hosts", "status", "why host/h1", "quorum", "host list", "action list", "token create", "delete storagecluster c", "apply -f " + work} {
			t.Run(name+" "+strings.Fields(command)[0], func(t *testing.T) {
				out := p.must(t, exitFailed, "", strings.Fields(command), saysUnanswered, "run 'holdfast doctor', which checks each server")
				if n := strings.Count(out, saysUnanswered); n != 1 {
					t.Errorf("it is said %d times:\n%s", n, out)
				}
			})
		}
	}
}

// TestUnanswered_errors: which errors mean it, and which do not.
func TestUnanswered_errors(t *testing.T) {
	pools := schema.GroupResource{Resource: "pools"}
	for _, test := range []struct {
		name       string
		err        error
		want, bare bool
	}{
		{"too late", &url.Error{Op: "Get", URL: "https://h1:7440/api", Err: context.DeadlineExceeded}, true, true},
		{"too late, for no request", fmt.Errorf("while asking: %w", context.DeadlineExceeded), false, true},
		{"stopped by a person", &url.Error{Op: "Get", URL: "https://h1:7440/api", Err: context.Canceled}, false, false},
		{"another authority", &url.Error{Op: "Get", URL: "https://h1:7440/api", Err: x509.UnknownAuthorityError{}}, false, false},
		{"etcd has no leader", apierrors.NewInternalError(errors.New("etcdserver: no leader")), true, true},
		{"another fault", apierrors.NewInternalError(errors.New("a bug")), false, false},
		{"not there", apierrors.NewNotFound(pools, "p"), false, false},
		{"refused", apierrors.NewForbidden(pools, "p", errors.New("no")), false, false},
		{"a storage system's port", &net.OpError{Op: "dial", Err: errors.New("refused")}, false, false},
	} {
		if got := unanswered(test.err, false); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
		if got := unanswered(test.err, true); got != test.bare {
			t.Errorf("%s, where a time counts that names no request: %v", test.name, got)
		}
	}
}
