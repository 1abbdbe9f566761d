package leader

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/test/linear"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// TestLock_linearizable has contenders take, renew and release the real lock, with pauses between looking and writing, deaths, and
// requests that are lost or late. All that is answered fits one lock, and whoever does not hold it cannot act.
func TestLock_linearizable(t *testing.T) {
	config := loopback.Inside(t)
	r := playLock(t, config, false)
	if err := linear.Check(r, linear.Lock{}, linear.StepLock, nil); err != nil {
		t.Error(err)
	}
	counts := map[string]int{}
	for _, answer := range []any{linear.Done{}, linear.Overtaken{}, linear.Refused{}, linear.Unknown{}} {
		counts[fmt.Sprintf("%T", answer)] = r.Count(func(_, out any) bool { return out == answer })
	}
	t.Log(counts)
	if counts["linear.Overtaken"] < 5 || counts["linear.Refused"] < 10 || counts["linear.Unknown"] < 5 {
		t.Error("too little happened")
	}
	// A lock that is written over whatever is there is found out.
	r = playLock(t, config, true)
	if err := linear.Check(r, linear.Lock{}, linear.StepLock, nil); err == nil {
		t.Error("a lock without a condition passes: the test would see nothing")
	}
}

const (
	contenders = 5
	operations = 300
	markKey    = "mark"
)

// playLock returns a history of the lock. A broken one is written whatever version is there.
func playLock(t *testing.T, config *rest.Config, broken bool) *linear.Recording {
	t.Helper()
	r := linear.Record()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a slow machine needs longer for as much
	defer cancel()
	var all sync.WaitGroup
	for n := range contenders {
		way, own := linear.NewWay(config, 60)
		clientset, err := kubernetes.NewForConfig(fence.Config(own))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("lock-%v", broken)
		c := &contender{t: t, r: r, id: n, client: clientset, broken: broken, lock: &lock{leases: clientset.CoordinationV1().Leases("holdfast-system"), name: name, times: defaults}}
		all.Go(func() {
			for ctx.Err() == nil && r.Count(linear.Any) < operations {
				c.turn(way)
			}
			way.Wait()
		})
	}
	all.Wait()
	return r
}

// contender is one who wants the lock.
type contender struct {
	t      *testing.T
	r      *linear.Recording
	id     int
	client kubernetes.Interface
	lock   *lock
	broken bool

	seen  *coordinationv1.Lease
	token string // that it had last, whether it has the lock or not
	count int
}

func (c *contender) turn(way *linear.Way) {
	switch luck := rand.IntN(20); {
	case luck == 0: // cut off for a while
		way.Cut(true)
		time.Sleep(rand.N(50 * time.Millisecond))
		way.Cut(false)
	case luck == 1: // dies, and is there again
		c.seen, c.token = nil, ""
	case luck < 6 || c.seen == nil:
		c.look()
	case luck < 12 && c.token != "":
		c.act()
	case holder(c.seen) != c.token || c.token == "":
		c.token = fmt.Sprintf("c%d_%08x", c.id, c.count)
		c.write(taken(c.seen, c.token, defaults.Lease))
	case luck < 18:
		c.write(renewed(c.seen))
	default:
		c.write(released(c.seen))
	}
	time.Sleep(rand.N(5 * time.Millisecond))
}

func (c *contender) look() {
	c.r.Do(c.id, linear.Look{}, func() any {
		lease, err := c.lock.get(context.Background())
		if err != nil {
			c.t.Error(err)
			return linear.Unknown{}
		}
		c.seen = lease
		return linear.Lock{Mark: lease.Annotations[markKey], Holder: holder(lease)}
	})
}

func (c *contender) write(lease *coordinationv1.Lease) {
	c.count++
	over, mark := c.seen.Annotations[markKey], fmt.Sprintf("c%d/%d", c.id, c.count)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, markKey, mark)
	if c.broken && lease.ResourceVersion != "" {
		if now, err := c.lock.get(context.Background()); err == nil {
			lease.ResourceVersion = now.ResourceVersion
		}
	}
	c.r.Do(c.id, linear.Write{Over: over, Mark: mark, Holder: holder(lease)}, func() any {
		stored, err := c.lock.put(context.Background(), lease)
		if err == nil {
			c.seen = stored
		}
		return c.answer(err)
	})
}

func (c *contender) act() {
	ctx := fence.With(context.Background(), fence.Token{Name: c.lock.name, Value: c.token})
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "act-"}}
	c.r.Do(c.id, linear.Act{Holder: c.token}, func() any {
		_, err := c.client.CoreV1().ConfigMaps("default").Create(ctx, o, metav1.CreateOptions{})
		return c.answer(err)
	})
}

func (c *contender) answer(err error) any {
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
		c.t.Errorf("an answer that nobody expected: %v", err)
		return linear.Unknown{}
	}
}
