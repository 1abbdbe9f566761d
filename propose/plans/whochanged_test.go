package plans

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhoChanged: the last one; of those who wrote in the same second, all.
func TestWhoChanged(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)}
	}
	entry := func(manager string, at *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: at}
	}
	status := metav1.ManagedFieldsEntry{Manager: "engine", Time: at(9), Subresource: "status"}
	for want, entries := range map[string][]metav1.ManagedFieldsEntry{
		"by another user":                     {status, entry("ann", nil)},
		"by bob at 2026-01-01T00:00:02Z":      {entry("ann", at(1)), entry("bob", at(2)), status},
		"by ann at 2026-01-01T00:00:03Z":      {entry("ann", at(3)), entry("bob", at(2))},
		"by a or bob at 2026-01-01T00:00:02Z": {entry("bob", at(2)), entry("a", at(2)), entry("bob", at(2)), entry("ann", at(1))},
	} {
		if got := WhoChanged(&metav1.ObjectMeta{ManagedFields: entries}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
