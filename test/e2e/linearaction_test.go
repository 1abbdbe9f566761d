package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/linear"
)

// deeds are actions that the servers' own leaders carry out, on hosts that are declared alone, and persons who decide about them.
type deeds struct {
	t    *testing.T
	ways ways
	// r is what the persons did and saw, and versions are those of what the leaders write beside: their lease, and the cluster's lock.
	r, versions *linear.Recording

	mu    sync.Mutex
	names []string
}

const system = "holdfast-system"

func newDeeds(t *testing.T, w ways) *deeds {
	t.Helper()
	cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "busy"}}
	cluster.Spec.Type, cluster.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	cluster.Spec.Interval = metav1.Duration{Duration: time.Second}
	w.setUp(t, func(ctx context.Context, c kube.Client) error { return c.Create(ctx, cluster) })
	return &deeds{t: t, ways: w, r: linear.Record(), versions: linear.Record()}
}

// play has six persons ask for one action after the other, and three look, until ctx ends.
func (x *deeds) play(ctx context.Context, all *sync.WaitGroup) {
	for n := range 6 {
		all.Go(func() {
			for count := 0; ctx.Err() == nil; count++ {
				if name := fmt.Sprintf("deed%d-%d", n, count); x.create(name) {
					x.decide(n, name)
				}
			}
		})
	}
	for n := range 3 {
		all.Go(func() { x.watch(ctx, n) })
	}
}

// create makes a host that there is not, and an action on it. It returns false when nobody heard that both were done.
func (x *deeds) create(name string) bool {
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	a.Spec.Kind, a.Spec.Target, a.Spec.Host = "host.enter-maintenance", "host/"+name, name
	a.Spec.Approval, a.Spec.Want = api.ApprovalRequired, api.WantDone
	for _, o := range []kube.Object{host, a} {
		if answerTo(x.t, x.ways.ask(func(ctx context.Context, c kube.Client) error { return c.Create(ctx, o) })) != (linear.Done{}) {
			return false
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.names = append(x.names, name)
	return true
}

// decide has a person decide about an action, change its mind, look what became of it, and grant it at last.
func (x *deeds) decide(id int, name string) {
	wishes := linear.Wishes(name)
	for range 5 {
		time.Sleep(rand.N(100 * time.Millisecond))
		if luck := rand.IntN(12); luck < len(wishes) {
			x.r.Do(id, wishes[luck], func() any { return x.wish(wishes[luck]) })
		} else if luck < 7 {
			x.r.Do(id, wishes[0], func() any { return x.wish(wishes[0]) })
		}
		x.r.Do(id, linear.See{Name: name}, func() any { return x.see(name) })
	}
}

func (x *deeds) wish(w linear.Wish) any {
	patch := fmt.Sprintf(`{"spec":{"approval":%q}}`, w.Approval)
	if w.Want != "" {
		patch = fmt.Sprintf(`{"spec":{"want":%q}}`, w.Want)
	}
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: w.Name}}
	err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.Patch(ctx, a, kube.RawPatch(types.MergePatchType, []byte(patch)))
	})
	if apierrors.IsForbidden(err) {
		return linear.Denied{}
	}
	return answerTo(x.t, err)
}

func (x *deeds) see(name string) any {
	a := &api.Action{}
	err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
		return c.Get(ctx, kube.ObjectKey{Namespace: system, Name: name}, a)
	})
	if apierrors.IsNotFound(err) {
		return "it is not there"
	}
	if err != nil {
		return linear.Moot{}
	}
	return linear.Action{State: a.Status.State, Approval: a.Spec.Approval, Want: a.Spec.Want}
}

// watch looks at what the leaders write: the lease by which they lead, and a cluster's lock.
func (x *deeds) watch(ctx context.Context, id int) {
	for ; ctx.Err() == nil; time.Sleep(rand.N(100 * time.Millisecond)) {
		for _, name := range []string{"leader", "orchestrate-default.busy"} {
			lease := &coordinationv1.Lease{}
			x.versions.Do(id, linear.Version{Name: name}, func() any {
				err := x.ways.ask(func(ctx context.Context, c kube.Client) error {
					return c.Get(ctx, kube.ObjectKey{Namespace: system, Name: name}, lease)
				})
				if err != nil {
					return linear.Moot{}
				}
				return versionOf(lease)
			})
		}
	}
}

// end has all actions be granted, and waits until each of them has ended.
func (x *deeds) end() {
	x.t.Helper()
	const id = 6
	b := &bed{T: x.t}
	states := map[api.ActionState]int{}
	for _, name := range x.names {
		b.await("action "+name+" to end", func() error {
			granted := linear.Wishes(name)[0]
			x.r.Do(id, granted, func() any { return x.wish(granted) })
			seen := x.r.Do(id, linear.See{Name: name}, func() any { return x.see(name) })
			a, ok := seen.(linear.Action)
			if !ok || !a.State.Final() {
				return fmt.Errorf("it is %v", seen)
			}
			states[a.State]++
			return nil
		})
	}
	x.t.Logf("of %d actions the ends are %v", len(x.names), states)
	if states[api.ActionDone] < 10 || states[api.ActionCancelled] < 3 || states[api.ActionFailed] > 0 {
		x.t.Error("too little was done, or something failed")
	}
}
