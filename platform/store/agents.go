package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
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
	"github.com/holdfast-storage/holdfast/platform/silence"
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

// ReportAges says of each host whose agent was ever heard how long ago that was, by this server's
// own clock.
func (s *Store) ReportAges() []time.Duration { return s.beats.Ages() }

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
		want, ok := s.beats.Connected(&hosts.Items[i], started, time.Now(), silence)
		single, changed := s.beats.Single(&hosts.Items[i], time.Now())
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
		all = append(all, silence.Host{
			Host: h, Since: since, Farewell: s.beats.Farewell(h.Name),
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
