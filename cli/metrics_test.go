package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/engine/stats"
)

// TestQuorum_metric: the server that leads etcd shows how its members are, and the others nothing.
func TestQuorum_metric(t *testing.T) {
	status := &quorumview.Status{
		Want: 3, Spare: 1, Standbys: []string{"d"}, Full: []quorumview.Full{{Name: "e", Problem: "1 of 10 GiB is free"}},
		Members: []quorumview.Member{{Name: "a", Voter: true, Answers: true}, {Name: "b", Voter: true}, {Name: "c", Answers: true}},
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(quorum{func() *quorumview.Status { return status }}); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"holdfast_quorum_members voter": 2, "holdfast_quorum_members learner": 1, "holdfast_quorum_members standby": 2,
		"holdfast_quorum_members_silent": 1, "holdfast_quorum_members_wanted": 3, "holdfast_quorum_failures_tolerated": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	status = nil
	if families, err = registry.Gather(); err != nil || len(families) > 0 {
		t.Errorf("a server that does not lead shows %v, %v", families, err)
	}
}

func TestCertificates_metric(t *testing.T) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(certificates{func() map[string]time.Time {
		return map[string]time.Time{"host": time.Unix(12, 0)}
	}}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %d metrics, %v", len(families), err)
	}
	got := families[0].String()
	if !strings.Contains(got, "holdfast_certificate_expiry_timestamp_seconds") || !strings.Contains(got, `"host"`) || !strings.Contains(got, "gauge:{value:12}") {
		t.Errorf("got %s", got)
	}
}

// TestMetricsPage compares docs/reference/metrics.md with the names in the code.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = true
	}
	shown := map[string]bool{}
	for _, pattern := range []string{"*.go", "../leader/*.go", "../control/*.go", "../control/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(`"(holdfast_[a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
				shown[m[1]] = true
			}
		}
	}
	if diff := cmp.Diff(shown, documented); diff != "" {
		t.Errorf("metrics of the code (-) and of docs/reference/metrics.md (+):\n%s", diff)
	}
	for _, outcome := range stats.Outcomes() {
		if !strings.Contains(string(page), "`"+outcome+"`") {
			t.Errorf("the outcome %s is not in docs/reference/metrics.md", outcome)
		}
	}
}
