package orch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-storage/holdfast/test/orch"
)

// scrapes has the module prometheus scraped while the daemons are Holdfast's. Enabling it starts
// the mgr again.
func scrapes(t *testing.T, r *orch.Release) {
	t.Helper()
	for _, command := range []string{
		"config set mgr mgr/prometheus/server_addr 127.0.0.1", "mgr module enable prometheus",
	} {
		if err := says(r, command); err != nil {
			t.Fatal(err)
		}
	}
	client := r.HTTP()
	r.Await("metrics", func() error { return scrape(client) })
	r.Await("ceph orch", func() error { return says(r, "orch ps", "mgr.b") })
	if err := scrape(client); err != nil {
		t.Error(err)
	}
}

func scrape(client *http.Client) error {
	answer, err := client.Get("http://127.0.0.1:9283/metrics")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("ceph_health_status")) {
		return fmt.Errorf("%d: %.300s, %w", answer.StatusCode, text, err)
	}
	return nil
}
