package cli

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/holdfast-storage/holdfast/control"
)

// publish shows what the engine counts and what the leader knows at /metrics of the API, where everything else that the server
// counts is. It is called once in a process.
func publish(now *leading) {
	stats := &now.stats
	legacyregistry.RawMustRegister(now)
	for _, m := range []struct {
		name, help string
		value      *atomic.Int64
	}{
		{"holdfast_orchestrations_total", "Orchestrations that this server has started as leader.", &stats.Runs},
		{"holdfast_orchestrations_failed_total", "Orchestrations that ended by an error.", &stats.Failed},
		{"holdfast_orchestrations_discarded_total", "Orchestrations that were discarded because another run held the cluster's lock.", &stats.Discarded},
	} {
		legacyregistry.RawMustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: m.name, Help: m.help},
			func() float64 { return float64(m.value.Load()) },
		))
	}
}

// certificates shows when certificates end.
type certificates struct{ ends func() map[string]time.Time }

var certificateEnd = prometheus.NewDesc("holdfast_certificate_expiry_timestamp_seconds",
	"When a certificate of this server ends, in seconds since 1970. Each is renewed when two thirds of its life are over.", []string{"name"}, nil)

// Describe implements prometheus.Collector.
func (c certificates) Describe(descs chan<- *prometheus.Desc) { descs <- certificateEnd }

// Collect implements prometheus.Collector.
func (c certificates) Collect(metrics chan<- prometheus.Metric) {
	for name, end := range c.ends() {
		metrics <- prometheus.MustNewConstMetric(certificateEnd, prometheus.GaugeValue, float64(end.Unix()), name)
	}
}

// publishBackups shows when this server took its last backup. It is called once in a process.
func publishBackups(dataDir string) {
	legacyregistry.RawMustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{
			Name: "holdfast_backup_timestamp_seconds",
			Help: "When the newest backup in this server's data directory was taken, in seconds since 1970; 0 when there is none.",
		},
		func() float64 {
			at, err := control.LastBackup(dataDir)
			if err != nil || at.IsZero() {
				return 0
			}
			return float64(at.Unix())
		},
	))
}
