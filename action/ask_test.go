package action_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// oracle says what is against actions, by their names, and remembers of which it was asked.
type oracle struct {
	mu      sync.Mutex
	against map[string]string
	err     error
	asked   []string
}

func (o *oracle) ask(_ context.Context, a *api.Action) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, a.Name)
	if o.against[a.Name] == "a fault" {
		panic("no such thing")
	}
	return o.against[a.Name], o.err
}

func (o *oracle) say(name, against string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.against[name], o.err = against, err
}

func (o *oracle) calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.asked...)
}

// asking is a leader that asks the oracle before agents restart something.
func asking(t *testing.T, against map[string]string) (*leader, *oracle) {
	l, o := newLeader(t), &oracle{against: against}
	l.runner.Agents = append(l.runner.Agents, askingKind)
	l.runner.Ask = o.ask
	l.store.SetHost("h1", action.HostFacts{})
	l.store.SetHost("h2", action.HostFacts{})
	return l, o
}

var askingKind = action.Kind{
	Name: "test.restart", Executor: api.ByAgent, Mode: action.Rolling, Steps: []string{"one"}, Asks: true, ExpiresAfter: time.Hour,
}

func onHost(host string) func(*api.Action) {
	return func(a *api.Action) { a.Spec.Host = host }
}

func (l *leader) waitsFor(name, text string) {
	l.Helper()
	if s := l.get(name).Status; s.State != api.ActionPendingSchedule || !strings.Contains(s.WaitsFor, text) {
		l.Errorf("%s is %s and waits for %q; want %q", name, s.State, s.WaitsFor, text)
	}
}

// end ends an action as its agent does.
func (l *leader) end(name string) {
	l.Helper()
	a := l.get(name)
	a.Status.State = api.ActionDone
	if _, err := l.store.PutStatus(l.Context(), a); err != nil {
		l.Fatal(err)
	}
}

// What something is against waits for it, is asked again, and begins when nothing is against it any more.
func TestAsk_waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := asking(t, map[string]string{"a": "copies to be made"})
		defer l.start()()
		l.create("a", "restart", onHost("h1"))
		synctest.Wait()
		l.waitsFor("a", "copies to be made")
		version := l.get("a").ResourceVersion
		time.Sleep(time.Minute)
		if got := len(o.calls()); got < 10 || got > 15 {
			t.Errorf("within a minute it was asked %d times", got)
		}
		if l.get("a").ResourceVersion != version {
			t.Error("it is written again while the answer is the same")
		}
		o.say("a", "the mons to answer", nil)
		time.Sleep(6 * time.Second)
		l.waitsFor("a", "the mons to answer")
		o.say("a", "", errors.New("no route to host"))
		time.Sleep(6 * time.Second)
		l.waitsFor("a", "the check whether it may begin: no route to host")
		o.say("a", "a fault", nil)
		time.Sleep(time.Minute)
		l.waitsFor("a", "fault in test.restart (see the log): no such thing")
		o.say("a", "", nil)
		time.Sleep(2 * time.Minute)
		l.want("a", api.ActionNew, "its turn has come")
		asked := len(o.calls())
		if time.Sleep(time.Minute); len(o.calls()) != asked {
			t.Error("it is asked when it may begin already")
		}
	})
}

// Many that wait for one cluster are asked about no oftener, together, than one; and each of them begins when nothing is against it any more.
func TestAsk_many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 20
		against := map[string]string{}
		for i := range many {
			against[fmt.Sprint("a", i)] = "copies to be made"
		}
		l, o := asking(t, against)
		defer l.start()()
		for i := range many {
			l.create(fmt.Sprint("a", i), "restart", onHost(fmt.Sprint("h", 1+i%2)))
		}
		time.Sleep(5 * time.Minute)
		before := len(o.calls())
		time.Sleep(10 * time.Minute)
		if got := len(o.calls()) - before; got > 150 || got < 90 {
			t.Errorf("within ten minutes it was asked %d times, want 120", got)
		}
		o.say("a7", "", nil)
		time.Sleep(3 * time.Minute)
		l.want("a7", api.ActionNew, "its turn has come")
	})
}

