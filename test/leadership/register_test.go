package leadership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/test/linear"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// TestFencedRegister has four servers lead one after the other, write under their terms, also under those that are over, and be cut
// off, while requests and answers are lost and writes arrive late. All that is answered fits a register that only the leader of the
// moment writes.
func TestFencedRegister(t *testing.T) {
	t.Parallel()
	config := loopback.Inside(t)
	r := playRegister(t, config, func(c *rest.Config, term string) *rest.Config { return bare.Fenced(c, term) })
	if err := linear.Check(r, linear.Register{}, linear.StepRegister, nil); err != nil {
		t.Error(err)
	}
	writes := r.Count(func(in, out any) bool { _, ok := in.(linear.Put); return ok && out == linear.Done{} })
	stale := r.Count(func(_, out any) bool { return out == linear.Refused{} })
	unheard := r.Count(func(_, out any) bool { return out == linear.Unknown{} })
	t.Logf("%d writes, %d refused, %d unheard of", writes, stale, unheard)
	if writes < 50 || stale < 50 || unheard < 5 {
		t.Error("too little happened")
	}
	// Without the fence the same history cannot be explained.
	r = playRegister(t, config, func(c *rest.Config, _ string) *rest.Config { return c })
	if err := linear.Check(r, linear.Register{}, linear.StepRegister, nil); err == nil {
		t.Error("writes without a fence pass for fenced ones: the test would see nothing")
	}
}

const registerName = "register"

// playRegister returns a history of some hundred operations. fenced makes the means to write under a term.
func playRegister(t *testing.T, config *rest.Config, fenced func(*rest.Config, string) *rest.Config) *linear.Recording {
	t.Helper()
	admin, err := newClient(fence.Config(config))
	if err != nil {
		t.Fatal(err)
	}
	fresh := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: registerName}}
	if err := admin.Create(t.Context(), fresh); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	fresh.Data = nil
	if err := admin.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	r := linear.Record()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a slow machine needs longer for as much
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil && r.Count(linear.Any) < 600 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	})
	for n := range 4 {
		way, c := linear.NewWay(config, 60)
		s := &writer{t: t, r: r, id: n, config: c, fenced: fenced}
		all.Go(func() {
			s.run(ctx, way)
			way.Wait()
		})
	}
	for n := range 2 {
		all.Go(func() { watchRegister(ctx, t, r, 4+n, admin) })
	}
	all.Wait()
	return r
}

// writer is a server that leads now and then, and writes whether it leads or not.
type writer struct {
	t      *testing.T
	r      *linear.Recording
	id     int
	config *rest.Config
	fenced func(*rest.Config, string) *rest.Config
	term   string
	own    client.Client
	count  int
}

func (w *writer) run(ctx context.Context, way *linear.Way) {
	for ctx.Err() == nil {
		switch luck := rand.IntN(40); {
		case luck == 0:
			way.Cut(true)
			time.Sleep(rand.N(100 * time.Millisecond))
			way.Cut(false)
		case luck < 3 || w.own == nil:
			w.lead()
		default:
			w.put()
		}
		time.Sleep(rand.N(8 * time.Millisecond))
	}
}

func (w *writer) lead() {
	w.count++
	term := fmt.Sprintf("s%d_%08x", w.id, w.count)
	plain, err := newClient(fence.Config(w.config))
	if err == nil {
		w.own, err = newClient(fence.Config(w.fenced(w.config, term)))
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.term = term
	w.r.Do(w.id, linear.Lead{Term: term}, func() any { return w.answer(takeLead(context.Background(), plain, term)) })
}

func (w *writer) put() {
	w.count++
	value := fmt.Sprintf("%s/%d", w.term, w.count)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: registerName}, Data: map[string]string{"value": value}}
	w.r.Do(w.id, linear.Put{Term: w.term, Value: value}, func() any { return w.answer(w.own.Update(context.Background(), o)) })
}

func (w *writer) answer(err error) any {
	switch {
	case err == nil:
		return linear.Done{}
	case fence.Lost(err):
		return linear.Refused{}
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		return linear.Overtaken{}
	case linear.Unheard(err):
		return linear.Unknown{}
	default:
		w.t.Errorf("an answer that nobody expected: %v", err)
		return linear.Unknown{}
	}
}

func watchRegister(ctx context.Context, t *testing.T, r *linear.Recording, id int, c client.Client) {
	for ; ctx.Err() == nil; time.Sleep(rand.N(20 * time.Millisecond)) {
		r.Do(id, linear.Get{}, func() any {
			var o corev1.ConfigMap
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: registerName}, &o); err != nil {
				t.Error(err)
			}
			return o.Data["value"]
		})
	}
}
