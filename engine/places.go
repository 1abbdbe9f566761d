package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// placeTimeout bounds how long a run waits for hosts on which another cluster's run places daemons.
const placeTimeout = 10 * time.Second

// Places lets one run at a time place daemons on a host: two clusters that are planned at one
// moment, each without the daemons of the other, could take the same port. Runs on different hosts
// do not wait for each other, so a cluster that is slow holds up only those that want the very
// hosts that it is placing daemons on. The zero value is ready.
type Places struct {
	mu    sync.Mutex
	taken map[string]bool
	// moved is closed and made anew when hosts are given back.
	moved chan struct{}
}

// take waits until all hosts are free and takes them, all at once: two runs that each had a part of
// what the other wants would wait for ever. give gives them back; it may be called more than once.
func (p *Places) take(ctx context.Context, hosts map[string]bool) (give func(), err error) {
	late := fmt.Errorf("another cluster has been placing daemons there for more than %s", placeTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, placeTimeout, late)
	defer cancel()
	for {
		ok, moved := p.try(hosts)
		if ok {
			return sync.OnceFunc(func() { p.give(hosts) }), nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			all := strings.Join(slices.Sorted(maps.Keys(hosts)), ", ")
			return nil, fmt.Errorf("while waiting to place daemons on %s: %w", all, context.Cause(ctx))
		}
	}
}

func (p *Places) try(hosts map[string]bool) (ok bool, moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken, p.moved = map[string]bool{}, make(chan struct{})
	}
	for h := range hosts {
		if p.taken[h] {
			return false, p.moved
		}
	}
	maps.Copy(p.taken, hosts)
	return true, nil
}

func (p *Places) give(hosts map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range hosts {
		delete(p.taken, h)
	}
	close(p.moved)
	p.moved = make(chan struct{})
}
