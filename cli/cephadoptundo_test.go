package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

// TestUndo has an agent that is silent: who waits is told, and comes to the end as soon as all is gone, or by saying it again.
func TestUndo(t *testing.T) {
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
	b.expect("ceph adopt c --undo --timeout 1s "+approve, exitTimeout, "still being forgotten, and waits for the agent of host h1, which is silent, to forget mon.a", "Say it again")
	b.must(b.client.Get(b.Context(), client.ObjectKeyFromObject(cluster), cluster))
	cluster.Finalizers = nil
	released := make(chan error, 1)
	time.AfterFunc(time.Second, func() { released <- b.client.Update(b.Context(), cluster) })
	b.expect("ceph adopt c --undo --timeout 1m "+approve, exitOK, "is forgotten; Ceph runs as before")
	b.must(<-released)
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
	for _, want := range []string{"host h1 to forget mon.a; ", "host h2, which is silent, to forget osd.3, osd.4: start it there"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if text := unforgotten(nil, hosts); text != "the leader to forget the cluster" {
		t.Error(text)
	}
}
