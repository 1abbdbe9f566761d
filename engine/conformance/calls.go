package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A driver is used by several goroutines at once. With the race detector this finds what they share.
func concurrent(b *bench) {
	b.online("undisturbed")
	v := b.observed()
	want := dump(b.driver.Plan(v, b.Now))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 4 {
		wg.Go(func() {
			for range 5 {
				got := dump(b.driver.Plan(v, b.Now))
				engine.Project(b.driver, v, b.Now)
				b.driver.Forget("other", "cluster")
				mu.Lock()
				if got != want {
					b.Errorf("plans that are made at once differ: %s", difference(want, got))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// promptly is how long what was cancelled may go on.
var promptly = 5 * time.Second

// What is cancelled ends, whether or not the storage system answers: of commands, each one that bringing a cluster up, maintenance and a
// drain ask of the driver.
func heedsContexts(b *bench) {
	b.online("undisturbed")
	last := b.Hosts[len(b.Hosts)-1].Name
	for _, mode := range []api.HostMode{api.HostMaintenance, api.HostDrain} {
		b.reach(last, mode)
		b.host(last).Spec.Mode = api.HostActive
		b.online("with host " + last + " active again")
	}
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	v := b.observed()
	b.endsSoon("Observe", func() { _, _ = b.driver.Observe(ctx, v, b) })
	b.calls["no such verb"] = call{v, engine.Command{Verb: "no such verb", Object: "x"}}
	for _, verb := range slices.Sorted(maps.Keys(b.calls)) {
		c := b.calls[verb]
		b.endsSoon(fmt.Sprintf("Perform of %q", verb), func() { _ = b.driver.Perform(ctx, c.view, c.cmd, b) })
	}
}

// endsSoon fails if a call goes on that was given a context which has ended.
func (b *bench) endsSoon(what string, call func()) {
	b.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(promptly):
		b.Errorf("%s goes on for more than %s after its context has ended", what, promptly)
	}
}

// What a driver does not know it does not do.
func knowsLimits(b *bench) {
	b.online("undisturbed")
	v := b.observed()
	if err := b.driver.Perform(b.Context(), v, engine.Command{Verb: "no such verb", Object: "x"}, b); err == nil {
		b.Errorf("a command that does not exist is carried out")
	}
	if data, err := b.driver.MakeSecret(engine.SecretWant{Name: "x", Kind: "no such kind"}); err == nil {
		b.Errorf("a secret of a kind that does not exist is made: %d entries", len(data))
	}
	b.driver.Forget("no", "such cluster")
	b.driver.Forget(b.Cluster.Namespace, b.Cluster.Name)
	if again, err := b.driver.Observe(b.Context(), v, b); err != nil || again == nil {
		b.Errorf("after Forget the storage system cannot be asked again: %v, %v", again, err)
	}
}
