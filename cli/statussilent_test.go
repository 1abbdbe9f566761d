package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestStatus_silentHost: nobody knows how the daemons of a host are whose agent is silent, and status says so as get does, also while it watches.
func TestStatus_silentHost(t *testing.T) {
	t.Parallel()
	p := newHome(t, "hushed")
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "c"}, Spec: api.StorageClusterSpec{Type: api.StorageCeph, Interval: metav1.Duration{Duration: time.Minute}, Ceph: &api.CephSpec{}}}
	if err := p.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"hushed-1", "hushed-2"} {
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "c-" + host}}
		d.Spec = api.DaemonSpec{Cluster: "c", Host: host, Type: "ceph-mon", ID: host, State: api.WantRunning, Command: []string{"true"}}
		if err := p.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		d.Status.State, d.Status.ObservedGeneration = api.DaemonRunning, d.Generation
		if err := p.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	p.silence(t, "hushed-2")
	out := p.must(t, exitOK, "", []string{"status", "c"}, "? mon.hushed-2", "Unknown", "last reported Running; host hushed-2 is disconnected for 60m")
	if !strings.Contains(out, "✓ mon.hushed-1  hushed-1  Running") {
		t.Errorf("a host that is heard:\n%s", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watched := &until{text: "mon.hushed-2 on hushed-2: Unknown, last reported Running", do: cancel}
	g := &globals{kubeconfig: p.kubeconfig, namespace: p.namespace, streams: streams{out: watched}}
	if err := g.status(ctx, []string{"c"}, statusOptions{watch: true}); err != nil {
		t.Errorf("%v:\n%s", err, watched.String())
	}
}

// silence has the API say that the agent of a host is silent for an hour.
func (p *person) silence(t *testing.T, host string) {
	t.Helper()
	h := &api.Host{}
	if err := p.Get(t.Context(), types.NamespacedName{Name: host}, h); err != nil {
		t.Fatal(err)
	}
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
		Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: "Silent", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	})
	if err := p.Status().Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}
