package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/platform/silence"
	"github.com/holdfast-storage/holdfast/platform/twins"
)

const (
	// look is how often the leader looks for agents that fell silent.
	look = time.Second
	// judgeTimeout bounds the writes of one look, parallelJudgements how many of them are under way
	// at once.
	judgeTimeout       = 5 * time.Second
	parallelJudgements = 32
	// judgements bounds the writes of one look. When all agents of a large fleet fall silent at
	// once, it may be that the servers have too much to do to hear them, and to write as much for
	// each would keep them from it.
	judgements = 64
)

// Reasons of a Host's condition AgentConnected.
const (
	ReasonConnected = "Connected"
	ReasonSilent    = "Silent"
	// formerlyReturned is what earlier versions had as the reason instead of the message
	// HostAgentReturned. Tables would show it until the next silence.
	formerlyReturned = "HeardAgain"
)

// heartbeats knows when each agent was last heard, by this server's own clock: the hosts' clocks
// may be wrong.
type heartbeats struct {
	mu    sync.Mutex
	beats map[string]beat
	now   func() time.Time
	// began is when this server began to listen.
	began time.Time
}

type beat struct {
	renewed metav1.MicroTime
	heard   time.Time
	// instances are the agents that renewed the Lease of late.
	instances twins.Sightings
	// farewell is what the agent said at its end.
	farewell absence.Farewell
	// known is set when a renewal was seen. A Lease that was there before may have been left by an
	// agent long dead.
	known bool
}

func newHeartbeats() *heartbeats {
	return &heartbeats{beats: map[string]beat{}, now: time.Now, began: time.Now()}
}

func (h *heartbeats) saw(host string, lease *coordinationv1.Lease, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone {
		delete(h.beats, host)
		return
	}
	now := h.now()
	var renewed metav1.MicroTime
	if lease.Spec.RenewTime != nil {
		renewed = *lease.Spec.RenewTime
	}
	last, seen := h.beats[host]
	last.farewell = absence.Farewell(lease.Annotations[instance.Farewell])
	if !seen || !last.renewed.Equal(&renewed) {
		last.renewed, last.heard, last.known, last.instances = renewed, now, seen, last.instances.Add(lease, now)
	}
	h.beats[host] = last
}

func (h *heartbeats) of(host string) (beat, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.beats[host]
	return b, ok
}

// ReportAges says of each host whose agent was ever heard how long ago that was, by this server's
// own clock.
func (s *Store) ReportAges() []time.Duration {
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	now := time.Now()
	ages := make([]time.Duration, 0, len(s.beats.beats))
	for _, b := range s.beats.beats {
		ages = append(ages, now.Sub(b.heard))
	}
	return ages
}

