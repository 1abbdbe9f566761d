package control_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/members"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// logOf is a log of events in etcd, in a namespace of the test's own, and those who write it.
type logOf struct {
	client.Client
	t  *testing.T
	ns string
}

func newLog(t *testing.T) *logOf {
	t.Helper()
	s, _ := sharedServer(t)
	config := s.Config()
	config.QPS = -1
	c := newClient(t, config)
	return &logOf{Client: c, t: t, ns: newNamespace(t, c)}
}

func (l *logOf) leader() *members.Log {
	l.t.Helper()
	s, _ := sharedServer(l.t)
	leader, err := members.NewLog(s.Config(), l.ns)
	if err != nil {
		l.t.Fatal(err)
	}
	return leader
}

func (l *logOf) events() []api.ClusterEvent {
	l.t.Helper()
	var list api.ClusterEventList
	if err := l.List(l.t.Context(), &list, client.InNamespace(l.ns)); err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

func (l *logOf) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// viewOf are the voters a and so on, all of which do their part.
func viewOf(names string) (v quorum.View) {
	for _, name := range names {
		v.Members = append(v.Members, quorum.Member{ID: uint64(name), Name: string(name), Voter: true, Etcd: quorum.Word{Good: true}})
	}
	return v
}

// TestQuorumEvents_twoLeaders: one leader of etcd is stopped when it has looked at the members; the next one tells what was new, and more.
// What the first one then wants to tell is older than what was told, and is refused. After another look it knows.
func TestQuorumEvents_twoLeaders(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	first, second := l.leader(), l.leader()
	l.must(first.Read(t.Context()))
	l.must(first.Tell(t.Context(), viewOf("abc"), quorum.Plan{}, nil))

	l.must(first.Read(t.Context()))
	looked := viewOf("abcd")
	l.must(second.Read(t.Context()))
	l.must(second.Tell(t.Context(), looked, quorum.Plan{}, nil))
	l.must(second.Tell(t.Context(), viewOf("acd"), quorum.Plan{Degraded: "something"}, nil))
	if err := first.Tell(t.Context(), looked, quorum.Plan{}, nil); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the first leader told what is old: %v", err)
	}
	for _, leader := range []*members.Log{first, second, l.leader()} {
		l.must(leader.Read(t.Context()))
		l.must(leader.Tell(t.Context(), viewOf("acd"), quorum.Plan{Degraded: "something"}, nil))
	}
	l.told("HEALTHY cluster/control-plane", "MEMBER_ADDED host/d", "MEMBER_PROMOTED host/d", "MEMBER_REMOVED host/b", "DEGRADED cluster/control-plane")
}

// TestQuorumEvents_leaders: who leads is told once per difference, beside the leader of etcd, whose record it carries on, and which carries on
// who leads.
func TestQuorumEvents_leaders(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	first, etcd := l.leader(), l.leader()
	l.must(first.Leads(t.Context(), "a"))
	l.must(etcd.Read(t.Context()))
	l.must(etcd.Tell(t.Context(), viewOf("abc"), quorum.Plan{}, nil))
	l.must(first.Leads(t.Context(), "a"))
	l.must(etcd.Tell(t.Context(), viewOf("abcd"), quorum.Plan{}, nil))
	l.must(l.leader().Leads(t.Context(), "b"))
	l.must(l.leader().Leads(t.Context(), "b"))
	if err := etcd.Tell(t.Context(), viewOf("abc"), quorum.Plan{}, nil); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the leader of etcd has overwritten who leads: %v", err)
	}
	l.must(etcd.Read(t.Context()))
	l.must(etcd.Tell(t.Context(), viewOf("abc"), quorum.Plan{}, nil))
	l.must(l.leader().Leads(t.Context(), "a"))
	l.told(
		"LEADER_CHANGED leader/a", "HEALTHY cluster/control-plane", "MEMBER_ADDED host/d", "MEMBER_PROMOTED host/d", "LEADER_CHANGED leader/b",
		"MEMBER_REMOVED host/d", "LEADER_CHANGED leader/a",
	)
}

