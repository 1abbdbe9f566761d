package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/outside"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Reasons of the condition Ready of a StorageCluster, beside ReasonWaiting and ReasonRefused.
const (
	ReasonReady    = "Ready"
	ReasonDeleting = "Deleting"
	// ReasonObserved: something would be changed, and the cluster is only observed.
	ReasonObserved = "Observed"
	// ReasonPaused: nobody looks at the cluster.
	ReasonPaused = "Paused"
	// ReasonFailed: the last orchestration ended by an error, so nothing is known.
	ReasonFailed = "OrchestrationFailed"
)

// Bounds of the API's schema.
const (
	maxDecisions       = 256
	maxDecisionObject  = 256
	maxDecisionMessage = 1024
	maxReportError     = 4096
	maxRequest         = 64
)

// outcome says how the run ended.
func (r *run) outcome(err error) api.OrchestrationOutcome {
	switch {
	case err != nil, len(r.failures) > 0:
		return api.OutcomeFailed
	case r.plan.Refused:
		return api.OutcomeRefused
	case r.plan.Held > 0:
		return api.OutcomeObserved
	case !r.plan.Empty():
		return api.OutcomeChanged
	case !r.plan.Done:
		return api.OutcomeWaiting
	default:
		return api.OutcomeUnchanged
	}
}

