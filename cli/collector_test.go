package cli

import (
	"runtime"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for _, tt := range []struct {
		now  int
		live uint64
		want int
	}{
		{thrifty, 50 << 20, thrifty}, {thrifty, 90 << 20, thrifty}, {thrifty, 100 << 20, roomy},
		{roomy, 300 << 20, roomy}, {roomy, 90 << 20, roomy}, {roomy, 60 << 20, thrifty},
	} {
		if got := percentFor(tt.now, tt.live); got != tt.want {
			t.Errorf("a heap of %d MiB with GOGC=%d: %d, want %d", tt.live>>20, tt.now, got, tt.want)
		}
	}
}

func TestLiveHeap(t *testing.T) {
	held := make([]byte, 32<<20)
	runtime.GC()
	if live := liveHeap(); live < uint64(len(held)) {
		t.Errorf("%d bytes live, and %d are held", live, len(held))
	}
	runtime.KeepAlive(held)
}
