package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	before := map[string]float64{
		`apiserver_request_total{code="200",resource="leases",subresource="",verb="PATCH"}`: 100,
		`etcd_mvcc_db_total_size_in_bytes`:                                                  1 << 20,
	}
	after := map[string]float64{
		`apiserver_request_total{code="200",resource="leases",subresource="",verb="PATCH"}`:      160,
		`apiserver_request_total{code="201",resource="leases",subresource="",verb="PATCH"}`:      30,
		`apiserver_request_total{code="429",resource="leases",subresource="",verb="PATCH"}`:      30,
		`apiserver_request_total{code="200",resource="daemons",subresource="status",verb="PUT"}`: 3,
		`apiserver_request_total{code="200",resource="daemons",subresource="",verb="LIST"}`:      30,
		`etcd_mvcc_db_total_size_in_bytes`:                                                       3 << 20,
		`etcd_mvcc_db_total_size_in_use_in_bytes`:                                                2 << 20,
	}
	r := &result{}
	r.compare(before, after, 30*time.Second)
	if diff := cmp.Diff(map[string]float64{"PATCH leases": 3, "PUT daemons/status": 0.1, "PATCH leases 429": 1}, r.Writes); diff != "" {
		t.Errorf("writes: %s", diff)
	}
	if r.DatabaseMiB != 3 || r.InUseMiB != 2 || r.GrowthMiBPerMinute != 4 {
		t.Errorf("the database: %+v", r)
	}
	err := r.judge()
	if err == nil || !strings.Contains(err.Error(), "PUT daemons/status") || strings.Contains(err.Error(), "PATCH leases\n") {
		t.Errorf("a write at rest is judged: %v", err)
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*result)
		want   string
	}{
		{"within all bounds", func(*result) {}, ""},
		{"stale", func(r *result) { r.Age.Max = 11 }, "oldest report"},
		{"busy", func(r *result) { r.Rest.Cores = 1.1 }, "in cores"},
		{"large", func(r *result) { r.Rest.ResidentMiB = 1025 }, "memory"},
		{"large later", func(r *result) { r.Later.ResidentMiB = 1025 }, "memory, after some changes"},
		{"large when started anew", func(r *result) { r.Restarted.ResidentMiB = 1025 }, "memory, started anew"},
		{"slow once", func(r *result) { r.Reaction.Event = []float64{0.1, 0.2, 5} }, ""},
		{"slow", func(r *result) { r.Reaction.Order = []float64{1.1, 1.2, 5} }, "daemons are told"},
	} {
		r := &result{Rest: resting{Cores: 0.9, ResidentMiB: 900}}
		r.Age.Max = 9
		tt.change(r)
		err := r.judge()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	got, err := parseMetrics("# HELP x y\nx{a=\"b c\"} 1.5\ny 2e+06\n\n")
	if diff := cmp.Diff(map[string]float64{`x{a="b c"}`: 1.5, "y": 2e6}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := parseMetrics("x one\n"); err == nil {
		t.Error("a value that is no number was taken")
	}
}
