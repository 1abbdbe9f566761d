package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

// contest is an election among servers that share a Lease, on a virtual clock.
type contest struct {
	t      rapid.TB
	memory *memory
	acting atomic.Int32
	// forced is set when somebody takes the lease from its holder, who acts on for a renewal's time: then the fence alone helps.
	forced atomic.Bool
	wg     sync.WaitGroup

	// won is Election.Won of those who join from now on.
	won func(ctx context.Context, token string) error

	mu    sync.Mutex
	since map[string]time.Time // when each server began to act last
}

func newContest(t rapid.TB) *contest {
	return &contest{t: t, memory: &memory{}, since: map[string]time.Time{}}
}

// server is one that contends until stop is called.
type server struct {
	*reach
	stop context.CancelFunc
}

// join has a server contend. after is how long its work takes to end once leadership is lost.
func (c *contest) join(name string, after time.Duration) *server {
	return c.joinBy(&reach{memory: c.memory}, name, after)
}

func (c *contest) joinBy(r *reach, name string, after time.Duration) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{r, stop}
	e := &Election{Server: name, Won: c.won, Log: slog.New(slog.DiscardHandler)}
	c.wg.Go(func() {
		e.contend(ctx, &lock{leases: s.reach, name: "leader", times: defaults}, func(ctx context.Context, _ string) { c.act(ctx, name, after) })
	})
	return s
}

func (c *contest) act(ctx context.Context, name string, after time.Duration) {
	if c.acting.Add(1) != 1 && !c.forced.Load() {
		c.t.Errorf("%s acts while another server does", name)
	}
	c.mu.Lock()
	c.since[name] = time.Now()
	c.mu.Unlock()
	<-ctx.Done()
	time.Sleep(after)
	c.acting.Add(-1)
}

// leads waits until a server acts, and says how long that took.
func (c *contest) leads(name string) time.Duration {
	c.t.Helper()
	began := time.Now()
	for range 1000 {
		c.mu.Lock()
		since := c.since[name]
		c.mu.Unlock()
		if !since.Before(began) {
			return since.Sub(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatalf("%s does not lead", name)
	return 0
}

// TestElection_deadLeader: the next server leads at the moment at which the lease ends.
func TestElection_deadLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		a := c.join("a", 0)
		c.leads("a")
		b := c.join("b", 0)
		time.Sleep(10*time.Second + 300*time.Millisecond) // 300 ms after a renewal
		a.set(true)
		if took, want := c.leads("b"), defaults.Lease-300*time.Millisecond; took < want-20*time.Millisecond || took > want+20*time.Millisecond {
			t.Errorf("b leads %s after a was cut off, want %s: when the lease ends", took, want)
		}
		a.set(false)
		a.stop()
		b.stop()
		c.wg.Wait()
	})
}

// TestElection_passingFailure: a leader whose renewals fail for a while leads on, and its work is not cut off.
func TestElection_passingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		a := c.join("a", 0)
		c.leads("a")
		b := c.join("b", 0)
		began := time.Now()
		for range 20 {
			a.failing.Store(true)
			time.Sleep(defaults.Deadline - defaults.Renew - 2*defaults.Retry)
			a.failing.Store(false)
			time.Sleep(2 * defaults.Renew)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.since["a"].After(began) || !c.since["b"].IsZero() {
			t.Error("leadership was lost by an error that passed")
		}
		a.stop()
		b.stop()
	})
}

// TestElection_watchThatFails: a follower whose watches are refused, end, or fail as soon as they have begun asks again after a pause, and leads
// when its turn comes.
func TestElection_watchThatFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		watched func(*watch.RaceFreeFakeWatcher) error
		within  time.Duration
	}{
		{"refused", func(*watch.RaceFreeFakeWatcher) error { return apierrors.NewTooManyRequestsError("not now") }, defaults.Lease + 2*defaults.Retry},
		{"ends", func(w *watch.RaceFreeFakeWatcher) error {
			w.Stop()
			return nil
		}, defaults.Lease + 2*defaults.Retry},
		{"fails", func(w *watch.RaceFreeFakeWatcher) error {
			w.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
			return nil
		}, defaults.Lease + 2*defaults.Retry},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newContest(t)
				a := c.join("a", 0)
				c.leads("a")
				b := c.joinBy(&reach{memory: c.memory, watched: test.watched}, "b", 0)
				time.Sleep(time.Minute)
				// It reads and watches once for each pause.
				if n, most := b.requests.Load(), int32(2*time.Minute/defaults.Retry)+2; n < 10 || n > most {
					t.Errorf("%d requests in a minute, want 10 to %d", n, most)
				}
				a.set(true)
				if took := c.leads("b"); took > test.within {
					t.Errorf("b leads %s after a was cut off, want %s at most", took, test.within)
				}
				a.set(false)
				a.stop()
				b.stop()
				c.wg.Wait()
			})
		})
	}
}

