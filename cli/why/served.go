package why

import (
	"fmt"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// keepsEnding says whether a daemon's process ends again and again, and nobody knows a cause that says more.
func keepsEnding(d *api.Daemon) bool {
	said, why := d.Status.Service, cause(d)
	return said != nil && said.Reason == api.ReasonKeepsEnding &&
		(d.Status.State == api.DaemonRunning || d.Status.State == api.DaemonBackOff && (why == "" || why == api.ReasonKilled))
}

// outOfService says whether the storage system gets less than it should from a daemon whose process runs.
func outOfService(d *api.Daemon) bool {
	said := d.Status.Service
	return asWanted(d) && d.Status.State == api.DaemonRunning && said != nil && said.State != api.ServiceStandby
}

// served is the answer on a daemon of which its storage system says something: how its process is, and what the storage
// system says, are two things.
func served(name string, d *api.Daemon) Answer {
	said := d.Status.Service
	state := map[api.ServiceState]string{
		api.ServiceStandby: "stands by", api.ServiceLimited: "serves less than it should",
		api.OutOfService: "is out of service",
	}[said.State]
	if said.Reason == api.ReasonKeepsEnding {
		state = "keeps ending"
	} else if said.State != api.ServiceStandby {
		state += " since " + said.Since.UTC().Format(time.RFC3339)
	}
	return answered(join(fmt.Sprintf("%s %s", name, state), said.Message), sentence(said.Next)).because(said.Reason)
}

// unanswered says that nobody knows how a daemon is whose process runs, as its storage system does not answer.
func (w *World) unanswered(d *api.Daemon) string {
	for i := range w.Statuses {
		s := &w.Statuses[i]
		if s.Name == d.Spec.Cluster && s.Namespace == d.Namespace && s.Status.StaleSince != nil {
			return fmt.Sprintf("whether it serves is unknown: the storage system does not answer since %s",
				s.Status.StaleSince.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// Row is what a row of 'holdfast status' says of a daemon beside the state of its process; empty where its storage
// system says nothing of it.
func Row(d *api.Daemon) (api.ServiceState, string) {
	said := d.Status.Service
	if said == nil || d.DeletionTimestamp != nil || d.Status.State != api.DaemonRunning {
		return "", ""
	}
	if said.State == api.ServiceStandby {
		return said.State, "stands by: " + said.Message
	}
	text := string(said.Reason) + ": " + said.Message
	if said.Next != "" {
		text += ". Next: " + said.Next
	}
	return said.State, text
}

// Mark stands before the row of a daemon that does not serve as it should; empty for others.
func Mark(s api.ServiceState) string {
	return map[api.ServiceState]string{api.ServiceLimited: "!", api.OutOfService: "✗"}[s]
}
