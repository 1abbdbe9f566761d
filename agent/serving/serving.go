// Package serving has a runtime let others see which processes do their part, where the runtime
// can: a pod is ready when its daemon serves, and not already when its process runs.
package serving

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// askEvery is how often a process that does not serve yet is asked again, and answerTimeout how
// long one question may take.
const (
	askEvery      = time.Second
	answerTimeout = 30 * time.Second
)

// Gate announces of each process that it serves, once it does. A process that served is not asked
// again: how it is from then on its reports say.
type Gate struct {
	rt        runtime.Runtime
	announcer runtime.Announcer
	serves    func(ctx context.Context, name string) (bool, error)
	log       *slog.Logger
	queue     workqueue.TypedDelayingInterface[string]
	every     time.Duration

	mu    sync.Mutex
	known map[string]answer
}

// answer is what was announced of a process last.
type answer struct {
	pid     int
	started time.Time
	serves  bool
}

// New makes a Gate of a runtime, which asks serves. With a runtime that cannot announce anything it
// does nothing.
func New(rt runtime.Runtime, serves func(ctx context.Context, name string) (bool, error), log *slog.Logger) *Gate {
	g := &Gate{rt: rt, serves: serves, log: log, every: askEvery, known: map[string]answer{}}
	if announcer, ok := rt.(runtime.Announcer); ok {
		g.announcer, g.queue = announcer, workqueue.NewTypedDelayingQueue[string]()
	}
	return g
}

// Look has a process asked, which may be another one than before.
func (g *Gate) Look(name string) {
	if g.announcer != nil {
		g.queue.Add(name)
	}
}

// Run asks until ctx ends, and then waits for what is under way.
func (g *Gate) Run(ctx context.Context) {
	if g.announcer == nil {
		return
	}
	release := context.AfterFunc(ctx, g.queue.ShutDown)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		name, down := g.queue.Get()
		if down {
			return
		}
		wg.Go(func() {
			defer g.queue.Done(name)
			if !g.ask(ctx, name) {
				g.queue.AddAfter(name, g.every)
			}
		})
	}
}

// ask asks one process, announces what it says if that is new, and says whether there is nothing
// more to ask.
func (g *Gate) ask(ctx context.Context, name string) (done bool) {
	s, known := g.rt.State(name)
	if !known || !s.Running {
		g.forget(name)
		return true // its next start asks again
	}
	is := answer{pid: s.PID, started: s.Started}
	if was := g.last(name); was.serves && was.pid == is.pid && was.started.Equal(is.started) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	serves, err := g.serves(ctx, name)
	is.serves = serves && err == nil
	if g.last(name) == is {
		return is.serves
	}
	if err := g.announcer.Announce(ctx, name, is.serves); err != nil {
		if ctx.Err() == nil {
			g.log.Warn("cannot announce whether a daemon serves; retrying", "daemon", name, "error", err)
		}
		return false
	}
	g.mu.Lock()
	g.known[name] = is
	g.mu.Unlock()
	return is.serves
}

func (g *Gate) last(name string) answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.known[name]
}

func (g *Gate) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, name)
}
