package cli

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/quorumview"
)

// certificates shows when certificates end.
type certificates struct{ ends func() map[string]time.Time }

var certificateEnd = prometheus.NewDesc("holdfast_certificate_expiry_timestamp_seconds",
	"When a certificate of this server expires, in seconds since 1970. Each is renewed after two thirds of its life.",
	[]string{"name"}, nil)

// Describe implements prometheus.Collector.
func (c certificates) Describe(descs chan<- *prometheus.Desc) { descs <- certificateEnd }

// Collect implements prometheus.Collector.
func (c certificates) Collect(metrics chan<- prometheus.Metric) {
	for name, end := range c.ends() {
		metrics <- prometheus.MustNewConstMetric(certificateEnd, prometheus.GaugeValue, float64(end.Unix()), name)
	}
}

// quorum shows how the members of etcd are, on the server whose member leads them.
type quorum struct{ status func() *quorumview.Status }

var (
	quorumMembers = prometheus.NewDesc("holdfast_quorum_members",
		"Servers by their role in etcd: voter, learner or standby. Only the leader of etcd exports it.",
		[]string{"role"}, nil)
	quorumSilent = prometheus.NewDesc("holdfast_quorum_members_silent",
		"Members of etcd that do not answer, or whose disk hangs. Only the leader of etcd exports it.", nil, nil)
	quorumWanted = prometheus.NewDesc("holdfast_quorum_members_wanted",
		"The desired number of members of etcd. Only the leader of etcd exports it.", nil, nil)
	quorumSpare = prometheus.NewDesc("holdfast_quorum_failures_tolerated",
		"How many more members of etcd may fail before the control plane stops. Only the leader of etcd exports it.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (quorum) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{quorumMembers, quorumSilent, quorumWanted, quorumSpare} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (q quorum) Collect(metrics chan<- prometheus.Metric) {
	s := q.status()
	if s == nil {
		return
	}
	roles, silent := map[string]int{"voter": 0, "learner": 0, "standby": len(s.AllStandbys())}, 0
	for _, m := range s.Members {
		role := "learner"
		if m.Voter {
			role = "voter"
		}
		roles[role]++
		if !m.Answers {
			silent++
		}
	}
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	for role, n := range roles {
		gauge(quorumMembers, n, role)
	}
	gauge(quorumSilent, silent)
	gauge(quorumWanted, s.Want)
	gauge(quorumSpare, s.Spare)
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
