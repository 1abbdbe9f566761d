package fsmap

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestPauses: a mgr whose mount was shut down is left alone until it has let go of the mount.
func TestPauses(t *testing.T) {
	now, p := time.Now(), Pauses{}
	p.Note("busy", syscall.ETIMEDOUT, now)
	p.Note("down", fmt.Errorf("opendir failed: %w", syscall.ESHUTDOWN), now)
	if !p.Over("busy", now) || !p.Over("other", now) {
		t.Errorf("it pauses without need: %v", p)
	}
	if p.Over("down", now.Add(pause-time.Second)) || !p.Over("down", now.Add(pause)) {
		t.Errorf("%v", p)
	}
}
