package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// errModeChanged ends a run of a cluster that may not do any more what it may have begun.
var errModeChanged = errors.New("the cluster's mode was changed")

// strictness orders the modes, the one that allows the most first.
var strictness = []api.ClusterMode{api.ClusterActive, api.ClusterObserved, api.ClusterPaused}

// begin notes the mode that a run works under.
func (s *scheduler) begin(c *api.StorageCluster) api.ClusterMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.schedule(clusterKey(c))
	x.mode = c.ModeOf()
	return x.mode
}

// stopByMode ends the run that goes on if the cluster's mode allows less now than when it began: whoever pauses a cluster
// wants the hands off it at once, not when a command to the storage system comes back.
func (s *scheduler) stopByMode(ctx context.Context, cluster types.NamespacedName) {
	c, err := s.Store.Cluster(ctx, cluster)
	if err != nil {
		return // The run meets the same error, or none.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.schedule(cluster)
	if x.running && x.mode != "" && slices.Index(strictness, c.ModeOf()) > slices.Index(strictness, x.mode) {
		x.stop(errModeChanged)
	}
}

// rest says of a paused cluster that nobody looks at it, and takes it out of the schedule until it is changed.
func (s *scheduler) rest(ctx context.Context, c *api.StorageCluster) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	paused := pausedCondition(c)
	err := s.Store.PutClusterStatus(ctx, clusterKey(c), func(status *api.StorageClusterStatus) {
		status.NextOrchestration = nil
		meta.SetStatusCondition(&status.Conditions, paused)
		standCluster(status, time.Now())
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.schedule(clusterKey(c))
	x.rested()
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.Log.Warn("writing that a cluster is paused", "cluster", clusterKey(c).String(), "error", err)
		x.failed(time.Now())
	}
	s.signal()
}

func pausedCondition(c *api.StorageCluster) metav1.Condition {
	message := "reconciliation paused (spec.mode); daemons keep running"
	if c.DeletionTimestamp != nil {
		message = "deletion waits: the cluster is paused; set spec.mode to Active"
	}
	return metav1.Condition{
		Type: api.ClusterReady, Status: metav1.ConditionUnknown, Reason: ReasonPaused, Message: message,
		ObservedGeneration: c.Generation,
	}
}
