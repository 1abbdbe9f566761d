package etcd

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

// publishMetrics shows etcd's metrics at /metrics of the API, where everything else that the server counts is. The two
// libraries keep them in registries of their own.
var publishMetrics = sync.OnceFunc(func() { legacyregistry.RawMustRegister(metrics{}, fencedWrites) })

// shown are the metrics of the member itself. The API server has some of its own about its requests to etcd.
var shown = []string{"etcd_server_", "etcd_mvcc_", "etcd_disk_", "etcd_network_"}

// metrics hands on what etcd registered.
type metrics struct{}

// Describe says nothing: what there is follows from etcd.
func (metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (metrics) Collect(out chan<- prometheus.Metric) {
	families, _ := prometheus.DefaultGatherer.Gather() // what one part cannot tell the others still do
	for _, family := range families {
		if !slices.ContainsFunc(shown, func(p string) bool { return strings.HasPrefix(family.GetName(), p) }) {
			continue
		}
		desc := prometheus.NewDesc(family.GetName(), family.GetHelp(), nil, nil)
		for _, m := range family.GetMetric() {
			out <- copied{desc, m}
		}
	}
}

// copied is a metric as it was gathered.
type copied struct {
	desc *prometheus.Desc
	from *dto.Metric
}

func (c copied) Desc() *prometheus.Desc { return c.desc }

func (c copied) Write(to *dto.Metric) error {
	to.Label, to.Gauge, to.Counter, to.Summary, to.Histogram, to.Untyped = c.from.Label, c.from.Gauge, c.from.Counter, c.from.Summary, c.from.Histogram, c.from.Untyped
	return nil
}
