package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// judgeDaemons begins to write, of at most so many Daemons whose agents are silent, that nobody
// knows how they are.
func (s *Store) judgeDaemons(ctx context.Context, group *errgroup.Group, hosts []api.Host, most int) {
	for i := range hosts {
		for _, d := range s.doubts(&hosts[i]) {
			if most--; most < 0 {
				return // the next look
			}
			silent := meta.FindStatusCondition(hosts[i].Status.Conditions, api.HostAgentConnected).LastTransitionTime
			group.Go(func() error {
				if err := s.doubt(ctx, d, silent, time.Now()); err != nil && s.life.Err() == nil {
					s.log.Warn("writing that the state of a daemon is unknown", "daemon", d.Name, "error", err)
				}
				return nil
			})
		}
	}
}

// doubts are the Daemons of a host whose agent is disconnected that say still how they are. Nobody
// knows that: the leader says so in the agent's place. It does so once for each silence, as an
// agent that lives takes it back.
func (s *Store) doubts(host *api.Host) []*api.Daemon {
	connected := meta.FindStatusCondition(host.Status.Conditions, api.HostAgentConnected)
	if connected == nil || connected.Status != metav1.ConditionFalse {
		return nil
	}
	var found []*api.Daemon
	for _, d := range s.daemonsBy(byHost, host.Name) {
		if certain(d, connected.LastTransitionTime) {
			found = append(found, d)
		}
	}
	return found
}

// certain says whether a daemon says how it is, as it was told before a silence began. An agent
// that is older than the condition tells none, and would not take it back.
func certain(d *api.Daemon, silent metav1.Time) bool {
	ready := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionUnknown && !ready.LastTransitionTime.After(silent.Time)
}

// doubt says of a daemon that nobody knows how it is, unless its agent has told meanwhile.
func (s *Store) doubt(ctx context.Context, d *api.Daemon, silent metav1.Time, now time.Time) error {
	err := edit(ctx, s, client.ObjectKeyFromObject(d), func(have *api.Daemon) error {
		if !certain(have, silent) {
			return errUnchanged
		}
		for _, kind := range []string{api.ConditionReconciling, api.ConditionStalled} {
			meta.RemoveStatusCondition(&have.Status.Conditions, kind)
		}
		meta.SetStatusCondition(&have.Status.Conditions, metav1.Condition{
			Type: api.ConditionReady, Status: metav1.ConditionUnknown,
			ObservedGeneration: max(have.Status.ObservedGeneration, 0),
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), Reason: string(api.ReasonAgentDisconnected),
			Message: fmt.Sprintf("the agent of host %s is disconnected; it last reported the daemon as %s",
				have.Spec.Host, cmp.Or(have.Status.State, api.DaemonPending)),
		})
		return nil
	}, s.updateStatus)
	return client.IgnoreNotFound(err)
}
