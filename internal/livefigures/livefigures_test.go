package livefigures_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
)

var ceph = types.NamespacedName{Namespace: "default", Name: "ceph"}

// asked is a leader that knows one cluster, and counts how often it asks.
func asked(times *atomic.Int32) *livefigures.Handler {
	return &livefigures.Handler{Ask: func(_ context.Context, c types.NamespacedName) (*api.StorageFigures, error) {
		times.Add(1)
		switch c.Name {
		case "ceph":
			return &api.StorageFigures{RawBytes: 7, ClientIO: &api.ClientIO{ReadsPerSecond: 3}}, nil
		case "silent":
			return nil, errors.New("no mon answers")
		}
		return nil, nil
	}}
}

func reader(t *testing.T, h http.Handler) *livefigures.Reader {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var lease client.Object = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.LeaderLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("operator-1_4711")},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()
	r, err := livefigures.NewReader(func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRead: those who look within a second share one question, and where there are no figures that
// is an error.
func TestRead(t *testing.T) {
	var times atomic.Int32
	r := reader(t, asked(&times))
	for range 3 {
		f, err := r.Read(t.Context(), ceph)
		if err != nil || f.RawBytes != 7 || f.ClientIO.ReadsPerSecond != 3 {
			t.Fatalf("%+v, %v", f, err)
		}
	}
	if n := times.Load(); n > 2 {
		t.Errorf("asked %d times", n)
	}
	for _, name := range []string{"silent", "unknown"} {
		times.Store(0)
		for range 3 {
			if f, err := r.Read(t.Context(), types.NamespacedName{Namespace: "default", Name: name}); err == nil {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if n := times.Load(); n > 2 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

// TestRead_bare: where a server answers, also that there are no figures, no pod is asked for.
func TestRead_bare(t *testing.T) {
	var times atomic.Int32
	r := reader(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, livefigures.Prefix) {
			t.Errorf("asked for %s", q.URL.Path)
		}
		asked(&times).ServeHTTP(w, q)
	}))
	for _, name := range []string{"ceph", "silent", "unknown"} {
		_, _ = r.Read(t.Context(), types.NamespacedName{Namespace: "default", Name: name})
	}
}

// TestReadAll: the questions for several clusters wait at the same time, and each cluster has its
// own answer.
func TestReadAll(t *testing.T) {
	var times atomic.Int32
	var waiting sync.WaitGroup
	waiting.Add(2)
	r := reader(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		waiting.Done()
		waiting.Wait() // until the other one asks, too
		asked(&times).ServeHTTP(w, q)
	}))
	all := r.ReadAll(t.Context(), []types.NamespacedName{{Namespace: "default", Name: "silent"}, ceph})
	if len(all) != 2 || all[0] != nil || all[1] == nil || all[1].RawBytes != 7 {
		t.Errorf("%+v", all)
	}
}

// TestRead_pod: an API server of Kubernetes knows no such path, and passes on what is asked of the
// operator that leads.
func TestRead_pod(t *testing.T) {
	const proxy = "/api/v1/namespaces/" + api.SystemNamespace + "/pods/http:operator-1:8081/proxy"
	var times atomic.Int32
	r := reader(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rest, ok := strings.CutPrefix(q.URL.Path, proxy)
		if !ok {
			http.NotFound(w, q)
			return
		}
		q.URL.Path = rest
		asked(&times).ServeHTTP(w, q)
	}))
	if f, err := r.Read(t.Context(), ceph); err != nil || f.RawBytes != 7 {
		t.Errorf("%+v, %v", f, err)
	}
}
