package cli

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// leading shows what this server knows while it leads, and nothing but that it does not lead while it does not.
type leading struct {
	stats engine.Stats
	store atomic.Pointer[bare.Store]
}

var (
	leadingNow = prometheus.NewDesc("holdfast_leader", "1 while this server leads, else 0.", nil, nil)
	reportAge  = prometheus.NewDesc("holdfast_agent_report_age_seconds",
		"How long ago the agents of the hosts were last heard, as the leader knows: the quantiles over all hosts, 1 being the oldest.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *leading) Describe(descs chan<- *prometheus.Desc) {
	descs <- leadingNow
	descs <- reportAge
}

// Collect implements prometheus.Collector.
func (l *leading) Collect(metrics chan<- prometheus.Metric) {
	store := l.store.Load()
	if store == nil {
		metrics <- prometheus.MustNewConstMetric(leadingNow, prometheus.GaugeValue, 0)
		return
	}
	metrics <- prometheus.MustNewConstMetric(leadingNow, prometheus.GaugeValue, 1)
	metrics <- summary(reportAge, store.ReportAges())
}

// summary is a summary of durations: how many there are, and their quantiles.
func summary(desc *prometheus.Desc, all []time.Duration) prometheus.Metric {
	slices.Sort(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.99, 1} {
		if n := len(all); n > 0 {
			quantiles[q] = all[min(int(q*float64(n)), n-1)].Seconds()
		}
	}
	return prometheus.MustNewConstSummary(desc, uint64(len(all)), sum.Seconds(), quantiles)
}
