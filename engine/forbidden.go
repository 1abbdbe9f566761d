package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Prohibition is the word of the platform that it starts no daemons.
type Prohibition struct {
	// Reason is one of those of the condition DaemonsAllowed.
	Reason string
	// Message says why, and what to do.
	Message string
}

// awaitPlatform holds back what starts a daemon while the platform forbids it, and says so once for all of them. Of a cluster without
// daemons nothing is made at all: what would be made first would be left half done.
func awaitPlatform(v *View, p *Plan) {
	if v.Forbidden == nil || v.Cluster.DeletionTimestamp != nil {
		return
	}
	p.Daemons = slices.DeleteFunc(slices.Clone(p.Daemons), func(c DaemonChange) bool { return c.New || c.Daemon.Spec.State == api.WantRunning })
	if len(v.Daemons) == 0 {
		p.Secrets, p.Commands = nil, nil
	}
	if p.Empty() {
		p.Decisions = slices.DeleteFunc(slices.Clone(p.Decisions), func(d api.Decision) bool { return d.Verdict == api.VerdictDo })
	}
	p.Done, p.Pause, p.Recheck = false, 0, 0
	p.Decisions = append([]api.Decision{{
		Object: "cluster/" + v.Cluster.Name, Verdict: api.VerdictWait, Reason: api.ReasonDaemonsForbidden, Message: v.Forbidden.Message,
	}}, p.Decisions...)
	if p.Status.Status != api.StorageOnline {
		p.Status.Message = v.Forbidden.Message
		p.Status.Reasons = append([]string{v.Forbidden.Message}, p.Status.Reasons[:min(len(p.Status.Reasons), maxReasons-1)]...)
	}
}

// putAllowed sets the condition DaemonsAllowed, which is absent where nothing is forbidden.
func putAllowed(s *api.StorageClusterStatus, forbidden *Prohibition, now time.Time) {
	if forbidden == nil {
		meta.RemoveStatusCondition(&s.Conditions, api.ClusterDaemonsAllowed)
		return
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: api.ClusterDaemonsAllowed, Status: metav1.ConditionFalse, Reason: forbidden.Reason, Message: forbidden.Message,
		ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	})
}
