package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actions "github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

func condition(conditions []metav1.Condition, name string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, name)
}

func checkAgents(f *Facts) []Finding {
	var found []Finding
	for i := range f.Hosts {
		h := &f.Hosts[i]
		c := condition(h.Status.Conditions, api.HostAgentConnected)
		if c == nil || c.Status == metav1.ConditionTrue {
			found = append(found, unwritable(h)...)
			continue
		}
		level, what := Fail, ""
		if h.ModeOf() != api.HostActive {
			level, what = Warn, fmt.Sprintf(" (its mode is %s)", h.ModeOf())
		}
		found = append(found, Finding{
			Level: level,
			Message: fmt.Sprintf("the agent of host %s%s has been disconnected since %s%s", h.Name, what,
				c.LastTransitionTime.UTC().Format(time.RFC3339), absent(f, h, c)),
			Remedy: absence.Next(h),
		})
	}
	return orOK(found, "%s", counted(len(f.Hosts), "there are no hosts", "the agent of the only host is connected", "the agents of all %d hosts are connected"))
}

// unwritable finds a host whose agent is connected, and cannot write to its directory.
func unwritable(h *api.Host) []Finding {
	c := condition(h.Status.Conditions, api.HostDirectoryWritable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return finding(Fail, fmt.Sprintf("the agent of host %s cannot write: %s", h.Name, c.Message),
		fmt.Sprintf("run 'holdfast why host/%s' for the next step", h.Name))
}

// absent continues a message with why an agent does not report, and with what the storage system says of its daemons.
func absent(f *Facts, h *api.Host, c *metav1.Condition) (text string) {
	reason := absence.Reason(h)
	if reason != api.ReasonAgentDisconnected {
		text = ": " + c.Message
	}
	var daemons []*api.Daemon
	for i := range f.Daemons {
		daemons = append(daemons, &f.Daemons[i])
	}
	if said := absence.StorageOf(h.Name, daemons, f.Statuses).String(); said != "" && reason != api.ReasonNetworkCut {
		text += "; " + said
	}
	return text
}

func checkVersions(f *Facts) []Finding {
	var found []Finding
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if v := h.Status.AgentVersion; v != "" && v != f.Version {
			found = append(found, Finding{
				Level: Warn, Message: fmt.Sprintf("host %s runs holdfast %s, this is %s", h.Name, v, f.Version),
				Remedy: "install the same version there and restart holdfast; storage daemons are not touched",
			})
		}
	}
	return orOK(found, "all hosts run holdfast %s", f.Version)
}

func checkClusters(f *Facts) []Finding {
	var found []Finding
	for i := range f.Clusters {
		if verdict := cluster(f, &f.Clusters[i]); verdict != nil {
			found = append(found, *verdict)
		}
	}
	return orOK(found, "%s", counted(len(f.Clusters), "there are no clusters", "the only cluster is ready", "all %d clusters are ready"))
}

func cluster(f *Facts, c *api.StorageCluster) *Finding {
	name := c.Namespace + "/" + c.Name
	remedy := fmt.Sprintf("holdfast status -n %s %s", c.Namespace, c.Name)
	if s := status(f, c); s != nil && s.Status.Status == api.StorageOffline {
		return &Finding{Level: Fail, Message: fmt.Sprintf("the cluster %s is OFFLINE: %s", name, s.Status.Message), Remedy: remedy}
	}
	if a := condition(c.Status.Conditions, api.ClusterAccepted); a != nil && a.Status == metav1.ConditionFalse {
		return &Finding{
			Level: Fail, Message: fmt.Sprintf("the spec of cluster %s cannot be carried out: %s", name, a.Message),
			Remedy: "change its spec: " + remedy,
		}
	}
	r := condition(c.Status.Conditions, api.ClusterReady)
	switch host := refusedHost(c); {
	case r == nil:
		return &Finding{Level: Warn, Message: fmt.Sprintf("the cluster %s has not been observed yet", name), Remedy: "check that a server leads: " + remedy}
	case r.Status != metav1.ConditionTrue && host != "":
		return &Finding{
			Level: Warn, Message: fmt.Sprintf("the mode of a host of cluster %s is refused: %s", name, r.Message),
			Remedy: fmt.Sprintf("run 'holdfast why %s' for the next step", host),
		}
	case r.Status != metav1.ConditionTrue:
		return &Finding{Level: Warn, Message: fmt.Sprintf("the cluster %s is not ready: %s", name, r.Message), Remedy: remedy}
	}
	if c.Spec.Mode == api.ClusterPaused || c.Spec.Mode == api.ClusterObserved {
		return &Finding{Level: Warn, Message: fmt.Sprintf("the mode of cluster %s is %s: nothing is repaired", name, c.Spec.Mode), Remedy: "set spec.mode to Active when you are done"}
	}
	return nil
}

