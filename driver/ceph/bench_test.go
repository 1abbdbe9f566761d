package ceph

import (
	"fmt"
	"testing"
)

// BenchmarkPlan_steady plans a large cluster in which nothing is to be done.
func BenchmarkPlan_steady(b *testing.B) {
	for _, hosts := range []int{3, 100, 250} {
		b.Run(fmt.Sprintf("%d hosts", hosts), func(b *testing.B) {
			w := newWorld(3, 2)
			for i := 1; i <= hosts; i++ {
				w.host(i, 10)
				n := w.node(i)
				for d := range 10 {
					n.Spec.Devices = append(n.Spec.Devices, fmt.Sprintf("wwn-%d%d", i, d))
				}
			}
			f := withFake(w)
			if p := f.settle(b); !p.Done {
				b.Fatal(p.Status.Reasons)
			}
			v, _, err := f.observed(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if p := f.driver.Plan(v, f.now); !p.Done {
					b.Fatal(decisions(p))
				}
			}
		})
	}
}
