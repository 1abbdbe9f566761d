package pod

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

var errKilled = errors.New("killed")

// life is an agent's, which ends at one of its points: before or after something that it writes to
// the API or to its disk. Whatever it does from then on comes to nothing.
type life struct {
	mu   sync.Mutex
	left int
	dead bool
	died chan struct{}
}

func (l *life) point() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left == 0 {
		l.dead = true
		close(l.died)
	}
	return l.dead
}

func (l *life) do(effect func() error) error {
	if l.point() {
		return errKilled
	}
	err := effect()
	if l.point() {
		return errKilled
	}
	return err
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// mortal sends requests while an agent lives.
type mortal struct {
	next http.RoundTripper
	life *life
}

func (m mortal) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if r.Method == http.MethodGet {
		if m.life.isDead() {
			return nil, errKilled
		}
		return m.next.RoundTrip(r)
	}
	killed := m.life.do(func() error {
		resp, err = m.next.RoundTrip(r) //nolint:bodyclose // the caller closes it, or we do below
		return err
	})
	if killed != nil && err == nil && resp != nil {
		resp.Body.Close()
		return nil, killed
	}
	return resp, killed
}

// TestCrash kills the agent before and after everything that it writes to the API or its disk while
// a process is started, its pod deleted by others, and it is stopped. There are never two
// processes, and the next agent starts and stops it.
func TestCrash(t *testing.T) {
	for at := 1; ; at++ {
		l := &life{left: at, died: make(chan struct{})}
		t.Run(fmt.Sprint(at), func(t *testing.T) { crashAt(t, l) })
		if t.Failed() {
			return
		}
		if !l.isDead() {
			if at < 20 {
				t.Errorf("there are only %d points", at)
			}
			return
		}
	}
}

func crashAt(t *testing.T, l *life) {
	n, dir := newNode(t), t.TempDir()
	unwatch := atomicfile.Watch(dir, l.do)
	r := n.open(t, dir, func(c *Config) {
		c.REST = rest.CopyConfig(c.REST)
		c.REST.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortal{next, l} })
	})
	live(t, n, r, dir, l)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	unwatch()

	r = n.open(t, dir)
	defer r.Close()
	s := start(t, r, shell(dir, sleeps))
	checkOne(t, dir, s.PID)
	stop(t, r)
	checkOne(t, dir, 0)
	if n.api.Pod("default", "x") != nil {
		t.Error("the pod is left")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "runtime", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// live is what the agent comes to do, until it dies.
func live(t *testing.T, n *node, r *Runtime, dir string, l *life) {
	t.Helper()
	awaitOr := func(ok func(s runtime.State) bool) bool {
		await(t, r, "what is to come, or death", func(s runtime.State, _ bool) bool { return l.isDead() || ok(s) })
		return !l.isDead()
	}
	if err := r.Start(t.Context(), shell(dir, sleeps)); err != nil && !l.isDead() {
		t.Fatal(err)
	}
	if !awaitOr(func(s runtime.State) bool { return s.Running && s.PID != 0 }) {
		return
	}
	first, _ := r.State("default.x")
	n.api.Delete(t, "default", "x", 1)
	if !awaitOr(func(s runtime.State) bool { return s.Running && s.PID != 0 && s.PID != first.PID }) {
		return
	}
	if err := r.Stop(t.Context(), "default.x"); err != nil && !l.isDead() {
		t.Fatal(err)
	}
}

// checkOne checks that of all processes that there ever were one lives, or none.
func checkOne(t *testing.T, dir string, want int) {
	t.Helper()
	for _, pid := range pids(t, dir) {
		if runtimetest.Alive(pid) != (pid == want) {
			t.Errorf("process %d lives: %v; %d is to", pid, runtimetest.Alive(pid), want)
		}
	}
}
