package store_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// BenchmarkObjects_View makes the view of one of four clusters on 1,000 hosts with 10,000 daemons.
func BenchmarkObjects_View(b *testing.B) {
	o := &engine.Objects{}
	for c := range 4 {
		o.Clusters = append(o.Clusters, api.StorageCluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      fmt.Sprint("c", c),
		}})
	}
	for h := range 1000 {
		host, cluster := fmt.Sprintf("h%04d", h*7919%1000), fmt.Sprint("c", h%4)
		o.Hosts = append(o.Hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}})
		for d := range 10 {
			o.Daemons = append(o.Daemons, api.Daemon{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(host, d)},
				Spec: api.DaemonSpec{
					Cluster: cluster, Host: host, Devices: []api.DaemonDevice{{ID: fmt.Sprint("disk", d)}},
				},
			})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.View(types.NamespacedName{Namespace: "default", Name: "c1"}); err != nil {
			b.Fatal(err)
		}
	}
}