// report writes the cluster's status, if it differs in more than times, and tells of a failure as an event.
func (r *run) report(ctx context.Context, failure error) error {
	report := r.makeReport(failure)
	r.event.Outcome, r.event.Failure = string(report.Outcome), errors.Join(r.failures...)
	emitted := func() error { return nil }
	if r.view != nil && r.memory.view != nil {
		events := reportEvents(r.view.Cluster.Name, r.memory.outcome, report)
		r.memory.unsent = append(r.memory.unsent, r.memory.flaps.damp(events, r.started)...)
		r.memory.outcome = report.Outcome
		emitted = start(ctx, r.emit)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := r.Store.PutClusterStatus(ctx, r.event.Cluster, func(s *api.StorageClusterStatus) {
		// Whoever asked for a run is shown its report, also when it says the same as the one before.
		asked := r.event.Request != "" && r.event.Request != s.OrchestratedRequest
		if asked {
			s.OrchestratedRequest = r.event.Request
		}
		if s.Report == nil || asked || !sameReport(s.Report, report) {
			s.Report = report
		}
		if r.view != nil {
			s.ObservedGeneration = r.view.Cluster.Generation
		}
		for _, c := range r.conditions(failure) {
			c.ObservedGeneration = s.ObservedGeneration
			c.LastTransitionTime = metav1.NewTime(r.started.Truncate(time.Second))
			meta.SetStatusCondition(&s.Conditions, c)
		}
		if r.view != nil {
			putAllowed(s, r.view.Forbidden, r.started)
		}
		standCluster(s, r.started)
	})
	if err != nil {
		err = fmt.Errorf("while writing the report: %w", err)
	}
	return errors.Join(err, emitted())
}

func (r *run) makeReport(failure error) *api.OrchestrationReport {
	report := &api.OrchestrationReport{
		Started:  metav1.NewMicroTime(r.started.Truncate(time.Microsecond)),
		Duration: metav1.Duration{Duration: time.Since(r.started).Round(time.Microsecond)},
		Leader:   r.Leader,
		Outcome:  r.outcome(failure),
	}
	if all := errors.Join(append(r.failures, failure)...); all != nil {
		report.Error = words.Cut(all.Error(), maxReportError)
	}
	if r.view != nil {
		for _, e := range r.view.Errors {
			report.Decisions = append(report.Decisions, api.Decision{Object: e.Object, Verdict: api.VerdictWait, Reason: api.ReasonNotAnswering, Message: e.Message})
		}
	}
	if r.plan != nil {
		report.Decisions = append(report.Decisions, r.plan.Decisions...)
	}
	boundDecisions(report)
	return report
}

// boundDecisions keeps the report within the schema, so that a very large plan cannot make it unwritable. What is left out is what nobody has to do
// anything about, as long as there is such.
func boundDecisions(report *api.OrchestrationReport) {
	if n := len(report.Decisions); n > maxDecisions {
		slices.SortStableFunc(report.Decisions, func(a, b api.Decision) int { return urgency(b.Verdict) - urgency(a.Verdict) })
		report.Decisions = append(slices.Clone(report.Decisions[:maxDecisions-1]), api.Decision{
			Object: ReportObject, Verdict: api.VerdictSkip, Reason: api.ReasonMoreToReport,
			Message: fmt.Sprintf("%d more decisions are not shown", n-maxDecisions+1),
		})
	}
	for i := range report.Decisions {
		report.Decisions[i].Object = words.Cut(report.Decisions[i].Object, maxDecisionObject)
		report.Decisions[i].Message = words.Cut(report.Decisions[i].Message, maxDecisionMessage)
	}
}

// ReportObject is what the last decision of a report that leaves out others is of.
const ReportObject = "report"

// urgency orders verdicts, the ones first that hold up what is wanted.
func urgency(v api.Verdict) int {
	return slices.Index([]api.Verdict{api.VerdictDo, api.VerdictSkip, api.VerdictWait, api.VerdictRefuse}, v)
}

// sameReport compares what two reports say, but for times and the leader's name.
func sameReport(a, b *api.OrchestrationReport) bool {
	return a.Outcome == b.Outcome && a.Error == b.Error && equality.Semantic.DeepEqual(a.Decisions, b.Decisions)
}

// conditions are the cluster's conditions as the run leaves them.
func (r *run) conditions(failure error) []metav1.Condition {
	if failure != nil {
		return []metav1.Condition{{
			Type: api.ClusterReady, Status: metav1.ConditionUnknown, Reason: ReasonFailed,
			Message: words.Cut(failure.Error(), maxConditionMessage),
		}}
	}
	all := []metav1.Condition{r.acceptedCondition(), r.readyCondition()}
	for _, c := range r.plan.Conditions {
		c.Message = words.Cut(c.Message, maxConditionMessage)
		all = append(all, c)
	}
	return append(all, outside.Conditions(r.view.Cluster.Status.Conditions, r.plan.Status.ChangedOutside)...)
}

// acceptedCondition says whether the cluster's own spec can be carried out.
func (r *run) acceptedCondition() metav1.Condition {
	refusals := sentences(r.plan.Decisions, func(d api.Decision) bool {
		return d.Verdict == api.VerdictRefuse && (r.plan.Refused || ofSpec(d.Object))
	})
	if r.plan.Refused || len(refusals) > 0 {
		return falseCondition(api.ClusterAccepted, ReasonRefused, refusals)
	}
	return metav1.Condition{Type: api.ClusterAccepted, Status: metav1.ConditionTrue, Reason: ReasonAccepted}
}

// readyCondition says whether all that the cluster's own spec, its nodes and its hosts ask for is there. Resources have their own.
func (r *run) readyCondition() metav1.Condition {
	ofCluster := func(v api.Verdict) []string {
		return sentences(r.plan.Decisions, func(d api.Decision) bool {
			return d.Verdict == v && (r.plan.Refused || !OfResource(d.Object))
		})
	}
	waits, refusals, change := ofCluster(api.VerdictWait), ofCluster(api.VerdictRefuse), r.plan.FirstChange()
	if r.plan.Held > 0 {
		waits = append([]string{observedText(r.plan.Held)}, waits...)
	}
	switch {
	case r.view.Cluster.DeletionTimestamp != nil:
		return falseCondition(api.ClusterReady, ReasonDeleting, append([]string{"the cluster is being deleted"}, waits...))
	case r.plan.Refused:
		return falseCondition(api.ClusterReady, ReasonRefused, refusals)
	case r.plan.Held > 0:
		return falseCondition(api.ClusterReady, ReasonObserved, waits)
	case r.plan.Status.Status == api.StorageOnline && len(waits)+len(refusals) == 0 && change == "":
		return metav1.Condition{
			Type: api.ClusterReady, Status: metav1.ConditionTrue, Reason: ReasonReady,
			Message: "the cluster is ONLINE and as declared",
		}
	case len(waits) == 0 && len(refusals) > 0:
		return falseCondition(api.ClusterReady, ReasonRefused, refusals)
	case r.plan.Status.Status != api.StorageOnline:
		first := strings.TrimSuffix(cmp.Or(r.plan.Status.Message, "the storage system is not ONLINE yet"), ".")
		waits = append([]string{first}, slices.DeleteFunc(waits, func(wait string) bool { return strings.HasSuffix(wait, first) })...)
	case len(waits) == 0:
		waits = []string{"a change is being made: " + change}
	}
	return falseCondition(api.ClusterReady, ReasonWaiting, waits)
}

// sentences returns the decisions that a filter chooses as text, the first few of them.
func sentences(decisions []api.Decision, chosen func(api.Decision) bool) []string {
	const most = 5
	var all []string
	for _, d := range decisions {
		if chosen(d) {
			all = append(all, d.Object+": "+strings.TrimSuffix(d.Message, "."))
		}
	}
	if n := len(all); n > most {
		all = append(all[:most], fmt.Sprintf("and %d more", n-most))
	}
	return all
}