// told compares the whole log.
func (l *logOf) told(want ...string) {
	l.t.Helper()
	var told []string
	for i, e := range l.events() {
		if e.Sequence != int64(i+1) {
			l.t.Errorf("event %d has the number %d", i+1, e.Sequence)
		}
		told = append(told, strings.TrimPrefix(e.Code, "QUORUM_")+" "+e.Object)
	}
	if !slices.Equal(told, want) {
		l.t.Errorf("told were %q, want %q", told, want)
	}
}

// TestQuorumEvents_bounded: as many are kept as of a cluster, and for as long; the last one stays however old it is, and the numbers go on.
func TestQuorumEvents_bounded(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.tell("one")
	l.fill(api.MaxClusterEvents + 20)
	l.tell("one")
	l.numbers(21, api.MaxClusterEvents+20)

	l.age(api.MaxClusterEventAge+time.Minute, 21, 500)
	l.age(api.MaxClusterEventAge-time.Hour, 501, 501)
	l.tell("one")
	l.numbers(501, api.MaxClusterEvents+20)
	l.age(api.MaxClusterEventAge+time.Minute, 501, api.MaxClusterEvents+20)
	l.tell("one")
	l.numbers(api.MaxClusterEvents+20, api.MaxClusterEvents+20)
	l.tell("another")
	l.numbers(api.MaxClusterEvents+21, api.MaxClusterEvents+21)
}

// tell has a new leader tell what is degraded. On a busy machine that takes more than one look.
func (l *logOf) tell(degraded string) {
	l.t.Helper()
	leader := l.leader()
	eventually(l.t, func() error {
		if err := leader.Read(l.t.Context()); err != nil {
			return err
		}
		return leader.Tell(l.t.Context(), viewOf("abc"), quorum.Plan{Degraded: degraded}, nil)
	})
}

// fill adds events that are as the first one, up to a number.
func (l *logOf) fill(last int64) {
	l.t.Helper()
	first := l.events()[0]
	var group errgroup.Group
	group.SetLimit(16)
	for n := first.Sequence + 1; n <= last; n++ {
		e := first.DeepCopy()
		e.ObjectMeta = metav1.ObjectMeta{
			Namespace: l.ns, Name: api.ClusterEventName(quorum.ControlPlane, n), Labels: first.Labels, Annotations: first.Annotations,
		}
		e.Sequence = n
		group.Go(func() error { return l.Create(l.t.Context(), e) })
	}
	l.must(group.Wait())
}

// age makes events older.
func (l *logOf) age(by time.Duration, first, last int64) {
	l.t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, e := range l.events() {
		if e.Sequence >= first && e.Sequence <= last {
			e.Time = metav1.NewMicroTime(time.Now().Add(-by))
			group.Go(func() error { return l.Update(l.t.Context(), &e) })
		}
	}
	l.must(group.Wait())
}

// numbers compares the numbers of the events that are kept.
func (l *logOf) numbers(first, last int64) {
	l.t.Helper()
	have := l.events()
	for i, e := range have {
		if e.Sequence != first+int64(i) {
			l.t.Fatalf("event %d of those kept has the number %d", i+1, e.Sequence)
		}
	}
	if int64(len(have)) != last-first+1 {
		l.t.Fatalf("%d events are kept, from %d on; the last one should be %d", len(have), first, last)
	}
}

