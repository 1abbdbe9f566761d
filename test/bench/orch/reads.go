package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// readBound is the longest p99 that passes.
const readBound = 30 * time.Millisecond

// read is a call that changes nothing.
type read struct{ name, method, args string }

var reads = []read{
	{"state", "state", "{}"},
	{"available", "available", "{}"},
	{"get_hosts", "get_hosts", "{}"},
	{"describe_service", "describe_service", "{}"},
	{"list_daemons", "list_daemons", "{}"},
	{"list_daemons of a host", "list_daemons", `{"host": "h500"}`},
	{"list_daemons of a type", "list_daemons", `{"daemon_type": "mon"}`},
	{"get_inventory", "get_inventory", "{}"},
	{"get_inventory of a host", "get_inventory", `{"host_filter": {"hosts": ["h500"]}}`},
}

// block is how many calls of one read follow each other.
const block = 20

// times are what calls of a read took, and the CPU time of all of them: of caller, relay and server.
type times struct {
	took []time.Duration
	cpu  time.Duration
	size int64
}

func (t *times) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.took))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// socketPart measures the reads, in turns alone and beside a call that hangs at the server.
func socketPart(o options, w *tabwriter.Writer) error {
	dir, err := os.MkdirTemp("", "hf-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	v := fleet(fleetHosts)
	s, err := serve(v, dir, o.http2)
	if err != nil {
		return err
	}
	defer s.end()
	fmt.Fprintf(w, "\nAnswers at the agent's socket, by the real relay and server, of a cluster that is made up:\n"+
		"%d hosts, %d daemons, %d devices\n", len(v.Hosts), len(v.Daemons), fleetHosts*fleetDisks)
	fmt.Fprintf(w, "load average before: %s\n\n", stat.Load())
	quiet, beside, err := measureReads(s, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "call\tMiB\tCPU ms\tp50 ms\tp99 ms\tbeside a call that hangs: p50\tp99\t\n")
	var failed error
	for i, r := range reads {
		q, b := &quiet[i], &beside[i]
		cpu := ms(q.cpu / time.Duration(len(q.took)))
		fmt.Fprintf(w, "%s\t%.2f\t%s\t", r.name, float64(q.size)/(1<<20), cpu)
		fmt.Fprintf(w, "%s\t%s\t", ms(q.quantile(0.5)), ms(q.quantile(0.99)))
		fmt.Fprintf(w, "%s\t%s\t\n", ms(b.quantile(0.5)), ms(b.quantile(0.99)))
		if most := max(q.quantile(0.99), b.quantile(0.99)); most > readBound && !o.noBound && failed == nil {
			failed = fmt.Errorf("%s takes %s ms (p99), and the bound is %s", r.name, ms(most), readBound)
		}
	}
	return failed
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func measureReads(s *socket, o options) (quiet, beside []times, err error) {
	quiet, beside = make([]times, len(reads)), make([]times, len(reads))
	if err := measureBlocks(s, make([]times, len(reads)), 2); err != nil { // which do not count
		return nil, nil, err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, nil, err
		}
		defer pprof.StopCPUProfile()
	}
	for left := o.calls; left > 0; left -= block {
		if err := measureBlocks(s, quiet, min(block, left)); err != nil {
			return nil, nil, err
		}
		end := s.hang()
		err := measureBlocks(s, beside, min(block, left))
		end()
		if err != nil {
			return nil, nil, err
		}
	}
	return quiet, beside, nil
}

// measureBlocks measures each read a few times.
func measureBlocks(s *socket, into []times, calls int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for i, r := range reads {
		before, err := cpuTime()
		if err != nil {
			return err
		}
		for range calls {
			took, size, err := s.call(ctx, r.method, r.args)
			if err != nil {
				return err
			}
			into[i].took, into[i].size = append(into[i].took, took), size
		}
		after, err := cpuTime()
		if err != nil {
			return err
		}
		into[i].cpu += after - before
	}
	return nil
}

// cpuTime is what this process has used.
func cpuTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("while asking what this process has used: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// hang has a call hang at the server, again and again as it is refused in the end.
func (s *socket) hang() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		for ctx.Err() == nil {
			_, _, _ = s.call(ctx, "host_ok_to_stop", `{"hostname": "h1"}`) // it is refused
		}
	})
	return func() { cancel(); calls.Wait() }
}
