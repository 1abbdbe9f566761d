package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Diff tells the differences between two views of one cluster, each with its reason, in a fixed order. It is pure. A view
// without Cluster stands for "nothing was there".
func Diff(before, after *View, now time.Time) []Event {
	d := differ{now: now}
	d.cluster(before, after)
	d.nodes(before.Nodes, after.Nodes)
	d.hosts(before, after)
	d.daemons(before.Daemons, after.Daemons)
	d.nodesUpDown(before, after)
	d.resources(before.Resources, after.Resources)
	d.actions(before, after)
	d.status(after.Cluster, before.Status, after.Status)
	return d.events
}

type differ struct {
	now    time.Time
	events []Event
}

func (d *differ) add(code Code, object, format string, args ...any) {
	d.events = append(d.events, Event{
		Code: code, Object: object, Message: words.Cut(fmt.Sprintf(format, args...), maxDecisionMessage), Time: d.now, form: format,
	})
}

func (d *differ) cluster(before, after *View) {
	object := "cluster/" + after.Cluster.Name
	switch was, is := before.Cluster, after.Cluster; {
	case was == nil:
		d.add(ClusterNew, object, "a %s cluster was declared", is.Spec.Type)
	case was.DeletionTimestamp == nil && is.DeletionTimestamp != nil:
		fate := "its daemons are being removed"
		if is.ModeOf() != api.ClusterActive {
			fate = "nothing is removed in mode " + string(is.ModeOf())
		}
		d.add(ClusterGone, object, "the cluster was deleted with deletionPolicy %s; %s", is.Spec.DeletionPolicy, fate)
	case was.ModeOf() != is.ModeOf():
		d.add(ClusterChanged, object, "the mode is %s, was %s (generation %d to %d)", is.ModeOf(), was.ModeOf(), was.Generation, is.Generation)
	case was.Generation != is.Generation:
		d.add(ClusterChanged, object, "the spec was changed (generation %d to %d)", was.Generation, is.Generation)
	}
}

func (d *differ) status(cluster *api.StorageCluster, before, after *api.StorageStatus) {
	var was, is api.StorageStatusStatus
	if before != nil {
		was = before.Status
	}
	if after != nil {
		is = after.Status
	}
	object := "cluster/" + cluster.Name
	if was.Status != is.Status {
		switch is.Status {
		case api.StorageOnline:
			d.add(ClusterOnline, object, "the cluster is ONLINE%s", wasText(string(was.Status)))
		case api.StorageDegraded:
			d.add(ClusterDegraded, object, "the cluster is DEGRADED%s: %s", wasText(string(was.Status)), is.Message)
		case api.StorageOffline:
			d.add(ClusterOffline, object, "the cluster is OFFLINE%s: %s", wasText(string(was.Status)), is.Message)
		}
	}
	if was.Health != is.Health {
		d.add(HealthChanged, object, "health is %s%s", orNone(is.Health), wasText(was.Health))
	}
	if cluster.DeletionTimestamp == nil {
		d.checks(was.Checks, is.Checks)
		d.outside(was.ChangedOutside, is.ChangedOutside)
	}
}

// outside tells once of each thing that was changed in the storage system itself, and once when it is as it was.
func (d *differ) outside(before, after []api.OutsideChange) {
	object := func(x *api.OutsideChange) string { return x.Object }
	compare(before, after, object, func(was, is *api.OutsideChange) {
		switch {
		case is == nil:
			d.add(AsSetAgain, was.Object, "%s is as Holdfast set it again", was.Object)
		case was == nil:
			d.add(ChangedOutside, is.Object, "%s", is.Message)
		}
	})
}

// checks tells each health check once when it appears, and once when it is gone.
func (d *differ) checks(before, after []api.HealthCheck) {
	byCode := func(checks []api.HealthCheck) []api.HealthCheck {
		return slices.SortedFunc(slices.Values(checks), func(a, b api.HealthCheck) int { return strings.Compare(a.Code, b.Code) })
	}
	compare(byCode(before), byCode(after), func(c *api.HealthCheck) string { return c.Code }, func(was, is *api.HealthCheck) {
		switch {
		case is == nil:
			d.add(HealthCheckCleared, "check/"+was.Code, "%s is over", was.Code)
		case was == nil || was.Severity != is.Severity:
			d.add(HealthCheckRaised, "check/"+is.Code, "%s: %s%s", is.Severity, is.Message, nextText(is.Next))
		}
	})
}

func nextText(next string) string {
	if next == "" {
		return ""
	}
	return ". Next: " + next
}

func (d *differ) nodes(before, after []api.StorageNode) {
	compare(before, after, func(n *api.StorageNode) string { return n.Name }, func(was, is *api.StorageNode) {
		switch {
		case was == nil:
			d.add(NodeNew, "node/"+is.Name, "the node was added to the cluster")
			d.acceptance(&api.StorageNode{}, is)
		case is == nil:
			d.add(NodeGone, "node/"+was.Name, "the node was removed from the cluster")
		default:
			d.node(was, is)
		}
	})
}

