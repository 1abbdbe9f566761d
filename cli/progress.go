package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/why"
	"github.com/holdfast-storage/holdfast/engine"
)

// snapshot is what there is to tell of one cluster at one moment.
type snapshot struct {
	Cluster *api.StorageCluster
	Status  *api.StorageStatus
	Nodes   []api.StorageNode
	Daemons []api.Daemon
	// silent says of each host whose agent is silent since when: nobody knows how its daemons are.
	silent map[string]string
	// actions are those on the cluster and on its hosts that have not ended, the most telling first.
	actions []*api.Action
	// Resources are the cluster's.
	Resources []api.Resource
	// applied is what of the cluster was applied; nil where nothing was, and all is shown.
	applied *applied
	// figures are what the storage system says at this moment; nil where nobody asked or it does
	// not answer.
	figures *api.StorageFigures
}

// line is one row of the progress display.
type line struct {
	Object string `json:"object"`
	Host   string `json:"host,omitempty"`
	State  string `json:"state"`
	// Service is what the storage system says of a daemon.
	Service api.ServiceState `json:"service,omitempty"`
	Detail  string           `json:"detail,omitempty"`
}

func (s snapshot) condition(kind string) *metav1.Condition {
	if s.Cluster == nil {
		return nil
	}
	return meta.FindStatusCondition(s.Cluster.Status.Conditions, kind)
}

// headline says in one sentence where the cluster stands.
func (s snapshot) headline() string {
	if s.Cluster == nil {
		return "gone"
	}
	if s.Cluster.ModeOf() == api.ClusterPaused {
		return s.pausedText()
	}
	state, refused := "", s.clusterRefusals()
	if s.Status != nil && s.Status.Status.Status != "" {
		state = s.stateText()
	}
	switch {
	case state == "" && len(refused) == 0:
		return "waiting for the leader"
	case len(refused) == 0:
		return state
	case state == "":
		return "refused: " + strings.Join(refused, "; ")
	}
	return state + "; refused: " + strings.Join(refused, "; ")
}

// missing says what of that which was applied is not there yet.
func (s snapshot) missing() string {
	if s.Cluster == nil || s.applied == nil || s.applied.whole && s.clusterOutcome() != ready {
		return s.headline()
	}
	var open []string
	for _, r := range s.Resources {
		if s.applied.resources[engine.ResourceObject(r)] && s.resourceOutcome(r) != ready {
			open = append(open, resourceLine(r).plain())
		}
	}
	return cmp.Or(strings.Join(open, "; "), s.headline())
}

// stateText is the state that is known.
func (s snapshot) stateText() string {
	st := s.Status.Status
	text := string(st.Status)
	if st.Health != "" {
		text += ", " + st.Health
	}
	if st.StaleSince != nil {
		text += " (reported before " + st.StaleSince.UTC().Format(time.RFC3339) + ")"
	}
	if message := strings.TrimPrefix(st.Message, st.Health+": "); message != "" { // it need not be said twice
		text += ": " + message
	}
	if s.Cluster.ModeOf() == api.ClusterObserved {
		text = "mode Observed, " + text
	}
	return text
}

// counts says how many daemons of each type and version run, and which nodes and agents do not. Empty before anything is known.
func (s snapshot) counts() string {
	if s.Status == nil || len(s.Status.Status.Daemons) == 0 {
		return ""
	}
	st := s.Status.Status
	var parts []string
	for _, d := range st.Daemons {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %d/%d %s", d.Type, d.Running, d.Wanted, d.Version)))
	}
	text := "running: " + strings.Join(parts, ", ")
	if st.NodesDown > 0 {
		text += fmt.Sprintf("; nodes down: %d", st.NodesDown)
	}
	if st.AgentsDown > 0 {
		text += fmt.Sprintf("; agents disconnected: %d (their daemons may still run)", st.AgentsDown)
	}
	return text
}

// actionStates are the states of actions that have not ended, as they are counted.
var actionStates = []struct {
	state    api.ActionState
	one, all string
}{
	{api.ActionPendingApproval, "waits for approval", "wait for approval"},
	{api.ActionRunning, "running", "running"},
	{api.ActionNew, "beginning", "beginning"},
	{api.ActionPendingSchedule, "waits for its turn", "wait for their turn"},
	{"", "not processed yet", "not " +
		"processed yet"},
}

// actionsText counts the actions that have not ended, and says what the most telling one waits for. Empty where there is none.
func (s snapshot) actionsText() string {
	if len(s.actions) == 0 {
		return ""
	}
	count := map[api.ActionState]int{}
	for _, a := range s.actions {
		count[a.Status.State]++
	}
	var parts []string
	for _, x := range actionStates {
		if n := count[x.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[bool]string{true: x.one, false: x.all}[n == 1]))
		}
	}
	return "actions: " + strings.Join(parts, ", ") + ": 'holdfast action list'; " + telling(s.actions[0])
}

