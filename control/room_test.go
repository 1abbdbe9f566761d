package control

import (
	"strings"
	"testing"
)

func TestRoomIn(t *testing.T) {
	if err := roomIn("/d", 512<<20); err != nil {
		t.Error(err)
	}
	if err := roomIn("/d", 100<<20); err == nil || !strings.Contains(err.Error(), "100 MiB are free in /d, and 512 MiB are needed: free some space there") {
		t.Errorf("got %v", err)
	}
}
