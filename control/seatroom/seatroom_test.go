package seatroom

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	if err := check("/d", 512<<20); err != nil {
		t.Error(err)
	}
	if err := check("/d", 100<<20); err == nil ||
		!strings.Contains(err.Error(), "100 MiB are free in /d, and 512 MiB are needed: free some space there") {
		t.Errorf("got %v", err)
	}
}
