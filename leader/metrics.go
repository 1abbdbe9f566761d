package leader

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/engine/stats"
)

// Metrics shows what the engine of this process has counted since the process was started, and what
// its Store knows while it leads. The zero value is ready. It is registered once; each Run counts
// in it.
type Metrics struct {
	stats   stats.Stats
	actions action.Stats
	store   atomic.Pointer[Store] // nil while this process does not lead
}

var _ prometheus.Collector = (*Metrics)(nil)

// leads has the metrics tell of a store until the function that it returns is called.
func (l *Metrics) leads(store Store) (end func()) {
	l.store.Store(&store)
	return func() { l.store.Store(nil) }
}

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	runsStarted = metric("holdfast_orchestrations_total", "Orchestrations that this server started as leader.")
	runsFailed  = metric("holdfast_orchestrations_failed_total",
		"Orchestrations that ended with an error, or with a command that failed.")
	runsLocked = metric("holdfast_orchestrations_discarded_total",
		"Orchestrations that were discarded because another run held the cluster's lock.")
	runsRunning = metric("holdfast_orchestrations_running", "Orchestrations in progress.")
	runsWaiting = metric("holdfast_orchestrations_waiting",
		"Clusters whose orchestration is due and waits for others to end.")
	runsDuration = metric("holdfast_orchestration_duration_seconds",
		"How long orchestrations took, by outcome.", "outcome")
	eventsTotal = metric("holdfast_events_total", "Events that this server has written as leader.")

	leadingNow = metric("holdfast_leader", "1 while this server leads, else 0.")
	reportAge  = metric("holdfast_agent_report_age_seconds",
		"Time since the last heartbeat of the agents, as known by the leader: the quantiles over all hosts, 1 being the "+
			"oldest.")
	agentsSilent = metric("holdfast_agents_silent", "Hosts whose agent is disconnected.")
	actionsNow   = metric("holdfast_actions", "Actions by state.", "state")
	actionsStuck = metric("holdfast_actions_stuck", "Actions that the leader can neither write nor continue.")
)

// Describe implements prometheus.Collector.
func (l *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		runsStarted, runsFailed, runsLocked, runsRunning, runsWaiting, runsDuration, eventsTotal, leadingNow, reportAge,
		agentsSilent, actionsNow, actionsStuck,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Metrics) Collect(metrics chan<- prometheus.Metric) {
	put := func(desc *prometheus.Desc, kind prometheus.ValueType, value int64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, float64(value), labels...)
	}
	put(runsStarted, prometheus.CounterValue, l.stats.Runs.Load())
	put(runsFailed, prometheus.CounterValue, l.stats.Failed.Load())
	put(runsLocked, prometheus.CounterValue, l.stats.Discarded.Load())
	put(runsRunning, prometheus.GaugeValue, l.stats.Running.Load())
	put(runsWaiting, prometheus.GaugeValue, l.stats.Waiting.Load())
	put(eventsTotal, prometheus.CounterValue, l.stats.Events.Load())
	for outcome, d := range l.stats.Ended() {
		metrics <- histogram(runsDuration, d, outcome)
	}
	leads := l.store.Load()
	if leads == nil {
		put(leadingNow, prometheus.GaugeValue, 0)
		return
	}
	store := *leads
	put(leadingNow, prometheus.GaugeValue, 1)
	metrics <- summary(reportAge, store.ReportAges())
	put(agentsSilent, prometheus.GaugeValue, int64(store.SilentAgents()))
	put(actionsStuck, prometheus.GaugeValue, l.actions.Stuck.Load())
	for state, n := range store.ActionStates() {
		put(actionsNow, prometheus.GaugeValue, int64(n), string(state))
	}
}

func histogram(desc *prometheus.Desc, d stats.Durations, labels ...string) prometheus.Metric {
	buckets := map[float64]uint64{}
	for bound, n := range d.Up {
		buckets[bound.Seconds()] = n
	}
	return prometheus.MustNewConstHistogram(desc, d.Count, d.Sum.Seconds(), buckets, labels...)
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
