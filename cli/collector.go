package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A server is idle nearly always, on a machine whose memory is meant for storage: while its heap is small, a seventh less memory is
// worth a tenth more CPU time during the seconds of a bring-up. The server of a large fleet is not idle: a third of its CPU time
// would go into collecting garbage.
const (
	thrifty, roomy = 50, 100
	// largeHeap is where a heap is large: some hundred hosts.
	largeHeap = 96 << 20
	// lookAtHeap is how often it is looked.
	lookAtHeap = 10 * time.Second
)

// tuneCollector adapts how much garbage is left to the size of the heap, until ctx ends. Who sets GOGC decides for himself.
func tuneCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := thrifty
	debug.SetGCPercent(percent)
	tick := time.NewTicker(lookAtHeap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if next := percentFor(percent, liveHeap()); next != percent {
			percent = next
			debug.SetGCPercent(percent)
		}
	}
}

// percentFor does not go back and forth with a heap that is about as large as the bound.
func percentFor(now int, live uint64) int {
	switch {
	case live > largeHeap:
		return roomy
	case live < largeHeap*3/4:
		return thrifty
	}
	return now
}

// liveHeap is what the last collection left, in bytes.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