// While it waits an action can be cancelled, and expires with the word on what it waited for.
func TestAsk_ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := asking(t, map[string]string{"a": "osd.2 to come back", "b": "osd.3 to come back"})
		defer l.start()()
		l.create("a", "restart", onHost("h1"))
		l.create("b", "restart", onHost("h2"))
		synctest.Wait()
		l.spec("a", func(a *api.Action) { a.Spec.Want = api.WantCancelled })
		synctest.Wait()
		l.want("a", api.ActionCancelled, "cancelled before it began")
		time.Sleep(time.Hour + 10*time.Second)
		l.want("b", api.ActionFailed, "not begun within 1h0m0s; it waited for: osd.3 to come back")
	})
}

// One that hangs while it is asked is cancelled all the same, and what it says then counts for nothing.
func TestAsk_hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := asking(t, nil)
		l.runner.Ask = func(ctx context.Context, _ *api.Action) (string, error) {
			<-ctx.Done()
			return "", nil
		}
		stop := l.start()
		l.create("a", "restart", onHost("h1"))
		synctest.Wait()
		l.waitsFor("a", "the check whether it may begin")
		l.spec("a", func(a *api.Action) { a.Spec.Want = api.WantCancelled })
		synctest.Wait()
		l.want("a", api.ActionCancelled, "cancelled before it began")
		l.create("b", "restart", onHost("h1"))
		synctest.Wait()
		stop()
		l.waitsFor("b", "the check whether it may begin")
	})
}

// Of two in a row the second is asked about when the first is done: what was said before does not count.
func TestAsk_inLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := asking(t, map[string]string{})
		defer l.start()()
		l.create("a", "restart", onHost("h1"))
		synctest.Wait()
		l.create("b", "restart", onHost("h2"))
		synctest.Wait()
		l.want("a", api.ActionNew, "")
		l.waitsFor("b", "action a (test.restart host/h1), which is in progress")
		if diff := cmp.Diff([]string{"a"}, o.calls()); diff != "" {
			t.Error(diff)
		}
		o.say("b", "copies to be made", nil)
		l.end("a")
		synctest.Wait()
		l.waitsFor("b", "copies to be made")
		o.say("b", "", nil)
		time.Sleep(6 * time.Second)
		l.want("b", api.ActionNew, "")
	})
}

// What something is against is in nobody's way: the restart of another daemon may be what mends it. Then it has to wait for that one.
func TestAsk_overtaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := asking(t, map[string]string{"a": "osd.2 to come back"})
		defer l.start()()
		l.create("a", "restart", onHost("h1"))
		synctest.Wait()
		time.Sleep(time.Second)
		l.create("b", "restart", onHost("h1"))
		synctest.Wait()
		l.want("b", api.ActionNew, "")
		l.waitsFor("a", "action b (test.restart host/h1), which is in progress: one action at a time on host h1")
		o.say("a", "", nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"a", "b"}, o.calls()); diff != "" {
			t.Errorf("while another one is in its way: %s", diff)
		}
		l.end("b")
		synctest.Wait()
		l.want("a", api.ActionNew, "")
	})
}

// A leader that takes over asks anew; one that asks nobody lets all begin; and the other kinds are never asked about.
func TestAsk_leaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := asking(t, map[string]string{"a": "osd.2 to come back"})
		stop := l.start()
		l.create("a", "restart", onHost("h1"))
		l.create("other", "shared")
		synctest.Wait()
		stop()
		o.say("a", "", nil)
		stop = l.start()
		synctest.Wait()
		stop()
		l.want("a", api.ActionNew, "")
		if diff := cmp.Diff("[a a]", fmt.Sprint(o.calls())); diff != "" {
			t.Error(diff)
		}
		l.runner.Ask = nil
		l.create("b", "restart", onHost("h2"), func(a *api.Action) { a.Spec.Cluster = "d" })
		stop = l.start()
		synctest.Wait()
		stop()
		l.want("b", api.ActionNew, "")
	})
}
