package propose

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// BenchmarkMake makes the plan of a change of one of four clusters on 1,000 hosts with 10,000 daemons, and its answer.
func BenchmarkMake(b *testing.B) {
	o := &engine.Objects{}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}
	}
	for c := range 4 {
		cluster := api.StorageCluster{ObjectMeta: meta(fmt.Sprint("c", c)), Spec: api.StorageClusterSpec{Type: sim.ToyType}}
		o.Clusters = append(o.Clusters, cluster)
	}
	for h := range 1000 {
		host, cluster := fmt.Sprintf("h%04d", h), fmt.Sprint("c", h%4)
		o.Hosts = append(o.Hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: host, UID: "1"}})
		for d := range 10 {
			o.Daemons = append(o.Daemons, api.Daemon{
				ObjectMeta: meta(fmt.Sprint(host, d)),
				Spec:       api.DaemonSpec{Cluster: cluster, Host: host, Devices: []api.DaemonDevice{{ID: fmt.Sprint("disk", d)}}},
			})
		}
	}
	after := o.Clusters[1].DeepCopy()
	after.Spec.Interval = metav1.Duration{Duration: time.Minute}
	live := plans.Unstructured(engine.KindCluster, &o.Clusters[1])
	r := Request{Operation: api.PlanApply, Targets: []Target{{
		Unstructured: live, Live: live, After: plans.Unstructured(engine.KindCluster, after),
	}}}
	home := Home{
		Objects: o, Drivers: []engine.Driver{sim.NewToy()}, Secrets: func(string) engine.SecretReader { return nil }, Now: time.Unix(1e9, 0),
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := Make(b.Context(), home, r)
		if err != nil {
			b.Fatal(err)
		}
		p.Answer(Room)
	}
}
