package led

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// state is what the API says of who leads and where servers are.
func state(holder string, servers map[string]string) []runtime.Object {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease}}
	lease.Spec.HolderIdentity = ptr.To(holder)
	list := &corev1.ConfigMap{Data: servers}
	list.Namespace, list.Name = api.SystemNamespace, endpoints.ServersName
	return []runtime.Object{lease, list}
}

// ask asks a server.
func ask(t *testing.T, h http.Handler, headers ...string) wire.Reply {
	t.Helper()
	w := httptest.NewRecorder()
	const path = "/holdfast/v1/orch/ns/ceph/get_hosts"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
	for _, header := range headers {
		r.Header.Set(header, "x")
	}
	h.ServeHTTP(w, r)
	var reply wire.Reply
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return reply
}

// TestHandler: the server that leads answers, another one passes the call on to it, once, and
// without a leader the answer is an error in a sentence.
func TestHandler(t *testing.T) {
	leads, follows := &Leader{}, &Leader{}
	first := httptest.NewTLSServer(&Handler{Leader: leads, Server: "h1", Client: fake.NewClientset(state("h1_x", nil)...)})
	defer first.Close()
	address := strings.TrimPrefix(first.URL, "https://")
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a test's
	defer transport.CloseIdleConnections()
	second := &Handler{
		Leader: follows, Server: "h2", Transport: transport,
		Client: fake.NewClientset(state("h1_x", map[string]string{"h1": address})...),
	}
	if r := ask(t, second); r.Error != NoLeader { // the Lease says h1, which has ended
		t.Errorf("%+v", r)
	}
	end := leads.Lead(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := json.Marshal(r.URL.Path)
		wire.Write(w, http.StatusOK, wire.Reply{Result: text})
	}))
	if r := ask(t, second); string(r.Result) != `"/holdfast/v1/orch/ns/ceph/get_hosts"` {
		t.Errorf("%+v", r)
	}
	if r := ask(t, second, forwarded); r.Error != NoLeader {
		t.Errorf("it was passed on twice: %+v", r)
	}
	end()
	if r := ask(t, second); r.Error != NoLeader {
		t.Errorf("%+v", r)
	}
	for holder, servers := range map[string]map[string]string{"h2_x": nil, "": nil, "h3_x": {"h1": address}} {
		second.Client = fake.NewClientset(state(holder, servers)...)
		if r := ask(t, second); r.Error == "" || r.Errno != -11 {
			t.Errorf("%s: %+v", holder, r)
		}
	}
	first.Close()
	second.Client = fake.NewClientset(state("h1_x", map[string]string{"h1": address})...)
	if r := ask(t, second); !strings.Contains(r.Error, "does not answer") {
		t.Errorf("%+v", r)
	}
}

// TestLeader_next: a leader that ends late takes nothing from the next one.
func TestLeader_next(t *testing.T) {
	l := &Leader{}
	answers := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			wire.Write(w, http.StatusOK, wire.Reply{Error: text})
		})
	}
	endFirst := l.Lead(answers("first"))
	l.Lead(answers("second"))
	endFirst()
	if r := ask(t, &Handler{Leader: l}); r.Error != "second" {
		t.Errorf("%+v", r)
	}
}
