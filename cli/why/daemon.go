package why

import (
	"fmt"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// asWanted says whether a daemon is as its spec wants it.
func asWanted(d *api.Daemon) bool {
	if d.DeletionTimestamp != nil || d.Status.ObservedGeneration < d.Generation {
		return false
	}
	return d.Status.State == map[api.WantedState]api.DaemonState{
		api.WantRunning: api.DaemonRunning, api.WantPrepared: api.DaemonPrepared, api.WantStopped: api.DaemonStopped,
	}[d.Spec.State]
}

func (w *World) daemon(d *api.Daemon) Answer {
	name := fmt.Sprintf("%s on host %s", ShortName(d), d.Spec.Host)
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if h.Name == d.Spec.Host && twins(h) && !asWanted(d) {
			a := w.host(h)
			return answered(join(fmt.Sprintf("%s is %s", name, state(d)), a.Text), a.Next).because(a.Reason)
		}
		if h.Name == d.Spec.Host && silent(h) != nil {
			a := w.host(h)
			if d.DeletionTimestamp != nil {
				return answered(join(name+" is being removed, which needs its agent", a.Text),
					fmt.Sprintf("switch the machine on; if it is gone for good, run 'holdfast host remove %s --gone'.", h.Name)).because(a.Reason)
			}
			return answered(join(fmt.Sprintf("%s was last reported %s", name, state(d)), a.Text), a.Next).because(a.Reason)
		}
	}
	decision, of := w.decisionOn(ShortName(d), "daemon/"+d.Name)
	told := ""
	if decision != nil && decision.Verdict != api.VerdictDo {
		told = decision.Message
	}
	log := fmt.Sprintf("read the end of its log with 'holdfast logs %s'.", d.Name)
	switch {
	case d.DeletionTimestamp != nil:
		return answered(join(name+" is being removed", d.Status.Message), "wait; its agent stops it and cleans up.")
	case d.Status.State == api.DaemonFailed:
		return answered(join(name+" could not be prepared", told, d.Status.Message), "remove the cause; the agent retries by itself. "+upper(log))
	case keepsEnding(d):
		return served(name, d)
	case d.Status.State == api.DaemonBackOff:
		ended := fmt.Sprintf("%s ended and restarts after a pause (%d restarts so far)", name, d.Status.Restarts)
		return answered(join(ended, told, lastEnd(d)), nextAfter(d, log)).because(cause(d))
	case outOfService(d) && (told == "" || decision.Verdict == api.VerdictSkip):
		return served(name, d)
	case told != "":
		return decided(join(fmt.Sprintf("%s is %s", name, state(d)), told), decision, of)
	case !asWanted(d):
		return answered(join(fmt.Sprintf("%s is %s; its desired state is %s", name, state(d), d.Spec.State), d.Status.Message),
			"wait; its agent works on it.")
	case d.Status.Restarts > 0:
		runs := fmt.Sprintf("%s is %s%s; it restarted %d times", name, state(d), since(d), d.Status.Restarts)
		return answered(join(runs, exit(d)), nextAfter(d, log)).because(cause(d))
	}
	if h := w.maintained(d); h != nil {
		return answered(sentence(fmt.Sprintf("%s is %s because %s", name, state(d), maintenance(h))), leaveMaintenance(h))
	}
	if d.Status.Service != nil {
		return served(name, d)
	}
	if text := w.unanswered(d); text != "" {
		return answered(join(fmt.Sprintf("%s is %s%s", name, state(d), since(d)), text),
			fmt.Sprintf("see 'holdfast why cluster/%s'.", d.Spec.Cluster)).because(api.ReasonNotAnswering)
	}
	return answered(sentence(fmt.Sprintf("%s is %s%s, as desired", name, state(d), since(d))), "")
}

func state(d *api.Daemon) api.DaemonState {
	if d.Status.State == "" {
		return api.DaemonPending
	}
	return d.Status.State
}

func since(d *api.Daemon) string {
	if d.Status.Started == nil {
		return ""
	}
	return " since " + d.Status.Started.UTC().Format(time.RFC3339)
}

// lastEnd is the last exit of a daemon's process, or the agent's message, which says the same in other words.
func lastEnd(d *api.Daemon) string {
	if text := exit(d); text != "" {
		return text
	}
	return d.Status.Message
}

func exit(d *api.Daemon) string {
	if d.Status.LastExit == nil {
		return ""
	}
	e := d.Status.LastExit
	text := fmt.Sprintf("Last exit, at %s: %s", e.Time.UTC().Format(time.RFC3339), e.Reason)
	switch {
	case e.Cause != "":
		text += ": " + e.Message
	case e.Message != "":
		text += fmt.Sprintf("; it wrote last: %q", e.Message)
	}
	return text
}

// nextAfter is the step after the end of a daemon's process: that of its cause, or else to read its log.
func nextAfter(d *api.Daemon, log string) string {
	if e := d.Status.LastExit; e != nil && e.Next != "" {
		return e.Next + "."
	}
	return log
}

// maintained is the host in maintenance that a daemon is stopped for; nil where it is stopped for something else, or not.
func (w *World) maintained(d *api.Daemon) *api.Host {
	for i := range w.Hosts {
		if h := &w.Hosts[i]; h.Name == d.Spec.Host && h.ModeOf() == api.HostMaintenance && d.Spec.State == api.WantStopped {
			return h
		}
	}
	return nil
}

func maintenance(h *api.Host) string {
	text := fmt.Sprintf("host %s is in mode %s", h.Name, h.ModeOf())
	if h.Spec.Reason != "" {
		text += " (" + h.Spec.Reason + ")"
	}
	return text
}

func leaveMaintenance(h *api.Host) string {
	return fmt.Sprintf("to return it to service, run 'holdfast host maintenance exit %s'.", h.Name)
}

// cause is why a daemon's process ended the last time, where its log told.
func cause(d *api.Daemon) api.Reason {
	if d.Status.LastExit == nil {
		return ""
	}
	return d.Status.LastExit.Cause
}
