package partition

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestUse: a table is changed while nobody uses the disk, several use it at a time, and who waits with two disks waits for nobody who waits for it.
func TestUse(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	first, err := Use(t.Context(), "/u/b", "/u/a", "/u/b")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Use(t.Context(), "/u/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(soon, "/u/a", everybody); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the table of a disk in use may be changed: %v", err)
	}
	second()
	waits := make(chan func())
	go func() {
		free, err := take(t.Context(), "/u/b", everybody)
		if err != nil {
			t.Error(err)
		}
		waits <- free
	}()
	first()
	(<-waits)()
	if free, err := take(t.Context(), "/u/a", everybody); err != nil {
		t.Error(err)
	} else {
		free()
	}
}