// TestElection_handOver: a server that stops ends its work first, and then the next one leads at once.
func TestElection_handOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		a := c.join("a", 7*time.Second) // longer than a lease: it is renewed meanwhile
		c.leads("a")
		b := c.join("b", 0)
		time.Sleep(3 * time.Second)
		a.stop()
		if took := c.leads("b"); took < 7*time.Second || took > 7*time.Second+20*time.Millisecond {
			t.Errorf("b leads after %s, want 7s: when the work of a has ended", took)
		}
		b.stop()
		c.wg.Wait()
	})
}

// TestElection_returns: a server that was killed and is there again does not wait for the end of its own lease.
func TestElection_returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		a := c.join("a", 0)
		c.leads("a")
		a.set(true)
		a.stop()
		c.wg.Wait()
		again := c.join("a", 0)
		if took := c.leads("a"); took > time.Second {
			t.Errorf("it leads after %s", took)
		}
		again.stop()
		c.wg.Wait()
	})
}

// TestElection_won: a winner whose token is not made to count does not lead, and lets the others try. One that hangs meanwhile
// loses the lease, and does not lead either.
func TestElection_won(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		asked := 0
		c.won = func(ctx context.Context, token string) error {
			if asked++; asked > 1 {
				return nil
			}
			return errors.New("the term is not seen")
		}
		a := c.join("a", 0)
		if took := c.leads("a"); took > time.Second || asked != 2 {
			t.Errorf("it leads after %s, asked %d times", took, asked)
		}
		a.stop()
		c.wg.Wait()
		c.won = func(ctx context.Context, token string) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		hung := c.join("hung", 0)
		time.Sleep(time.Second)
		hung.set(true)
		c.won = nil
		b := c.join("b", 0)
		if took := c.leads("b"); took > defaults.Lease+defaults.Retry {
			t.Errorf("b leads after %s", took)
		}
		hung.stop()
		b.stop()
		c.wg.Wait()
	})
}

// TestElection_foreignWrite: that somebody writes a label into the Lease ends nobody's leadership; that somebody takes the holder
// out does.
func TestElection_foreignWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newContest(t)
		a := c.join("a", 0)
		c.leads("a")
		admin := &lock{leases: &reach{memory: c.memory}, name: "leader"}
		edit := func(release bool) {
			lease, err := admin.get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if lease.Labels = map[string]string{"a": "b"}; release {
				lease.Spec.HolderIdentity = nil
			}
			if _, err := admin.put(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		edit(false)
		time.Sleep(3 * time.Second)
		if c.acting.Load() != 1 {
			t.Error("a label ended its leadership")
		}
		b := c.join("b", 0)
		time.Sleep(500 * time.Millisecond)
		c.forced.Store(true)
		edit(true)
		c.leads("b")
		time.Sleep(defaults.Renew)
		if c.acting.Load() != 1 {
			t.Error("a goes on although b has the lease")
		}
		a.stop()
		b.stop()
		c.wg.Wait()
	})
}

// TestElection_oneActs: whoever is cut off and however long, two servers never act at one time, and somebody leads soon after
// someone can be reached again.
func TestElection_oneActs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(0, 7), 1, 12).Draw(rt, "cuts")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 8000), len(cuts), len(cuts)).Draw(rt, "pauses")
		synctest.Test(t, func(t *testing.T) {
			c := newContest(rt)
			servers := []*server{c.join("a", 0), c.join("b", 100*time.Millisecond), c.join("c", time.Second)}
			for i, cut := range cuts {
				for n, s := range servers {
					s.set(cut&(1<<n) != 0)
				}
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
			}
			for _, s := range servers {
				s.set(false)
			}
			time.Sleep(2 * defaults.Lease)
			if c.acting.Load() != 1 {
				rt.Errorf("%d servers act, want one", c.acting.Load())
			}
			for _, s := range servers {
				s.stop()
			}
			c.wg.Wait()
		})
	})
}
