package agent

import (
	"fmt"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A daemon that is deleted while it is being prepared is not prepared to the end first.
func TestRun_removalWhilePreparing(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.service.set(func(s *sleeper) { s.block = make(chan struct{}) })
	w.run()
	w.awaitState("one", api.DaemonPreparing)
	w.delete("one")
	w.awaitGone("one")
}

// One daemon that takes long holds up no other.
func TestRun_inParallel(t *testing.T) {
	w := newWorld(t)
	block := make(chan struct{})
	w.service.set(func(s *sleeper) { s.block = block })
	w.run()
	for i := range 8 {
		w.create(sleeperDaemon(fmt.Sprint("d", i)))
	}
	w.await("all being prepared", func() bool { return w.service.count(&w.service.configured) == 8 })
	close(block)
	for i := range 8 {
		w.awaitState(fmt.Sprint("d", i), api.DaemonRunning)
	}
}
