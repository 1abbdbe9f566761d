package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func newActionShow(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show an action: its steps, what it waits for, and the next step", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withAction(cmd.Context(), args[0], func(_ client.Client, a *api.Action) error {
				return describeAction(g.out, a, time.Now())
			})
		},
	}
}

// describeAction writes all that a person who waits for an action wants to know.
func describeAction(w io.Writer, a *api.Action, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s:\t%s\n", key, printable(value))
		}
	}
	row("Action", a.Namespace+"/"+a.Name)
	row("Kind", a.Spec.Kind)
	row("Target", a.Spec.Target)
	row("Cluster", a.Spec.Cluster)
	row("Host", a.Spec.Host)
	for _, k := range slices.Sorted(maps.Keys(a.Spec.Parameters)) {
		row("  "+k, string(a.Spec.Parameters[k]))
	}
	row("Requested", fmt.Sprintf("%s ago by %s", duration.HumanDuration(now.Sub(a.CreationTimestamp.Time)), dash(a.Spec.Requester)))
	row("Approval", approvalText(a))
	row("State", stateText(a))
	row("Message", a.Status.Message)
	row("Waits for", a.Status.WaitsFor)
	row("Took", tookText(a.Status.Started, a.Status.Finished, now))
	if a.Status.Estimated != nil {
		row("Estimated", a.Status.Estimated.UTC().Format(time.DateTime+"Z")+leftText(a, now))
	}
	for _, s := range a.Status.Steps {
		row("Step "+s.Name, stepText(s, now))
	}
	row("Next", nextText(a))
	return tw.Flush()
}

func approvalText(a *api.Action) string {
	if a.Status.Approver == "" {
		return string(a.Spec.Approval)
	}
	return fmt.Sprintf("%s by %s", a.Spec.Approval, a.Status.Approver)
}

func tookText(started, finished *metav1.Time, now time.Time) string {
	switch {
	case started == nil:
		return ""
	case finished == nil:
		return duration.HumanDuration(now.Sub(started.Time)) + " so far"
	}
	return duration.HumanDuration(finished.Sub(started.Time))
}

func stepText(s api.ActionStep, now time.Time) string {
	text := string(cmp.Or(s.State, api.StepPending))
	if s.Total > 0 {
		text += fmt.Sprintf(", %d of %d %s", s.Done, s.Total, s.Unit)
	}
	if took := tookText(s.Started, s.Finished, now); took != "" {
		text += ", " + took
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}

// nextText is the command that a person may want next.
func nextText(a *api.Action) string {
	switch {
	case a.Status.State == api.ActionPendingApproval:
		return fmt.Sprintf("'holdfast action approve %s', or with --reject to reject it", a.Name)
	case !a.Status.State.Final():
		return fmt.Sprintf("follow it with 'holdfast action wait %s'; undo it with 'holdfast action cancel %s'",
			a.Name, a.Name)
	}
	return ""
}