// WatchAgents keeps the condition AgentConnected of all Hosts, and the label that is their name,
// until ctx ends. A Host's condition is written when it changes, not with each heartbeat. It keeps
// the labels of what Holdfast makes, too, and says of Daemons of silent hosts that nobody knows how
// they are. An agent that is not heard for longer than silence is silent, see
// waits.Waits.AgentSilent.
func (s *Store) WatchAgents(ctx context.Context, silence time.Duration) error {
	started := time.Now()
	if s.silence != nil {
		var examining sync.WaitGroup
		defer examining.Wait()
		examining.Go(func() { s.silence.Run(ctx) })
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	marks := started
	for {
		s.judgeAgents(ctx, started, silence)
		if now := time.Now(); !now.Before(marks) {
			marks = now.Add(s.mark(ctx))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// judgeAgents looks at all hosts once and writes what changed, many at a time: when a rack loses
// power, or a leader starts, it is hundreds. A write that hangs holds up the others no longer than
// judgeTimeout; what was not written is with the next look.
func (s *Store) judgeAgents(ctx context.Context, started time.Time, silence time.Duration) {
	var hosts api.HostList
	if err := s.cache.List(ctx, &hosts); err != nil {
		s.log.Warn("listing hosts", "error", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(parallelJudgements)
	written := 0
	for i := range hosts.Items {
		name := hosts.Items[i].Name
		want, ok := s.judge(&hosts.Items[i], started, time.Now(), silence)
		single, changed := s.judgeTwins(&hosts.Items[i], time.Now())
		renamed := !s.nodeLabels && hosts.Items[i].Labels[api.LabelHostname] != name
		unsaid := unsaidStanding(&hosts.Items[i])
		if !ok && !renamed && !changed && !unsaid {
			continue
		}
		if written++; written > judgements {
			break
		}
		group.Go(func() error {
			if renamed {
				s.putHostname(ctx, name)
			}
			var conditions []metav1.Condition
			if ok {
				conditions = append(conditions, want)
			}
			if changed {
				conditions = append(conditions, single)
			}
			if err := s.putAgent(ctx, name, conditions, unsaid); err != nil && s.life.Err() == nil {
				s.log.Warn("writing the connection state of a host", "host", name, "error", err)
			}
			return nil
		})
	}
	s.judgeDaemons(ctx, &group, hosts.Items, judgements-written)
	_ = group.Wait() // The functions return no error; they log it.
}

// judge says what the condition of a host shall be; ok is false when it is right as it is.
func (s *Store) judge(host *api.Host, started, now time.Time, silence time.Duration) (want metav1.Condition, ok bool) {
	b, heard := s.beats.of(host.Name)
	have := meta.FindStatusCondition(host.Status.Conditions, api.HostAgentConnected)
	since := b.heard
	if !heard {
		// No heartbeat at all: the host may have joined this moment, or the leader may have
		// started.
		since = started
		if host.CreationTimestamp.After(since) {
			since = host.CreationTimestamp.Time
		}
	}
	want = metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionTrue, Reason: ReasonConnected}
	switch silent := now.Sub(since) > silence; {
	case silent:
		want.Status, want.Reason = metav1.ConditionFalse, ReasonSilent
		want.Message = fmt.Sprintf("no heartbeat of the agent for %s", silence)
	case have != nil && have.Status == metav1.ConditionFalse && b.known:
		want.Message = api.HostAgentReturned
	case !heard, have != nil && have.Status == metav1.ConditionFalse && !b.known:
		return want, false
	case have != nil && have.Reason == formerlyReturned:
		want.Message = api.HostAgentReturned
		return want, true
	}
	return want, have == nil || have.Status != want.Status
}

// unsaidStanding says whether a host does not say yet how it is by its newest spec and conditions.
func unsaidStanding(h *api.Host) bool {
	standing, judged := silence.Standing(h)
	if !judged {
		return false
	}
	ready := meta.FindStatusCondition(h.Status.Conditions, api.ConditionReady)
	return h.Status.ObservedGeneration != h.Generation || ready == nil || ready.Reason != string(standing.Reason) ||
		ready.Message != standing.Message
}

// standHost sets Ready, Reconciling and Stalled of a host.
func standHost(h *api.Host, now time.Time) {
	if standing, judged := silence.Standing(h); judged {
		h.Status.ObservedGeneration = h.Generation
		kstatus.Set(&h.Status.Conditions, h.Generation, standing, now)
	}
}

// silenceOf examines hosts whose agents do not report. config reaches the servers as one of them.
func silenceOf(s *Store, config *rest.Config) *silence.Watcher {
	return &silence.Watcher{
		Config: config, Log: s.log,
		Hosts: func() []silence.Host { return silentHosts(s) },
		Servers: func(ctx context.Context) (map[string]string, error) {
			var list corev1.ConfigMap
			err := s.api.Get(ctx, types.NamespacedName{Namespace: api.SystemNamespace, Name: "servers"}, &list)
			return list.Data, client.IgnoreNotFound(err)
		},
		Put: func(ctx context.Context, host string, c absence.Cause) error { return putCause(ctx, s, host, c) },
	}
}

// silentHosts are the hosts whose agents do not report, with what the leader knows of them.
func silentHosts(s *Store) (all []silence.Host) {
	var hosts api.HostList
	var statuses api.StorageStatusList
	s.list(&hosts)
	for i := range hosts.Items {
		h := &hosts.Items[i]
		since, silent := h.SilentSince()
		if !silent {
			continue
		}
		if statuses.Items == nil {
			s.list(&statuses)
		}
		b, _ := s.beats.of(h.Name)
		all = append(all, silence.Host{
			Host: h, Since: since, Farewell: b.farewell,
			Storage: absence.StorageOf(h.Name, s.daemonsBy(byHost, h.Name), statuses.Items),
		})
	}
	return all
}

// putCause writes why the agent of a host does not report, unless it reports again.
func putCause(ctx context.Context, s *Store, host string, cause absence.Cause) error {
	err := edit(ctx, s, types.NamespacedName{Name: host}, func(h *api.Host) error {
		c := meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason == string(cause.Reason) && c.Message == cause.Message {
			return errUnchanged
		}
		s.log.Info("the cause of a disconnected agent was found", "host", host, "reason", cause.Reason, "message",
			cause.Message)
		c.Reason, c.Message = string(cause.Reason), cause.Message
		standHost(h, time.Now())
		return nil
	}, s.updateStatus)
	return client.IgnoreNotFound(err)
}

// putHostname gives a host the label back that StorageNodes find it by. Agents may not write
// labels, and an edit of it by hand has the StorageNodes on the host accepted no more.
func (s *Store) putHostname(ctx context.Context, host string) {
	err := s.PutHost(ctx, host, func(h *api.Host) { metav1.SetMetaDataLabel(&h.ObjectMeta, api.LabelHostname, host) })
	switch {
	case err == nil:
		s.log.Warn("restored the label "+api.LabelHostname+" of a host, which must be its name", "host", host)
	case !errors.Is(err, engine.ErrNotFound) && s.life.Err() == nil:
		s.log.Warn("restoring the label "+api.LabelHostname+" of a host", "host", host, "error", err)
	}
}

func (s *Store) putAgent(ctx context.Context, host string, want []metav1.Condition, unsaid bool) error {
	for _, c := range want {
		s.log.Info("the connection state of a host has changed", "host", host, "reason", c.Reason, "message", c.Message)
	}
	if len(want) == 0 && !unsaid {
		return nil
	}
	err := edit(ctx, s, types.NamespacedName{Name: host}, func(h *api.Host) error {
		was := h.Status.DeepCopy()
		for _, c := range want {
			meta.SetStatusCondition(&h.Status.Conditions, c)
		}
		if standHost(h, time.Now()); equality.Semantic.DeepEqual(was, &h.Status) {
			return errUnchanged
		}
		return nil
	}, s.updateStatus)
	return client.IgnoreNotFound(err)
}
