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
	"k8s.io/utils/ptr"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/test/linear"
)

// markKey is the annotation that each write of the lock changes.
const markKey = "mark"

// locked is a lock as that of a cluster: a Lease and a fence of its name, which change at once.
type locked struct {
	t    *testing.T
	ways ways
	name string
	r    *linear.Recording
}

func newLock(t *testing.T, w ways, name string) *locked {
	t.Helper()
	x := &locked{t: t, ways: w, name: name, r: linear.Record()}
	w.setUp(t, func(ctx context.Context, c kube.Client) error { return c.Create(ctx, x.lease()) })
	return x
}

func (x *locked) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: x.name}}
}

// play has four contend for the lock until ctx ends.
func (x *locked) play(ctx context.Context, all *sync.WaitGroup) {
	for n := range 4 {
		all.Go(func() {
			c := &lockClient{locked: x, id: n}
			for ctx.Err() == nil {
				c.turn()
				time.Sleep(rand.N(100 * time.Millisecond))
			}
		})
	}
}

// lockClient is one who wants the lock.
type lockClient struct {
	*locked
	id, count int
	// seen is the Lease as it was read last, and token what this one had the lock by, whether it has it still or not.
	seen  *coordinationv1.Lease
	token string
}

func (c *lockClient) turn() {
	luck := rand.IntN(10)
	holds := c.seen != nil && c.token != "" && ptr.Deref(c.seen.Spec.HolderIdentity, "") == c.token
	switch {
	case luck < 3 || c.seen == nil:
		c.r.Do(c.id, linear.Look{}, func() any { return c.look() })
	case c.token != "" && (luck < 5 || holds && luck < 9):
		c.r.Do(c.id, linear.Act{Holder: c.token}, func() any { return c.act() })
	case holds:
		c.write("")
	default:
		c.token = fmt.Sprintf("c%d_%08x", c.id, c.count)
		c.write(c.token)
	}
}

func (c *lockClient) look() any {
	lease := c.lease()
	err := c.ways.ask(func(ctx context.Context, to kube.Client) error {
		return to.Get(ctx, kube.ObjectKeyFromObject(lease), lease)
	})
	if err != nil {
		return linear.Moot{}
	}
	c.seen = lease
	return linear.Lock{Mark: lease.Annotations[markKey], Holder: ptr.Deref(lease.Spec.HolderIdentity, "")}
}

// write takes the lock, or releases it, in the place of what was seen.
func (c *lockClient) write(holder string) {
	c.count++
	next, mark := c.seen.DeepCopy(), fmt.Sprintf("c%d/%d", c.id, c.count)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, markKey, mark)
	next.Spec.HolderIdentity = &holder
	if holder == "" {
		next.Spec.HolderIdentity = nil
	}
	c.r.Do(c.id, linear.Write{Over: c.seen.Annotations[markKey], Mark: mark, Holder: holder}, func() any {
		err := c.ways.ask(func(ctx context.Context, to kube.Client) error {
			return to.Update(fence.Setting(ctx, fence.Token{Name: c.name, Value: holder}), next)
		})
		if err == nil {
			c.seen = next
		}
		return answerTo(c.t, err)
	})
}

// act writes under the lock.
func (c *lockClient) act() any {
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "act-"}}
	return answerTo(c.t, c.ways.ask(func(ctx context.Context, to kube.Client) error {
		return to.Create(fence.With(ctx, fence.Token{Name: c.name, Value: c.token}), o)
	}))
}