// refusedHost is the object of a host whose mode is refused, where nothing else that the cluster consists of is.
func refusedHost(c *api.StorageCluster) (host string) {
	if c.Status.Report == nil {
		return ""
	}
	for _, d := range c.Status.Report.Decisions {
		if d.Verdict != api.VerdictRefuse || engine.OfResource(d.Object) {
			continue
		}
		if !strings.HasPrefix(d.Object, engine.HostObject("")) {
			return ""
		}
		host = d.Object
	}
	return host
}

// checkResources finds what clusters offer and cannot be used as it is declared, unless it is on its way.
func checkResources(f *Facts) []Finding {
	var found []Finding
	for _, r := range f.Resources {
		if verdict := resource(r); verdict != nil {
			found = append(found, *verdict)
		}
	}
	return orOK(found, "%s", counted(len(f.Resources), "there are no resources", "the only resource is Online, or is being made", "all %d resources are Online, or are being made"))
}

func resource(r api.Resource) *Finding {
	common, object := r.Common(), engine.ResourceObject(r)
	var state string
	level := Warn
	switch stalled := condition(common.Conditions, api.ConditionStalled); {
	case common.State == api.ResourceOffline:
		level, state = Fail, "is Offline: "+common.Message
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		level, state = Fail, "cannot be as it is declared: "+stalled.Message
	case common.State == api.ResourceDegraded:
		state = "is Degraded: " + common.Message
	default:
		return nil
	}
	return &Finding{
		Level: level, Message: fmt.Sprintf("%s in namespace %s %s", object, r.GetNamespace(), state),
		Remedy: fmt.Sprintf("run 'holdfast why %s -n %s' for the next step", object, r.GetNamespace()),
	}
}

func status(f *Facts, c *api.StorageCluster) *api.StorageStatus {
	for i := range f.Statuses {
		if f.Statuses[i].Namespace == c.Namespace && f.Statuses[i].Name == c.Name {
			return &f.Statuses[i]
		}
	}
	return nil
}

const (
	// hangs is how often a step is tried again before it looks as if it would never be done.
	hangs = 5
	// recent is for how long an action that failed is shown.
	recent = 24 * time.Hour
	// told is for how long one is shown that was refused before its first step: it changed nothing.
	told = time.Hour
	// heard is how soon a refusal comes while who asked for it still listens, and needs no second word.
	heard = 10 * time.Second
)

func checkActions(f *Facts) []Finding {
	var found []Finding
	open := 0
	for i := range f.Actions {
		a := &f.Actions[i]
		if !a.Status.State.Final() {
			open++
		}
		if verdict := action(f, a); verdict != nil {
			found = append(found, *verdict)
		}
	}
	return orOK(found, "%s", counted(open, "no action is running", "one action is running; no user has to act", "%d actions are running; no user has to act"))
}

// shownFor is for how long an action that failed is shown.
func shownFor(a *api.Action) time.Duration {
	begun := slices.ContainsFunc(a.Status.Steps, func(step api.ActionStep) bool { return step.State != api.StepPending })
	c := condition(a.Status.Conditions, api.ActionEffective)
	switch {
	case begun || c == nil || c.Reason != actions.ReasonRefused:
		return recent
	case a.Status.Finished.Sub(a.CreationTimestamp.Time) <= heard:
		return 0
	}
	return told
}

func action(f *Facts, a *api.Action) *Finding {
	what := fmt.Sprintf("the action %s/%s (%s on %s)", a.Namespace, a.Name, a.Spec.Kind, a.Spec.Target)
	show := fmt.Sprintf("holdfast action show -n %s %s", a.Namespace, a.Name)
	switch s := &a.Status; {
	case s.State == api.ActionPendingApproval:
		return &Finding{Level: Warn, Message: what + " waits for approval", Remedy: fmt.Sprintf("holdfast action approve -n %s %s", a.Namespace, a.Name)}
	case s.State == api.ActionRunning && s.Attempts >= hangs:
		return &Finding{Level: Warn, Message: fmt.Sprintf("%s was tried %d times: %s", what, s.Attempts, s.Message), Remedy: show}
	case s.State == api.ActionRunning && s.Estimated != nil && f.Now.After(s.Estimated.Add(time.Hour)):
		return &Finding{Level: Warn, Message: fmt.Sprintf("%s is an hour late; it waits for: %s", what, s.WaitsFor), Remedy: show}
	case (s.State == api.ActionFailed || s.State == api.ActionLost) && s.Finished != nil && f.Now.Sub(s.Finished.Time) < shownFor(a):
		return &Finding{Level: Warn, Message: fmt.Sprintf("%s ended as %s: %s", what, s.State, s.Message), Remedy: show}
	}
	return nil
}
