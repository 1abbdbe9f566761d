package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// announcer is a runtime of one process that notes what is announced of it.
type announcer struct {
	runtime.Runtime
	mu    sync.Mutex
	state runtime.State
	fail  bool
	said  chan string
}

func (a *announcer) State(string) (runtime.State, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, true
}

func (a *announcer) Announce(_ context.Context, name string, serves bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail {
		a.fail = false
		return errors.New("no answer")
	}
	a.said <- fmt.Sprint(name, " ", a.state.PID, " ", serves)
	return nil
}

func (a *announcer) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *announcer) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-a.said:
		if got != want {
			t.Fatalf("it announced %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("it never announced %q", want)
	}
}

// Of each process is announced that it does not serve, and then that it does, once each; also where
// that fails at first.
func TestGate(t *testing.T) {
	rt := &announcer{said: make(chan string, 9), fail: true, state: runtime.State{Running: true, PID: 1}}
	serves := make(chan bool, 9)
	g := New(rt, func(context.Context, string) (bool, error) {
		if <-serves {
			return true, nil
		}
		return true, errors.New("it does not answer")
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	g.every = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { g.Run(ctx) })
	defer run.Wait()
	defer cancel()

	g.Look("a")
	serves <- false // what is said of it cannot be announced
	serves <- false
	rt.expect(t, "a 1 false")
	serves <- false // nothing new
	serves <- true
	rt.expect(t, "a 1 true")
	g.Look("a") // is not asked again
	rt.set(func() { rt.state = runtime.State{} })
	g.Look("a")
	rt.set(func() { rt.state = runtime.State{Running: true, PID: 2} })
	g.Look("a")
	serves <- false
	rt.expect(t, "a 2 false")
	serves <- true
	rt.expect(t, "a 2 true")
	if len(rt.said) > 0 || len(serves) > 0 {
		t.Errorf("it announced %q, and did not ask %d times", <-rt.said, len(serves))
	}
}

// A runtime that announces nothing is not asked for.
func TestGate_none(t *testing.T) {
	g := New(struct{ runtime.Runtime }{}, func(context.Context, string) (bool, error) {
		t.Error("it asks")
		return true, nil
	}, slog.Default())
	g.Look("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Run(ctx)
}