func (d *differ) node(was, is *api.StorageNode) {
	object := "node/" + is.Name
	if was.Generation != is.Generation {
		d.add(NodeChanged, object, "the spec was changed (generation %d to %d)", was.Generation, is.Generation)
	}
	if was.Status.Host != is.Status.Host {
		d.add(NodeChanged, object, "the node is host %s%s", orNone(is.Status.Host), wasText(was.Status.Host))
	}
	d.acceptance(was, is)
}

func (d *differ) acceptance(was, is *api.StorageNode) {
	object := "node/" + is.Name
	a, b := accepted(was), accepted(is)
	if a.Status == b.Status && a.Message == b.Message {
		return
	}
	switch b.Status {
	case metav1.ConditionTrue:
		d.add(NodeChanged, object, "the node is accepted")
	case metav1.ConditionFalse:
		d.add(NodeChanged, object, "the node is not accepted: %s", b.Message)
	default: // nothing was said of it yet
	}
}

func accepted(n *api.StorageNode) metav1.Condition {
	if c := meta.FindStatusCondition(n.Status.Conditions, api.NodeAccepted); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (d *differ) daemons(before, after []api.Daemon) {
	compare(before, after, func(x *api.Daemon) string { return x.Name }, func(was, is *api.Daemon) {
		switch {
		case was == nil:
			d.add(DaemonNew, "daemon/"+is.Name, "a %s was placed on host %s", is.Spec.Type, is.Spec.Host)
			d.daemonState(&api.Daemon{}, is)
		case is == nil:
			d.add(DaemonGone, "daemon/"+was.Name, "the %s on host %s is gone", was.Spec.Type, was.Spec.Host)
		case was.UID != is.UID:
			d.add(DaemonGone, "daemon/"+was.Name, "the %s on host %s is gone", was.Spec.Type, was.Spec.Host)
			d.add(DaemonNew, "daemon/"+is.Name, "a %s was placed on host %s", is.Spec.Type, is.Spec.Host)
		default:
			d.daemon(was, is)
		}
	})
}

func (d *differ) daemon(was, is *api.Daemon) {
	object := "daemon/" + is.Name
	switch {
	case was.DeletionTimestamp == nil && is.DeletionTimestamp != nil:
		d.add(DaemonChanged, object, "the daemon on host %s is being removed", is.Spec.Host)
	case was.Spec.State != is.Spec.State:
		d.add(DaemonChanged, object, "desired state %s, was %s", is.Spec.State, was.Spec.State)
	case was.Generation != is.Generation:
		d.add(DaemonChanged, object, "the spec was changed (generation %d to %d)", was.Generation, is.Generation)
	}
	d.daemonState(was, is)
}

func (d *differ) daemonState(was, is *api.Daemon) {
	object := "daemon/" + is.Name
	if is.Status.Restarts > was.Status.Restarts {
		d.add(DaemonRestarted, object, "the process on host %s restarted (%d times so far)%s",
			is.Spec.Host, is.Status.Restarts, exitText(is.Status.LastExit))
	}
	if was.Status.State == is.Status.State {
		return
	}
	switch is.Status.State {
	case api.DaemonRunning:
		d.add(DaemonRunning, object, "the process runs on host %s", is.Spec.Host)
	case api.DaemonFailed:
		d.add(DaemonFailed, object, "preparing on host %s failed: %s", is.Spec.Host, is.Status.Message)
	case api.DaemonBackOff:
		d.add(DaemonFailed, object, "the process on host %s ended%s", is.Spec.Host, exitText(is.Status.LastExit))
	default: // steps on the way are not worth an event
	}
}

// exitText does not quote what the process wrote: the end of its log may be long, and stands in the Daemon's status.
func exitText(exit *api.DaemonExit) string {
	if exit == nil {
		return ""
	}
	if exit.Cause != "" {
		return fmt.Sprintf(": %s: %s", exit.Reason, exit.Message)
	}
	return ": " + exit.Reason
}

func wasText(was string) string {
	if was == "" {
		return ""
	}
	return ", was " + was
}

func orNone(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// compare walks through two lists that are sorted by name, and calls f for each name with the element of each, or nil.
func compare[T any](before, after []T, name func(*T) string, f func(was, is *T)) {
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && name(&before[0]) < name(&after[0]):
			f(&before[0], nil)
			before = before[1:]
		case len(before) == 0 || name(&after[0]) < name(&before[0]):
			f(nil, &after[0])
			after = after[1:]
		default:
			f(&before[0], &after[0])
			before, after = before[1:], after[1:]
		}
	}
}
