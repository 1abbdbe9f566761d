// Package gctune adapts the garbage collector of a process that is idle nearly always, on a machine
// whose memory is meant for storage.
package gctune

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A server is idle nearly always, on a machine whose memory is meant for storage: then a seventh
// less memory is worth more than the CPU time of a few collections. While it works, as when a fleet
// comes up, a third of its CPU time would go into collecting garbage; then garbage may stay, as
// long as the heap does not grow beyond what a server of a large fleet may take: the largest ones
// have hardly more of it then.
const (
	least, busyLeast, thrifty, roomy, most = 25, 30, 50, 100, 400
	// largeHeap is where a heap is large even at rest: some hundred hosts.
	largeHeap = 96 << 20
	// restBudget and busyBudget are how large the heap shall be at most, garbage included, unless
	// more than that, less the least garbage, is live. What a busy server was given stays scattered
	// over the heap for good.
	restBudget, busyBudget = 500 << 20, 650 << 20
	// busyCollecting is which part of one core the collector would take under the smaller budget
	// when the server is busy, and idleCollecting when it is not any more. A thousand hosts at rest
	// took 0.2 of it with twice the least garbage, on a slow machine.
	busyCollecting, idleCollecting = 0.6, 0.45
	// lookAtHeap is how often it is looked, and lately over how many looks the part is averaged:
	// one collection of a large heap alone takes a third of a core from one look to the next.
	lookAtHeap, lately = 2 * time.Second, 8
)

// Run adapts how much garbage is left to the size of the heap and to how much there is to do, until
// ctx ends. Who sets GOGC decides for himself.
func Run(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	c := collector{percent: thrifty}
	debug.SetGCPercent(c.percent)
	tick := time.NewTicker(lookAtHeap)
	defer tick.Stop()
	_, collected := readHeap()
	share := 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		live, now := readHeap()
		was := c.busy
		share += ((now-collected)/lookAtHeap.Seconds() - share) / lately
		if c.adapt(live, share) {
			debug.SetGCPercent(c.percent)
		}
		if was && !c.busy {
			debug.FreeOSMemory() // by itself it would go back little by little
		}
		collected = now
	}
}

// collector is what was decided last.
type collector struct {
	percent int
	busy    bool
}

// adapt says whether the percentage changed. It does not go back and forth with a heap, or with
// work, that is about as much as a bound. share is the part of one core that the collector took,
// which is the less the more garbage it leaves: so it is judged by what it would be at rest, or a
// server that is given more would not look busy any more. Until the average has followed a change
// that is reckoned too high or too low.
func (c *collector) adapt(live uint64, share float64) bool {
	next := c.atRest(live)
	wouldTake := share * float64(c.percent) / float64(next)
	c.busy = wouldTake > busyCollecting || c.busy && wouldTake > idleCollecting
	if c.busy {
		next = max(busyLeast, within(busyBudget, live))
	}
	// What is live changes from one collection to the next, and each change costs a collection.
	if live > largeHeap && next*5 > c.percent*4 && next*4 < c.percent*5 {
		return false
	}
	changed := next != c.percent
	c.percent = next
	return changed
}

// atRest is the percentage for a server that is not busy.
func (c *collector) atRest(live uint64) int {
	if live < largeHeap*3/4 || live < largeHeap && c.percent == thrifty {
		return thrifty
	}
	return min(roomy, within(restBudget, live))
}

// within is the percentage with which a heap comes to a budget.
func within(budget, live uint64) int { return min(most, max(least, int(budget*100/max(live, 1))-100)) }

// readHeap is what the last collection left, in bytes, and the CPU time that collections took until
// now, in seconds. Each collection adds to that at its end.
func readHeap() (live uint64, collected float64) {
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
	}
	metrics.Read(sample)
	// What was done by cores that had nothing else to do is no cost.
	return sample[0].Value.Uint64(), sample[1].Value.Float64() - sample[2].Value.Float64()
}
