package main

import "fmt"

// memory is what a Go process's memory is made of, in MiB, from the runtime's metrics.
type memory struct {
	// Objects are those in the heap, also those that are not used any more: until they come to Collected, when they are collected. Gaps
	// are what the heap has besides and did not give back to the system, of which Free are whole pages, Stacks those of the goroutines.
	Objects, Collected, Gaps, Free, Stacks float64
	Goroutines                             float64
	// Files are pages of the program and of the mapped database, which the system takes back when it needs memory.
	Files float64
}

// memoryOf takes a server's metrics.
func memoryOf(metrics map[string]float64) memory {
	mib := func(name string) float64 { return metrics["go_memstats_"+name+"_bytes"] / (1 << 20) }
	return memory{
		Objects: mib("heap_alloc"), Collected: mib("next_gc"), Stacks: mib("stack_inuse"), Goroutines: metrics["go_goroutines"],
		Gaps: mib("heap_sys") - mib("heap_released") - mib("heap_alloc"), Free: mib("heap_idle") - mib("heap_released"),
	}
}

func (m memory) String() string {
	return fmt.Sprintf("%.0f MiB objects (collected at %.0f), %.0f MiB gaps between them (%.0f in whole pages), %.0f MiB stacks of %.0f goroutines, %.0f MiB pages of files",
		m.Objects, m.Collected, m.Gaps, m.Free, m.Stacks, m.Goroutines, m.Files)
}
