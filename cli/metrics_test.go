package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
