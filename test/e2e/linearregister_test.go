package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/test/linear"
)

// registered is a register that only the leader of the moment may write: a ConfigMap, beside a Lease and a fence that say who leads. The
// servers contend for another one.
type registered struct {
	t    *testing.T
	ways ways
	name string
	// fenced is false for a register that anybody writes.
	fenced bool
	// r is what was written and read, and cached what was read from the caches of the servers.
	r, cached *linear.Recording
}

func newRegister(t *testing.T, w ways, name string, fenced bool) *registered {
	t.Helper()
	x := &registered{t: t, ways: w, name: name, fenced: fenced, r: linear.Record()}
	x.cached = x.r.Beside()
	w.setUp(t, func(ctx context.Context, c kube.Client) error { return c.Create(ctx, x.object("")) })
	w.setUp(t, func(ctx context.Context, c kube.Client) error { return c.Create(ctx, x.lease()) })
	return x
}

func (x *registered) object(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.name}, Data: map[string]string{"value": value}}
}

func (x *registered) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.name}}
}

// play has three write and three read until ctx ends.
func (x *registered) play(ctx context.Context, all *sync.WaitGroup) {
	for n := range 3 {
		all.Go(func() { x.write(ctx, n) })
		all.Go(func() { x.read(ctx, 3+n) })
	}
	all.Go(func() { x.readCached(ctx, 6) })
}

// write writes whether it leads or not, and leads anew when it was refused, or now and then.
func (x *registered) write(ctx context.Context, id int) {
	term, answer := "", any(nil)
	for count := 0; ctx.Err() == nil; count++ {
		if term == "" || rand.IntN(20) == 0 || answer == (linear.Refused{}) && rand.IntN(3) == 0 {
			term = fmt.Sprintf("c%d_%08x", id, count)
			answer = x.r.Do(id, linear.Lead{Term: term}, func() any { return x.lead(term) })
		} else {
			value := fmt.Sprintf("%s/%d", term, count)
			answer = x.r.Do(id, linear.Put{Term: term, Value: value}, func() any { return x.put(term, value) })
		}
		time.Sleep(rand.N(80 * time.Millisecond))
	}
}

func (x *registered) lead(term string) any {
	lease := x.lease()
	err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.Get(ctx, kube.ObjectKeyFromObject(lease), lease)
	})
	if err != nil {
		return linear.Moot{}
	}
	lease.Spec.HolderIdentity = &term
	return answerTo(x.t, x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.Update(fence.Setting(ctx, fence.Token{Name: x.name, Value: term}), lease)
	}))
}

func (x *registered) put(term, value string) any {
	return answerTo(x.t, x.ways.ask(func(ctx context.Context, c kube.Client) error {
		if x.fenced {
			ctx = fence.With(ctx, fence.Token{Name: x.name, Value: term})
		}
		return c.Update(ctx, x.object(value))
	}))
}

// read reads in the two ways that there are: an object, which is read from etcd, and a list, which is read from the cache of a server
// once that is as new as etcd.
func (x *registered) read(ctx context.Context, id int) {
	for ; ctx.Err() == nil; time.Sleep(rand.N(80 * time.Millisecond)) {
		x.r.Do(id, linear.Get{}, func() any { return x.get() })
		x.r.Do(id, linear.Get{}, func() any { return x.list() })
	}
}

// readCached reads what is in the cache of a server, however old it is, as who asks for version 0.
func (x *registered) readCached(ctx context.Context, id int) {
	for ; ctx.Err() == nil; time.Sleep(rand.N(80 * time.Millisecond)) {
		x.cached.Do(id, linear.Get{}, func() any { return x.get(&kube.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}) })
	}
}

func (x *registered) get(options ...kube.GetOption) any {
	o := x.object("")
	err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.Get(ctx, kube.ObjectKeyFromObject(o), o, options...)
	})
	if err != nil {
		return linear.Moot{}
	}
	return o.Data["value"]
}

func (x *registered) list() any {
	var all corev1.ConfigMapList
	err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.List(ctx, &all, kube.InNamespace("default"), kube.MatchingFields{"metadata.name": x.name})
	})
	if err != nil {
		return linear.Moot{}
	}
	if len(all.Items) != 1 {
		return fmt.Sprintf("%d objects", len(all.Items))
	}
	return all.Items[0].Data["value"]
}
