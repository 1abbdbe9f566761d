package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (w *World) cluster(c *api.StorageCluster) Answer {
	watch := fmt.Sprintf("'holdfast status %s --watch'", c.Name)
	ready := meta.FindStatusCondition(c.Status.Conditions, api.ClusterReady)
	accepted := meta.FindStatusCondition(c.Status.Conditions, api.ClusterAccepted)
	if a, held := heldByOther("storagecluster", c); held {
		return a
	}
	switch report := c.Status.Report; {
	case c.ModeOf() == api.ClusterPaused:
		return answered("The cluster is paused (spec.mode); its daemons keep running.",
			"to resume, set spec.mode to Active or Observed.")
	case report == nil || ready == nil:
		return answered("The leader has not observed the cluster yet.",
			"check with 'holdfast doctor' whether a server leads.")
	case report.Outcome == api.OutcomeFailed:
		return answered(join("The last orchestration failed", report.Error),
			fmt.Sprintf("remove the cause, then run 'holdfast orchestrate %s --wait'.", c.Name))
	case c.Status.ObservedGeneration < c.Generation:
		return answered("The leader has not observed the newest spec yet.", "follow it with "+watch+".")
	case ready.Status == metav1.ConditionTrue:
		return answered(w.wellText(c), "")
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		return answered(join("The spec cannot be carried out", accepted.Message),
			"correct the spec, and apply it again.").
			because(api.Reason(accepted.Reason))
	case hostRefused(report) != "":
		return answered(join(w.stateText(c), "The mode of a host is refused", ready.Message),
			fmt.Sprintf("run 'holdfast why %s', which has the next step.", hostRefused(report)))
	case c.ModeOf() == api.ClusterObserved:
		return answered(sentence(upper(ready.Message)), "to carry it out, set spec.mode to Active.")
	}
	return answered(join(w.stateText(c), "Not ready: "+ready.Message), w.hint(c, watch)).because(api.Reason(ready.Reason))
}

// hostRefused is the host whose mode is refused, where nothing else that the cluster consists of is.
func hostRefused(report *api.OrchestrationReport) (host string) {
	for _, d := range report.Decisions {
		if d.Verdict != api.VerdictRefuse || engine.OfResource(d.Object) {
			continue
		}
		if !strings.HasPrefix(d.Object, "host/") {
			return ""
		}
		host = d.Object
	}
	return host
}

func (w *World) wellText(c *api.StorageCluster) string {
	return join(w.stateText(c), "Everything declared is there", upper(conditionText(c, api.ClusterPlaced)), upper(conditionText(c, api.ClusterRedundant)),
		upper(conditionText(c, api.ClusterInSync)))
}

// conditionText says what is not as it could be by a condition that holds nothing up, such as what the storage system has
// elsewhere than Holdfast.
func conditionText(c *api.StorageCluster, kind string) string {
	if is := meta.FindStatusCondition(c.Status.Conditions, kind); is != nil && is.Status == metav1.ConditionFalse {
		return is.Message
	}
	return ""
}

func (w *World) stateText(c *api.StorageCluster) string {
	for i := range w.Statuses {
		if s := &w.Statuses[i].Status; w.Statuses[i].Name == c.Name && s.Status != "" {
			text := fmt.Sprintf("The cluster is %s", s.Status)
			if s.Health != "" {
				text += ", " + s.Health
			}
			if s.StaleSince != nil {
				text += fmt.Sprintf(" (last report: it has not answered since %s)", s.StaleSince.UTC().Format(time.RFC3339))
			}
			return text
		}
	}
	return "The state of the cluster is unknown"
}

// waitsForPerson says whether what a decision waits for does not come by itself.
func waitsForPerson(d api.Decision) bool {
	return d.Verdict == api.VerdictWait && d.Reason.NeedsPerson()
}

// hint names the first daemon that fails, else the command that is named already, else where to look.
func (w *World) hint(c *api.StorageCluster, watch string) string {
	for i := range w.Daemons {
		d := &w.Daemons[i]
		if d.Spec.Cluster == c.Name && (d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonBackOff) {
			return fmt.Sprintf("run 'holdfast why %s': this daemon does not run.", ShortName(d))
		}
	}
	if h := w.silentOf(c); h != nil {
		return fmt.Sprintf("run 'holdfast why host/%s': its agent is disconnected.", h.Name)
	}
	if report := c.Status.Report; report != nil && slices.ContainsFunc(report.Decisions, waitsForPerson) {
		return "do what is named above, unless it passes by itself; follow it with " + watch + "."
	}
	if next := w.checkOf(c); next != "" {
		return next
	}
	return "follow it with " + watch + "."
}

// silentOf is a host whose agent is silent, and which holds the cluster up; nil where there is none.
func (w *World) silentOf(c *api.StorageCluster) *api.Host {
	held := func(d api.Decision) bool { return d.Reason == api.ReasonAgentDisconnected }
	if c.Status.Report == nil || !slices.ContainsFunc(c.Status.Report.Decisions, held) {
		return nil
	}
	for i := range w.Nodes {
		if n := &w.Nodes[i]; n.Spec.Cluster == "" || n.Spec.Cluster == c.Name {
			if h := w.silentSelected(n); h != nil {
				return h
			}
		}
	}
	return nil
}

