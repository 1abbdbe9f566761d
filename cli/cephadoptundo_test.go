package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

// TestUndo has an agent that is silent: who waits is told, and comes to the end as soon as all is gone, or by saying it again.
func TestUndo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addHost("h1", metav1.ConditionFalse)
	cluster := &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", Annotations: map[string]string{ceph.AnnotationAdopted: "1-2"}, Finalizers: []string{"holdfast.io/test"}},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Interval: metav1.Duration{Duration: 10 * time.Second}, Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}, Mgr: api.CephMgrSpec{Count: 1}},
		},
	}
	b.must(b.client.Create(b.Context(), cluster))
	b.must(b.client.Create(b.Context(), &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-mon-a"},
		Spec:       api.DaemonSpec{Cluster: "c", Type: ceph.TypeMon, ID: "a", Host: "h1", State: api.WantWatched, Command: []string{"true"}},
	}))
	_, out := b.run("", "ceph", "adopt", "c", "--undo")
	approve := regexp.MustCompile(`--approve [0-9a-f]+`).FindString(out)
	b.expect("ceph adopt c --undo --timeout 20s "+approve, exitTimeout, "the removal of storagecluster/c continues and waits for the agent of host h1, which is disconnected, to release mon.a", "run the command again")
	release := func() {
		if err := b.client.Patch(b.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			b.Error(err)
		}
	}
	b.expectThen("waiting for the agent of host h1", release,
		"ceph adopt c --undo --timeout 5m "+approve, exitOK, "was removed from Holdfast; Ceph runs as before")
}

// Who may not read all that is waited for is told which right is missing, before anything is deleted.
func TestUndo_noRight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cluster := &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", Annotations: map[string]string{ceph.AnnotationAdopted: "1-2"}},
		Spec:       api.StorageClusterSpec{Type: api.StorageCeph, Interval: metav1.Duration{Duration: 10 * time.Second}, Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}}},
	}
	b.must(b.client.Create(b.Context(), cluster))
	_, out := b.run("", "ceph", "adopt", "c", "--undo")
	approve := regexp.MustCompile(`--approve [0-9a-f]+`).FindString(out)
	for _, resource := range []string{"daemons", "actions", "storagestatuses"} {
		restricted := b.without(resource)
		var out bytes.Buffer
		args := append(strings.Fields("ceph adopt c --undo --timeout 5m "+approve), "--kubeconfig", restricted)
		if code := run(b.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &out}); code != exitRefused || !strings.Contains(out.String(), `cannot list resource "`+resource+`"`) {
			t.Errorf("without the right to list %s: %d, %s", resource, code, out.String())
		}
		if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.DeletionTimestamp != nil {
			t.Fatalf("without the right to list %s the cluster was deleted: %v", resource, err)
		}
	}
}

// without is the path of a kubeconfig by which a resource cannot be listed, as with the roles of a Kubernetes cluster.
func (b *bench) without(resource string) string {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(b.dir, "admin.kubeconfig"))
	b.must(err)
	transport, err := rest.TransportFor(config)
	b.must(err)
	target, err := url.Parse(config.Host)
	b.must(err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != resource {
			proxy.ServeHTTP(w, r)
			return
		}
		status := apierrors.NewForbidden(api.GroupVersion.WithResource(resource).GroupResource(), "", fmt.Errorf("User \"u\" cannot list resource %q", resource)).Status()
		status.Kind, status.APIVersion = "Status", "v1"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(status)
	}))
	b.Cleanup(server.Close)
	file := filepath.Join(b.TempDir(), "kubeconfig")
	b.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "c",
	}, file))
	return file
}

// Who waits for silent agents is told which, and what to do.
func TestUnforgotten(t *testing.T) {
	daemon := func(host, kind, id string) api.Daemon {
		return api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: "ceph-" + kind + "-" + id}, Spec: api.DaemonSpec{Host: host, Cluster: "ceph", Type: "ceph-" + kind, ID: id}}
	}
	host := func(name string, heard metav1.ConditionStatus) api.Host {
		return api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: api.HostStatus{Conditions: []metav1.Condition{{Type: api.HostAgentConnected, Status: heard}}}}
	}
	hosts := api.HostList{Items: []api.Host{host("h1", metav1.ConditionTrue), host("h2", metav1.ConditionFalse)}}
	text := unforgotten([]api.Daemon{daemon("h2", "osd", "3"), daemon("h1", "mon", "a"), daemon("h2", "osd", "4")}, hosts)
	for _, want := range []string{"host h1 to release mon.a; ", "host h2, which is disconnected, to release osd.3, osd.4: start it ("} {
		if !strings.Contains(text, want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if text := unforgotten(nil, hosts); text != "the leader to remove the cluster" {
		t.Error(text)
	}
}
