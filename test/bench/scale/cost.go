package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// cost is what a phase of the measurement took. What is counted is not changed by how busy the machine is, and CPU time hardly.
type cost struct {
	Seconds float64
	// ServerCPU and AgentsCPU are seconds of CPU time of the server and of all agents together, which are this process.
	ServerCPU, AgentsCPU float64
	// Requests are the answers of the API by verb, resource and, where it is no success, status; Puts are writes to etcd.
	Requests map[string]float64
	Puts     float64
}

// puts is etcd's counter of writes.
const puts = "etcd_mvcc_put_total"

// meter starts to measure a phase. What it returns ends that.
func (b *bench) meter(ctx context.Context) (func() (*cost, error), error) {
	before, err := b.server.metrics(ctx)
	if err != nil {
		return nil, err
	}
	begun, server, agents := time.Now(), b.usage(), own()
	return func() (*cost, error) {
		c := &cost{
			Seconds: seconds(time.Since(begun)), ServerCPU: seconds(b.usage().Own - server.Own), AgentsCPU: seconds(own().Own - agents.Own),
		}
		after, err := b.server.metrics(ctx)
		if err != nil {
			return nil, err
		}
		c.Requests, c.Puts = requests(before, after), after[puts]-before[puts]
		return c, nil
	}, nil
}

func own() stat.Usage {
	u, _ := stat.Of(os.Getpid()) // a process always finds itself
	return u
}

// requests are those that were answered between two moments.
func requests(before, after map[string]float64) map[string]float64 {
	found := map[string]float64{}
	for name, value := range after {
		labels, ok := strings.CutPrefix(name, "apiserver_request_total{")
		n := value - before[name]
		if !ok || n <= 0 {
			continue
		}
		key := label(labels, "verb") + " " + label(labels, "resource")
		if sub := label(labels, "subresource"); sub != "" {
			key += "/" + sub
		}
		if code := label(labels, "code"); code != "0" && !strings.HasPrefix(code, "2") {
			key += " " + code
		}
		found[key] += n
	}
	return found
}

// each prints the cost of a phase for each of n things.
func (c *cost) each(w io.Writer, what string, n int) {
	per := 1 / float64(max(n, 1))
	fmt.Fprintf(w, "  for each %s\t%.1f ms of CPU of the server, %.1f ms of its agents; %.2f writes to etcd\n",
		what, 1000*c.ServerCPU*per, 1000*c.AgentsCPU*per, c.Puts*per)
	for _, key := range slices.Sorted(maps.Keys(c.Requests)) {
		if c.Requests[key]*per >= seldom {
			fmt.Fprintf(w, "    %s\t%.2f\n", key, c.Requests[key]*per)
		}
	}
}

// seldom is below how many for each thing a request is not printed.
const seldom = 0.02