// TestQuorumEvents_leaderEnds: leaders of etcd end, each when it has just changed the members and before it tells: one added a member,
// one promoted it, and one removed the member that it replaces. Who leads next tells it, once.
func TestQuorumEvents_leaderEnds(t *testing.T) {
	t.Parallel()
	trap := &trap{caught: make(chan string), release: make(chan struct{})}
	c := newCrew(t, "e", 4, func(config *control.Config) {
		config.Log = slog.New(trapped{config.Log.Handler(), trap, config.Name})
	})
	c.toldOnce(0)
	leaves, stays := 1, 2
	if c.servers[leaves].Quorum() != nil {
		leaves, stays = stays, leaves
	}
	trap.set(quorum.Add)
	c.maintain(leaves)
	for _, next := range []quorum.Verb{quorum.Promote, quorum.Remove, ""} {
		i := c.index(trap.next(t))
		trap.set(next)
		c.end(i, trap)
		if i != leaves { // It is removed any moment.
			c.start(i)
		}
	}
	seated(t, 3, c.servers[0], c.servers[stays], c.servers[3])
	c.toldOnce(0)
	told := map[string]string{}
	for _, e := range events(t, c.servers[0]) {
		told[e.Code+" "+e.Object] = e.Message
	}
	for event, want := range map[string]string{
		"QUORUM_MEMBER_ADDED host/e3": "cause unknown", "QUORUM_MEMBER_PROMOTED host/e3": "it has caught up",
		"QUORUM_MEMBER_REMOVED host/" + c.configs[leaves].Name: "cause unknown",
	} {
		if !strings.HasPrefix(told[event], want) {
			t.Errorf("%s was told with %q, want %q: was it told by the leader that did it?", event, told[event], want)
		}
	}
}

// trap holds a leader of etcd between a step and the look by which it tells: when it logs the step.
type trap struct {
	mu     sync.Mutex
	verb   quorum.Verb
	caught chan string
	// release lets who is caught go on.
	release chan struct{}
}

func (t *trap) set(verb quorum.Verb) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.verb = verb
}

// catches says whether the trap is set for a verb, and catches once.
func (t *trap) catches(verb quorum.Verb) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verb != verb {
		return false
	}
	t.verb = ""
	return true
}

// next is the name of the next server that is caught.
func (t *trap) next(test *testing.T) string {
	test.Helper()
	select {
	case name := <-t.caught:
		return name
	case <-timeout(test).Done():
		test.Fatal("nobody is caught")
		return ""
	}
}

// trapped is a handler of the log of one server.
type trapped struct {
	slog.Handler
	*trap
	name string
}

func (h trapped) WithAttrs(attrs []slog.Attr) slog.Handler {
	return trapped{h.Handler.WithAttrs(attrs), h.trap, h.name}
}

func (h trapped) Enabled(context.Context, slog.Level) bool { return true }

func (h trapped) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "the members of etcd change" {
		r.Attrs(func(a slog.Attr) bool {
			if verb, ok := a.Value.Any().(quorum.Verb); ok && h.catches(verb) {
				h.caught <- h.name
				<-h.release
			}
			return true
		})
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// end ends a server that is caught: it is let go when it does not hold its seat any more.
func (c *crew) end(i int, trap *trap) {
	c.t.Helper()
	held, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(c.t.Context())
	go func() {
		defer close(ended)
		_ = c.servers[i].WhileSeated(ctx, func(seat context.Context) error { // It returns no error of a seat that has ended.
			close(held)
			<-seat.Done()
			cancel()
			return nil
		})
		trap.release <- struct{}{}
	}()
	<-held
	c.stops[i]()
	<-ended
}

func (c *crew) index(name string) int {
	return slices.IndexFunc(c.configs, func(config control.Config) bool { return config.Name == name })
}

// maintain puts the host of a server into maintenance.
func (c *crew) maintain(i int) {
	c.t.Helper()
	admin, host := newClient(c.t, c.servers[0].Config()), &api.Host{}
	eventually(c.t, func() error {
		if err := admin.Get(c.t.Context(), key("", c.configs[i].Name), host); err != nil {
			return err
		}
		host.Spec.Mode = api.HostMaintenance
		return admin.Update(c.t.Context(), host)
	})
}