// telling says what one action is and waits for, and what ends that where a person does.
func telling(a *api.Action) string {
	text := fmt.Sprintf("%s (%s %s) %s", a.Name, a.Spec.Kind, a.Spec.Target, strings.TrimPrefix(cmp.Or(waitText(a), " and is "+stateText(a)), " and "))
	if a.Status.State == api.ActionPendingApproval {
		text += fmt.Sprintf(": 'holdfast action approve %s'", a.Name)
	}
	return text
}

// pausedText says what was last known of a cluster that nobody looks at.
func (s snapshot) pausedText() string {
	text := "reconciliation paused (spec.mode)"
	if s.Status != nil && s.Status.Status.Status != "" {
		text += "; last state: " + string(s.Status.Status.Status)
	}
	return text
}

// lines tells of what the storage system finds wrong, of each daemon, and of each node that is not as it should be.
func (s snapshot) lines() []line {
	var lines []line
	if s.Status != nil {
		for _, c := range s.Status.Status.Checks {
			lines = append(lines, line{"check/" + c.Code, "", c.Severity, "", checkText(c)})
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if c := meta.FindStatusCondition(n.Status.Conditions, api.NodeAccepted); c != nil && c.Status != metav1.ConditionTrue {
			lines = append(lines, line{"node/" + n.Name, n.Status.Host, c.Reason, "", c.Message})
		}
	}
	for i := range s.Daemons {
		lines = append(lines, s.unheard(daemonLine(&s.Daemons[i])))
	}
	for _, r := range s.Resources {
		if s.shows(r) {
			lines = append(lines, resourceLine(r))
		}
	}
	return lines
}

// shows says whether a resource has a line: one that was applied, or that cannot be used as it is declared.
func (s snapshot) shows(r api.Resource) bool {
	object := engine.ResourceObject(r)
	well := meta.IsStatusConditionTrue(r.Common().Conditions, api.ConditionReady) && r.Common().Next == ""
	return s.applied != nil && s.applied.resources[object] || !s.beside(object) && !well
}

// resourceLine says how a resource is.
func resourceLine(r api.Resource) line {
	common := r.Common()
	told := checkText(api.HealthCheck{Message: common.Message, Next: common.Next})
	return line{engine.ResourceObject(r), "", string(cmp.Or(common.State, api.ResourcePending)), "", told}
}

// checkText is what is wrong, what it concerns, and the next step.
func checkText(c api.HealthCheck) string {
	text := c.Message
	if len(c.Detail) > 0 {
		text += " (" + strings.Join(c.Detail, "; ") + ")"
	}
	if c.Next != "" {
		text += ". Next: " + c.Next
	}
	return text
}

// unheard is what is said of a daemon on a host whose agent is silent: the object has what was heard last.
func (s snapshot) unheard(l line) line {
	if text := s.silent[l.Host]; text != "" {
		l.State, l.Service, l.Detail = unheard, "", fmt.Sprintf("last reported %s; %s", l.State, text)
	}
	return l
}

func daemonLine(d *api.Daemon) line {
	state := d.Status.State
	if state == "" || d.Status.ObservedGeneration <= 0 {
		state = api.DaemonPending
	}
	detail := d.Status.Message
	if !d.DeletionTimestamp.IsZero() {
		detail = strings.TrimSpace("being removed " + detail)
	}
	service, text := why.Row(d)
	return line{shortName(d), d.Spec.Host, string(state), service, cmp.Or(text, detail)}
}

// shortName is what the storage system's own people call the daemon: mon.a, osd.0.
func shortName(d *api.Daemon) string { return why.ShortName(d) }

// decisions returns those decisions of the last report that a person who waits wants to read.
func (s snapshot) decisions() []string {
	if s.Cluster == nil || s.Cluster.Status.Report == nil {
		return nil
	}
	all, lines := s.Cluster.Status.Report.Decisions, s.lines()
	var texts []string
	for _, d := range all {
		if d.Verdict != api.VerdictDo && !s.beside(d.Object) && !toldInRefusal(d, all) && !toldInLine(d, lines) {
			texts = append(texts, decisionText(d))
		}
	}
	return texts
}

// toldInLine says whether the line of a resource has what a decision on it says.
func toldInLine(d api.Decision, lines []line) bool {
	return engine.OfResource(d.Object) && slices.ContainsFunc(lines, func(l line) bool { return l.Object == d.Object })
}

// toldInRefusal says whether a refusal of the same object tells of a command that failed already.
func toldInRefusal(d api.Decision, all []api.Decision) bool {
	return d.Reason == api.ReasonCommandFailed && slices.ContainsFunc(all, func(other api.Decision) bool {
		return other.Verdict == api.VerdictRefuse && other.Object == d.Object
	})
}
