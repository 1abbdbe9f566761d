package engine

import (
	"fmt"
	"testing"
	"time"
)

// A pause doubles up to its bound, at least half of it is kept, and things that fail together come back one by one.
func TestBackOff(t *testing.T) {
	for failures := 1; failures < 12; failures++ {
		whole := min(backOffFirst<<(failures-1), backOffMost)
		seen := map[time.Duration]bool{}
		for i := range 100 {
			d := backOff(fmt.Sprintf("ns/c%d", i), failures)
			if d < whole/2 || d > whole+1 {
				t.Fatalf("c%d pauses %v after %d failures, want %v to %v", i, d, failures, whole/2, whole)
			}
			seen[d.Truncate(whole/40)] = true
		}
		if len(seen) < 15 {
			t.Errorf("after %d failures 100 clusters come back at only %d of 20 times", failures, len(seen))
		}
	}
}
