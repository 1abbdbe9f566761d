// Package members manages the members of etcd: it decides with package driver/etcd which servers
// hold one, carries that out while its own member leads, and writes what became of them to the
// events of the control plane.
package members

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/rotation"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
)

// How often the leader looks at the members: more often while one of them learns.
const (
	lookEvery  = 2 * time.Second
	learnEvery = 200 * time.Millisecond
	// fillTimeout is how long a look waits for a learner to catch up: the other one may be ready.
	fillTimeout = time.Second
	// observeTimeout bounds what is only looked at, one hung member among it.
	observeTimeout = 8 * time.Second
	// lookTimeout bounds one look with all that it does and writes.
	lookTimeout = 30 * time.Second
	// askedFor is how long a standby that asked counts as one that asks.
	askedFor = 5 * time.Second
)

// Config is what a manager works with.
type Config struct {
	Member *etcd.Member
	// REST reaches the API with the rights of a server.
	REST     *rest.Config
	Settings quorum.Settings
	// Know is called with the addresses at which the API is served, as IP:port, again and again.
	Know func(servers []string)
	// Generation and Restored are those of quorum.View.
	Generation int64
	Restored   string
	Log        *slog.Logger
}

// Manager manages the members of etcd. It runs beside each member and acts where the member leads
// etcd: a step of a server that leads etcd no more has no effect, so no other election is needed.
// Run is called once; the other methods may be called at any time.
type Manager struct {
	Config
	servers *servers
	client  kubernetes.Interface
	events  *Log
	kick    chan struct{}

	mu sync.Mutex
	// asks are the standbys that have asked this server.
	asks map[string]ask
	// full are the standbys without room for a member that have asked this server.
	full map[string]full
	// What was observed while this member leads; see forget.
	answers, etcd   map[uint64]quorum.Word // by the member: one that was added anew has not been silent yet
	agent, asking   map[string]quorum.Word
	removed, failed map[string]time.Time
	plan            quorum.Plan
	view            quorum.View
	seen            time.Time // when view was
	// steps were tried, and may not be told yet; tidied are the servers when what is kept of them
	// was looked through. Only Run uses them.
	steps  []quorum.Step
	tidied map[string]bool
}

type ask struct {
	peerURL string
	at      time.Time
	// lost is set when the server has a member and no data.
	lost bool
	// why is how it lost them.
	why string
}

type full struct {
	why string
	at  time.Time
}

// New returns a manager, which sends no request before Run.
func New(c Config) (*Manager, error) {
	events, err := NewLog(c.REST, api.SystemNamespace)
	if err != nil {
		return nil, err
	}
	servers, err := newServers(c.REST)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		return nil, err
	}
	c.Log = c.Log.With("part", "quorum")
	q := &Manager{
		Config: c, servers: servers, events: events, client: client,
		kick: make(chan struct{}, 1), asks: map[string]ask{}, full: map[string]full{},
	}
	q.forget()
	return q, nil
}

// forget drops what was observed: another member leads, and what this one saw is old when it leads
// again.
func (q *Manager) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers, q.etcd = map[uint64]quorum.Word{}, map[uint64]quorum.Word{}
	q.agent, q.asking = map[string]quorum.Word{}, map[string]quorum.Word{}
	q.removed, q.failed = map[string]time.Time{}, map[string]time.Time{}
	q.plan, q.view, q.seen, q.steps = quorum.Plan{}, quorum.View{}, time.Time{}, nil
	q.tidied = nil
	q.events.forget()
}

// Asked notes that a standby asks for a seat; lost is set when its member has lost its data, and
// why says how.
func (q *Manager) Asked(name, peerURL string, lost bool, why string) {
	q.mu.Lock()
	_, known := q.asks[name]
	q.asks[name] = ask{peerURL, time.Now(), lost, why}
	q.mu.Unlock()
	if !known {
		select {
		case q.kick <- struct{}{}:
		default:
		}
	}
}

// Full notes that a standby asks and has no room for a member. why says how much it lacks; older
// versions leave it empty.
func (q *Manager) Full(name, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full[name] = full{why, time.Now()}
}

