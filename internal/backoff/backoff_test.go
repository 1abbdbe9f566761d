package backoff

import (
	"fmt"
	"testing"
	"time"
)

// A pause doubles up to its bound, at least half of it is kept, and things that fail together come back one by one.
func TestPause(t *testing.T) {
	for failures := 1; failures < 12; failures++ {
		whole := min(first<<(failures-1), most)
		seen := map[time.Duration]bool{}
		for i := range 100 {
			d := Pause(fmt.Sprintf("ns/c%d", i), failures)
			if d < whole/2 || d > whole+1 {
				t.Fatalf("c%d pauses %v after %d failures, want %v to %v", i, d, failures, whole/2, whole)
			}
			seen[d.Truncate(whole/40)] = true
		}
		if len(seen) < 15 {
			t.Errorf("after %d failures 100 things come back at only %d of 20 times", failures, len(seen))
		}
	}
}
