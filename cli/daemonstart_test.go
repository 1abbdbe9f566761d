package cli

import (
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// Clocks differ: what is asked for counts from when the daemon was held back.
func TestAskedAt(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := &api.Daemon{}
	if got := askedAt(d, now); got != "2026-01-02T03:04:05Z" {
		t.Error(got)
	}
	memory.Set(d, memory.HeldSince, "2026-01-02T05:00:00Z")
	if got := askedAt(d, now); got != "2026-01-02T05:00:00Z" {
		t.Error(got)
	}
}
