package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/test/tier"
)

var errKilled = errors.New("killed")

// life is an agent's, which ends at one point: what the agent does from then on comes to nothing, as if it had been killed there. Whoever
// has none lives for ever.
type life struct {
	code *failpoint.Points
	// at is the point to be killed at; never when empty.
	at string
	// clumsy has everything fail that is done in some way for the first time.
	clumsy bool
	died   chan struct{}

	mu     sync.Mutex
	step   string
	dead   bool
	points []string
	met    map[string]int
}

// do has two points: before something takes effect, and after it, when what came of it is not known any more. A point is known by the
// calls that lead to it and by what is going on, as the goroutines of an agent come to theirs in no order.
func (l *life) do(effect func() error) error {
	if l == nil {
		return effect()
	}
	here := l.code.Here()
	if l.reach("before " + here) {
		return errKilled
	}
	if l.fails(here) {
		return errors.New("it failed")
	}
	err := effect()
	if l.reach("after " + here) {
		return errKilled
	}
	return err
}

// reach notes a point, and says whether the agent is dead from here on.
func (l *life) reach(point string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return true
	}
	point = l.step + ": " + point
	l.met[point]++
	if n := l.met[point]; n > 1 {
		point += fmt.Sprint(" again ", n)
	}
	l.points = append(l.points, point)
	if point == l.at {
		l.dead = true
		l.code.Note()
		close(l.died)
	}
	return l.dead
}

func (l *life) fails(here string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met["tried "+here]++
	return l.clumsy && l.met["tried "+here] == 1
}

func (l *life) ended() bool {
	select {
	case <-l.died:
		return true
	default:
		return false
	}
}

// mortalRuntime starts and ends processes while the agent lives.
type mortalRuntime struct {
	runtime.Runtime
	*life
}

func (r mortalRuntime) Start(ctx context.Context, p runtime.Process) error {
	return r.do(func() error { return r.Runtime.Start(ctx, p) })
}

func (r mortalRuntime) Stop(ctx context.Context, name string) error {
	return r.do(func() error { return r.Runtime.Stop(ctx, name) })
}

// services is all that a service agent may do.
type services interface {
	service.ServiceAgent
	service.DeviceMaker
	service.DeviceKeeper
	service.DeviceCloser
	service.Forker
	service.Inheritor
	service.Performer
}

// reads are methods that change nothing. A new one has points, unless it is named here.
var reads = []string{"State", "Names", "Changes", "Capabilities", "Close", "Name"}

// effects are what an agent does to the API, to processes, by its service agents, and to its disk. The directories that it makes are no
// points: nobody reads them, and each agent makes them again.
func effects() (names []string) {
	for of, methods := range map[string]reflect.Type{
		"client.": reflect.TypeFor[client.Writer](), "Status.": reflect.TypeFor[client.SubResourceWriter](), "Runtime.": reflect.TypeFor[runtime.Runtime](),
		"": reflect.TypeFor[services](),
	} {
		for m := range methods.Methods() {
			if !slices.Contains(reads, m.Name) {
				names = append(names, of+m.Name)
			}
		}
	}
	for _, name := range []string{"Write", "WriteFile", "Create", "CreateTemp", "OpenFile", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Truncate"} {
		names = append(names, "atomicfile."+name, "os."+name)
	}
	return names
}

// sweep plays a story once to find its points, and then once for each that no agent was killed at yet, with a kill there and a successor.
func (s story) sweep(t *testing.T, code *failpoint.Points, killed *sync.Map, clumsy bool) {
	var all errgroup.Group
	all.SetLimit(8) // they wait most of the time
	for at, point := range s.play(t, &life{code: code, clumsy: clumsy}) {
		if _, was := killed.Load(point); was || !tier.Tries(t, at, 5) {
			continue
		}
		all.Go(func() error {
			t.Run(fmt.Sprint(at), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("killed at %s", point)
					}
				}()
				l := &life{code: code, clumsy: clumsy, at: point}
				if s.play(t, l); l.dead {
					killed.Store(point, true)
				}
			})
			return nil
		})
	}
	_ = all.Wait() // a subtest that fails says so itself
}

// play plays a story. The agent that dies is followed by another one, which has what lies on the disk and in the API.
func (s story) play(t *testing.T, l *life) []string {
	w := newWorld(t, s.objects...)
	l.died, l.met = make(chan struct{}), map[string]int{}
	if s.set != nil {
		s.set(w)
	}
	w.life = l
	w.run()
	for _, step := range s.steps {
		l.mu.Lock()
		l.step = step.what
		l.mu.Unlock()
		step.do(w)
		w.await("death or "+step.what, func() bool { return l.ended() || step.ends(w) })
		if w.life != nil && l.ended() {
			w.succeed()
		}
		w.await(step.what, func() bool { return step.ends(w) })
	}
	if w.life != nil {
		w.succeed()
	}
	w.await("the same again", func() bool { return s.steps[len(s.steps)-1].ends(w) })
	w.halt()
	s.check(w)
	return l.points
}

// succeed has another agent take the place of the one that is there.
func (w *world) succeed() {
	w.halt()
	w.life = nil
	w.run()
}

// TestCrash kills the agent before and after everything that it writes to the API or to its disk, has a service agent do, or does to a
// process, in all that may become of daemons and actions; also where everything fails at first. Another agent brings it to its end. Which
// places there are is read from the code: one that no agent was killed at fails the test.
func TestCrash(t *testing.T) {
	code, err := failpoint.List(".", effects()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range ActionKinds() {
		if !slices.ContainsFunc(stories(), func(s story) bool { return s.name == k.Name }) {
			t.Errorf("no story is of the kind of actions %s", k.Name)
		}
	}
	var killed sync.Map
	missing, all := code.Missing()
	// What goes on beside a story may come in its next step in the run that is to be killed.
	for n := 0; n < 3 && len(missing) > 0 && (n == 0 || !testing.Short()); n++ {
		t.Run(fmt.Sprint("round ", n), func(t *testing.T) {
			for _, s := range stories() {
				t.Run(s.name, func(t *testing.T) { s.sweep(t, code, &killed, false) })
				if !slices.Contains(once, s.name) {
					t.Run(s.name+", clumsily", func(t *testing.T) { s.sweep(t, code, &killed, true) })
				}
			}
		})
		missing, all = code.Missing()
	}
	if (len(missing) > 0 && !testing.Short()) || all < 50 {
		t.Errorf("of %d places in the code no agent was killed at these: %s", all, strings.Join(missing, ", "))
	}
	t.Logf("%d places in the code", all)
}
