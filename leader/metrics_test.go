package leader

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// TestMetrics_notLeading shows what a server that does not lead has counted.
func TestMetrics_notLeading(t *testing.T) {
	l := &Metrics{}
	l.stats.Runs.Add(3)
	l.stats.Events.Add(2)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(l); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	want := map[string]float64{
		"holdfast_orchestrations_total": 3, "holdfast_orchestrations_failed_total": 0, "holdfast_orchestrations_discarded_total": 0,
		"holdfast_orchestrations_running": 0, "holdfast_orchestrations_waiting": 0, "holdfast_events_total": 2, "holdfast_leader": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSummary(t *testing.T) {
	var ages []time.Duration
	for n := range 200 {
		ages = append(ages, time.Duration(200-n)*time.Second)
	}
	var m dto.Metric
	if err := summary(reportAge, ages).Write(&m); err != nil {
		t.Fatal(err)
	}
	got := map[float64]float64{}
	for _, q := range m.GetSummary().GetQuantile() {
		got[q.GetQuantile()] = q.GetValue()
	}
	if diff := cmp.Diff(map[float64]float64{0.5: 101, 0.99: 199, 1: 200}, got); diff != "" {
		t.Error(diff)
	}
}