// Run looks and acts until ctx ends.
func (q *Manager) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() {
		if err := q.servers.run(ctx); err != nil {
			q.Log.Error("the list of servers cannot be followed", "error", err)
		}
	})
	leads := false
	for ctx.Err() == nil {
		wait := lookEvery
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		switch {
		case q.Member.Leads():
			leads = true
			wait = q.refresh(look)
		case leads:
			leads = false
			q.forget()
		}
		if list, err := q.servers.published(look); err == nil {
			q.Know(endpoints.Addresses(list))
		}
		cancel()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-q.kick:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// refresh does one step towards what is wanted, and says when to look again.
func (q *Manager) refresh(ctx context.Context) time.Duration {
	unread := q.events.Read(ctx)
	view, err := q.observe(ctx)
	if err != nil {
		if ctx.Err() == nil {
			q.Log.Debug("the quorum could not be observed", "error", err)
		}
		return lookEvery
	}
	plan := quorum.Make(*view, q.Settings, time.Now())
	q.mu.Lock()
	q.plan, q.view, q.seen = plan, *view, time.Now()
	q.mu.Unlock()
	q.tell(ctx, unread, view, plan)
	q.tidy(ctx, view)
	if plan.Step != nil {
		return q.act(ctx, plan.Step)
	}
	for _, m := range view.Members {
		if !m.Voter && !m.Etcd.Good {
			return learnEvery
		}
	}
	return lookEvery
}

// tidy takes servers whose Hosts are gone, and whose members are, off the list, and what they said
// of a rotation with them.
func (q *Manager) tidy(ctx context.Context, view *quorum.View) {
	there := map[string]bool{}
	for _, s := range view.Servers {
		there[s.Name] = true
	}
	list, err := q.servers.published(ctx)
	if err != nil {
		return
	}
	maps.DeleteFunc(list.Data, func(name, _ string) bool { return there[name] }) // the list is a copy
	if len(list.Data) == 0 && maps.Equal(there, q.tidied) {
		return
	}
	for _, of := range []string{endpoints.ServersName, rotation.BeliefsName} {
		if err := endpoints.Keep(ctx, q.client, of, func(name string) bool { return there[name] }); err != nil {
			q.Log.Debug("the list of servers is cleaned up later", "error", err)
			return
		}
	}
	q.tidied = there
}

// act carries a step out. What does not succeed is decided anew with the next look.
func (q *Manager) act(ctx context.Context, step *quorum.Step) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	same := func(s quorum.Step) bool { return s.Verb == step.Verb && s.Server == step.Server }
	q.steps = append(slices.DeleteFunc(q.steps, same), *step)
	err := q.do(ctx, step)
	switch {
	case errors.Is(err, etcd.ErrNotReady):
		return learnEvery
	case err != nil:
		q.Log.Warn("a change of the members of etcd did not succeed", "verb", step.Verb, "server", step.Server, "error", err)
		return lookEvery
	}
	switch {
	case step.Verb == quorum.Lead:
		q.Log.Info("this member hands its leadership over", "to", step.Server, "reason", step.Reason)
		return lookEvery
	case step.Verb == quorum.Remove && step.Member == q.Member.ID():
		q.Log.Info("this member hands its leadership over; the next leader removes it", "reason", step.Reason)
		return lookEvery
	}
	q.Log.InfoContext(ctx, "the members of etcd change", "verb", step.Verb, "server", step.Server, "reason", step.Reason)
	return learnEvery
}

func (q *Manager) do(ctx context.Context, step *quorum.Step) error {
	switch step.Verb {
	case quorum.Add:
		q.mu.Lock()
		peerURL := q.asks[step.Server].peerURL
		q.mu.Unlock()
		return q.Member.AddLearner(ctx, peerURL)
	case quorum.Promote:
		return q.Member.Promote(ctx, step.Member)
	case quorum.Lead:
		return q.Member.Lead(ctx, step.Member)
	default:
		if err := q.Member.Remove(ctx, step.Member); err != nil || step.Member == q.Member.ID() {
			return err
		}
		q.noteFailed(step)
		return nil
	}
}

// noteFailed notes that a server has no member any more, and whether it did not take the seat that
// it was given.
func (q *Manager) noteFailed(step *quorum.Step) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a, ok := q.asks[step.Server]; ok {
		a.lost = false
		q.asks[step.Server] = a
	}
	for _, m := range q.view.Members {
		if m.ID == step.Member && !m.Voter && !m.Etcd.Good {
			q.failed[step.Server] = time.Now()
		}
	}
}