// silentSelected is the host that a node selects, if its agent is silent.
func (w *World) silentSelected(n *api.StorageNode) *api.Host {
	i := slices.IndexFunc(w.Hosts, func(h api.Host) bool {
		return silent(&h) != nil && engine.SelectsHost(n.Spec.NodeSelector, []api.Host{h})
	})
	if i < 0 {
		return nil
	}
	return &w.Hosts[i]
}

// checkOf is the next step of a health check of the storage system that has one, of the worst if there is any.
func (w *World) checkOf(c *api.StorageCluster) string {
	i := slices.IndexFunc(w.Statuses, func(s api.StorageStatus) bool { return s.Name == c.Name })
	if i < 0 {
		return ""
	}
	// HEALTH_ERR sorts before HEALTH_WARN.
	checks := slices.SortedStableFunc(slices.Values(w.Statuses[i].Status.Checks), func(a, b api.HealthCheck) int { return strings.Compare(a.Severity, b.Severity) })
	for _, check := range checks {
		if check.Next != "" {
			return check.Code + ": " + check.Next + "."
		}
	}
	return ""
}

func (w *World) node(n *api.StorageNode) Answer {
	c := meta.FindStatusCondition(n.Status.Conditions, api.NodeAccepted)
	if a, held := heldByOther("storagenode", n); held {
		return a
	}
	switch {
	case c == nil || n.Status.ObservedGeneration < n.Generation:
		return answered("The leader has not observed the node's newest spec yet.",
			"check with 'holdfast status' that its cluster exists and is active.")
	case c.Status != metav1.ConditionTrue && c.Reason == "Waiting" && !engine.SelectsHost(n.Spec.NodeSelector, w.Hosts):
		return answered(join("The node waits", c.Message),
			"join the machine ('holdfast token create'), or correct spec.nodeSelector ('holdfast host list') and apply it again.")
	case c.Status != metav1.ConditionTrue && c.Reason == "Waiting":
		if h := w.silentSelected(n); h != nil {
			return answered(join("The node waits", c.Message), w.host(h).Next).because(w.host(h).Reason)
		}
		return answered(join("The node waits", c.Message), "wait.")
	case c.Status != metav1.ConditionTrue:
		return answered(join("The node is refused", c.Message), "correct the node or the host, and apply it again.").
			because(api.Reason(c.Reason))
	}
	if a, stuck := w.troubleOn(n.Status.Host); stuck {
		return answered(join("The node is accepted on host "+n.Status.Host, a.Text), a.Next).because(a.Reason)
	}
	if d, of := w.decisionOn("node/" + n.Name); d != nil {
		return decided(join("The node is accepted on host "+n.Status.Host, d.Message), d, of)
	}
	return answered(sentence("The node is accepted on host "+n.Status.Host+", and its daemons are in their desired state"),
		"")
}

// troubleOn answers for the host if something is the matter with it, else for the first of its daemons with which something is.
func (w *World) troubleOn(host string) (Answer, bool) {
	for i := range w.Hosts {
		if h := &w.Hosts[i]; h.Name == host && (twins(h) || silent(h) != nil || h.ModeOf() != api.HostActive) {
			return w.host(h), true
		}
	}
	for i := range w.Daemons {
		if d := &w.Daemons[i]; d.Spec.Host == host && !asWanted(d) {
			return w.daemon(d), true
		}
	}
	return Answer{}, false
}

func action(a *api.Action) Answer {
	s := &a.Status
	name := fmt.Sprintf("%s on %s", a.Spec.Kind, a.Spec.Target)
	show := fmt.Sprintf("see its steps with 'holdfast action show %s'.", a.Name)
	switch s.State {
	case api.ActionPendingApproval:
		return answered(sentence(name+" waits for approval"),
			fmt.Sprintf("run 'holdfast action approve %s' or 'holdfast action cancel %s'.", a.Name, a.Name))
	case api.ActionDone:
		return answered(join(name+" is done", s.Message), "")
	case api.ActionFailed, api.ActionLost, api.ActionCancelled:
		return answered(join(name+" is "+strings.ToLower(string(s.State)), s.Message), show)
	case "":
		return answered(sentence(name+" is recorded; the leader has not begun it yet"),
			"check with 'holdfast doctor' whether a server leads.")
	default: // it goes on
	}
	text := name + " is " + strings.ToLower(string(s.State))
	if s.State == api.ActionPendingSchedule {
		text = name + " waits for its turn"
	}
	if s.Progress != "" {
		text += ", " + s.Progress + " steps done"
	}
	if s.WaitsFor != "" {
		return answered(join(text, "It waits for "+s.WaitsFor), show)
	}
	return answered(join(text, s.Message), show)
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