// observe looks at the members, the Hosts and the standbys.
func (q *Manager) observe(ctx context.Context) (*quorum.View, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	hosts, err := q.servers.hosts(ctx)
	if err != nil {
		return nil, err
	}
	members := q.Member.Members()
	probed := q.probe(ctx, members)
	q.mu.Lock()
	defer q.mu.Unlock()
	now, view := time.Now(), &quorum.View{Generation: q.Generation, Restored: q.Restored}
	seen := map[string]bool{}
	for i := range hosts {
		seen[hosts[i].Name] = true
		delete(q.removed, hosts[i].Name)
		view.Servers = append(view.Servers, q.server(&hosts[i], now))
	}
	for i, m := range members {
		name := q.nameOf(m)
		note(q.answers, m.ID, probed[i].answers, now)
		note(q.etcd, m.ID, probed[i].works, now)
		view.Members = append(view.Members, quorum.Member{
			ID: m.ID, Name: name, Unnamed: name == m.PeerURL, Voter: m.Voter, Started: m.Name != "",
			Answers: q.answers[m.ID], Etcd: q.etcd[m.ID],
		})
		if m.ID == q.Member.ID() {
			view.Leader = name
		}
		if !seen[name] {
			view.Servers = append(view.Servers, q.stranger(m, name, now))
		}
	}
	return view, nil
}

func note[K comparable](words map[K]quorum.Word, of K, good bool, now time.Time) {
	words[of] = words[of].Note(good, now)
}

// probed is what one look at a member found.
type probed struct{ answers, works bool }

// probe looks at all members, this one among them, at once.
func (q *Manager) probe(ctx context.Context, members []etcd.Info) []probed {
	found := make([]probed, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() {
			look, cancel := ctx, context.CancelFunc(func() {})
			if !m.Voter {
				look, cancel = context.WithTimeout(ctx, fillTimeout)
			}
			defer cancel()
			works := q.Member.Works(look, m.PeerURL)
			found[i] = probed{answers: works || q.Member.Answers(ctx, m.PeerURL), works: works}
		})
	}
	wg.Wait()
	return found
}

// nameOf is the name of a member's server; before it ran for the first time only its server knows
// it.
func (q *Manager) nameOf(m etcd.Info) string {
	if m.Name != "" {
		return m.Name
	}
	for name, a := range q.asks {
		if a.peerURL == m.PeerURL {
			return name
		}
	}
	return m.PeerURL
}

// server is what is known of a server that has a Host. q.mu is held.
func (q *Manager) server(host *api.Host, now time.Time) quorum.Server {
	a := q.asks[host.Name]
	asks := !a.at.IsZero() && now.Sub(a.at) < askedFor
	note(q.asking, host.Name, asks, now)
	note(q.agent, host.Name, meta.IsStatusConditionTrue(host.Status.Conditions, api.HostAgentConnected), now)
	return quorum.Server{
		Name: host.Name, Labels: host.Labels, Mode: host.ModeOf(), Agent: q.agent[host.Name], Asks: q.asking[host.Name],
		Lost: asks && a.lost, LostBy: a.why, Failed: q.failed[host.Name],
	}
}

// stranger is a server whose Host is gone. A member that has never run has none that is known yet.
func (q *Manager) stranger(m etcd.Info, name string, now time.Time) quorum.Server {
	s := quorum.Server{Name: name}
	if m.Name == "" {
		return s
	}
	if q.removed[name].IsZero() {
		q.removed[name] = now
	}
	a := q.asks[name]
	s.Removed, s.Lost = q.removed[name], a.lost && now.Sub(a.at) < askedFor
	return s
}

// tell tells what is new in a view, unless the log could not be read. That it could not is logged,
// and holds nothing up: a later look tells it.
func (q *Manager) tell(ctx context.Context, unread error, view *quorum.View, plan quorum.Plan) {
	err := unread
	if err == nil {
		err = q.events.Tell(ctx, *view, plan, q.steps)
	}
	switch {
	case err == nil:
		if q.events.begun() {
			q.steps = nil
		}
	case ctx.Err() == nil && !apierrors.IsAlreadyExists(err):
		q.Log.Warn("events of the quorum are written later", "error", err)
	}
}
