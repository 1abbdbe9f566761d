package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

func newAction(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "action",
		Short: "List, follow, approve and cancel actions",
		Long: `An action is one operation, such as maintenance of a host or the restart of a daemon. Commands such
as 'holdfast host drain' and 'holdfast daemon restart' create actions. If a server or an agent
crashes, its successor continues the action.`,
	}
	cmd.AddCommand(newActionList(g), newActionShow(g), newActionWait(g), newActionCancel(g), newActionApprove(g), newActionKinds(g))
	return cmd
}

func newActionList(g *globals) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List actions that have not ended, the oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.actionList(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "include ended actions, which are kept for 7 days, 200 at most")
	return cmd
}

func (g *globals) actionList(ctx context.Context, all bool) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	var list api.ActionList
	if err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list) }); err != nil {
		return fmt.Errorf("while reading actions: %w", err)
	}
	ended := len(list.Items)
	if !all {
		list.Items = slices.DeleteFunc(list.Items, func(a api.Action) bool { return a.Status.State.Final() })
	}
	ended -= len(list.Items)
	if len(list.Items) == 0 && ended > 0 {
		_, err := fmt.Fprintf(g.out,
			"no action is in progress; see ended ones with 'holdfast action list --all' (%d)\n", ended)
		return err
	}
	return actionTable(g.out, list.Items, time.Now())
}

func actionTable(w io.Writer, actions []api.Action, now time.Time) error {
	if len(actions) == 0 {
		_, err := fmt.Fprintln(w, "there are none")
		return err
	}
	slices.SortStableFunc(actions, func(a, b api.Action) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "NAME\tKIND\tTARGET\tSTATE\tSTEPS\tREQUESTER\tAGE\tMESSAGE")
	for i := range actions {
		a := &actions[i]
		fmt.Fprintln(tw, cellsOf([]string{
			a.Name, a.Spec.Kind, a.Spec.Target, stateText(a), dash(a.Status.Progress), dash(a.Spec.Requester),
			duration.HumanDuration(now.Sub(a.CreationTimestamp.Time)), wordOf(a, now),
		}))
	}
	return tw.Flush()
}

func stateText(a *api.Action) string {
	if a.Status.State == "" {
		return "-"
	}
	return string(a.Status.State)
}

// wordOf is what matters most of an action in one line.
func wordOf(a *api.Action, now time.Time) string {
	word := a.Status.Message
	switch {
	case a.Status.State == "":
		word = "waiting for the leader"
	case a.Status.WaitsFor != "":
		word = "waits for " + a.Status.WaitsFor
	}
	return word + leftText(a, now)
}

// leftText says how long an action will probably take.
func leftText(a *api.Action, now time.Time) string {
	if a.Status.Estimated == nil || a.Status.State.Final() {
		return ""
	}
	switch left := a.Status.Estimated.Sub(now); {
	case left >= time.Second:
		return "; done in about " + duration.HumanDuration(left)
	case late(a, now):
		return "; longer than estimated"
	}
	return ""
}

// clearlyLate is how long after its estimate an action takes longer at the least: estimates are no better than that.
const clearlyLate = 30 * time.Second

// late says whether an action takes clearly longer than was estimated: twice as long.
func late(a *api.Action, now time.Time) bool {
	expected := clearlyLate
	for _, s := range a.Status.Steps {
		if s.State == api.StepRunning && s.Started != nil {
			expected = max(expected, a.Status.Estimated.Sub(s.Started.Time))
		}
	}
	return now.Sub(a.Status.Estimated.Time) > expected
}

// findAction returns the action of a name, wherever it lies: actions on hosts lie in a namespace that nobody has in mind.
func (g *globals) findAction(ctx context.Context, c client.Client, name string) (*api.Action, error) {
	var list api.ActionList
	if err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list) }); err != nil {
		return nil, fmt.Errorf("while reading actions: %w", err)
	}
	var names []string
	var found []*api.Action
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
		if list.Items[i].Name == name {
			found = append(found, &list.Items[i])
		}
	}
	if in := slices.IndexFunc(found, func(a *api.Action) bool { return a.Namespace == g.namespace }); len(found) > 1 && in >= 0 {
		return found[in], nil
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &exitError{exitUsage, fmt.Errorf("several namespaces have an action %s: choose one with -n", name)}
	}
	hint := "list them with 'holdfast action list --all'"
	if like := spell.Nearest(name, names); like != "" {
		hint = fmt.Sprintf("did you mean %s?", like)
	}
	return nil, &exitError{exitRefused, fmt.Errorf("action %s does not exist: %s", name, hint)}
}

// withAction runs a command on one action.
func (g *globals) withAction(ctx context.Context, name string, do func(client.Client, *api.Action) error) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	a, err := g.findAction(ctx, c, name)
	if err != nil {
		return err
	}
	return do(c, a)
}

func newActionWait(g *globals) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "wait NAME", Short: "Follow an action until it ends", Args: cobra.ExactArgs(1),
		Long: `Waits until the action has ended. Exit codes: 0 done, 3 refused or expired and nothing was changed,
4 not ended within --timeout (the action continues), 1 any other end.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withAction(cmd.Context(), args[0], func(c client.Client, a *api.Action) error {
				return g.waitAction(cmd.Context(), c, a, timeout)
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Hour, "how long to wait; the action continues after that")
	return cmd
}

func newActionCancel(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "cancel NAME", Short: "Cancel an action and undo its steps", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withAction(cmd.Context(), args[0], func(c client.Client, a *api.Action) error {
				was := a.DeepCopy()
				a.Spec.Want = api.WantCancelled
				if err := patchAction(cmd.Context(), c, was, a); err != nil {
					return err
				}
				_, err := fmt.Fprintf(g.out, "action/%s is being cancelled: follow it with 'holdfast action wait %s'\n",
					a.Name, a.Name)
				return err
			})
		},
	}
}

func newActionApprove(g *globals) *cobra.Command {
	var reject bool
	cmd := &cobra.Command{
		Use: "approve NAME", Short: "Approve or reject a pending action", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withAction(cmd.Context(), args[0], func(c client.Client, a *api.Action) error {
				return g.approve(cmd.Context(), c, a, reject)
			})
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the action")
	return cmd
}

func (g *globals) approve(ctx context.Context, c client.Client, a *api.Action, reject bool) error {
	want, word := api.ApprovalGranted, "approved"
	if reject {
		want, word = api.ApprovalRejected, "rejected"
	}
	if a.Spec.Approval == want {
		return &exitError{exitRefused, fmt.Errorf("action %s is already %s, and is %s", a.Name, word, stateText(a))}
	}
	was := a.DeepCopy()
	a.Spec.Approval = want
	if err := patchAction(ctx, c, was, a); err != nil {
		return err
	}
	_, err := fmt.Fprintf(g.out, "action/%s %s\n", a.Name, word)
	return err
}

// patchAction writes what was changed of an action, if nobody changed it meanwhile.
func patchAction(ctx context.Context, c client.Client, was, is *api.Action) error {
	if was.Status.State.Final() {
		return &exitError{exitRefused, fmt.Errorf("action %s has already ended as %s: %s",
			was.Name, was.Status.State, was.Status.Message)}
	}
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Patch(ctx, is, client.MergeFrom(was)) })
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &exitError{exitRefused, &plainError{err}}
	}
	if err != nil {
		return fmt.Errorf("while changing action %s: %w", was.Name, err)
	}
	return nil
}

func newActionKinds(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "kinds", Short: "List the kinds of actions", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			kinds := actionKinds()
			tw := tabwriter.NewWriter(g.out, 0, 0, 3, ' ', 0)
			fmt.Fprintln(tw, "KIND\tBY\tMODE\tSUMMARY")
			for _, name := range slices.Sorted(maps.Keys(kinds)) {
				k := kinds[name]
				fmt.Fprintln(tw, cellsOf([]string{k.Name, string(k.Executor), string(k.Mode), k.Summary}))
			}
			return tw.Flush()
		},
	}
}

func newDaemon(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "daemon", Short: "Restart, stop or start a daemon",
	}
	var wait, force bool
	var timeout time.Duration
	restart := &cobra.Command{
		Use: "restart NAME", Short: "Restart a daemon once", Args: cobra.ExactArgs(1),
		Long: `Stops the process of a daemon and starts it again, once.

The storage system checks whether the other daemons can cover for this one: now, and again before
the restart begins. If they cannot, the restart is refused with the reason; if the reason is
temporary, the restart waits. A daemon that does not run, or that the storage system counts as down,
can always be restarted.`,
		Example: `  holdfast daemon restart ceph-osd-3 --wait
  holdfast daemon restart osd.3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.actOnDaemon(cmd.Context(), api.ActionDaemonRestart, args[0], force, wait, timeout)
		},
	}
	restart.Flags().BoolVar(&force, "force", false, "skip the check by the storage system: clients may have to wait until the daemon is back")
	restart.Flags().BoolVar(&wait, "wait", false, "wait until the new process runs")
	restart.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long --wait waits; the action continues after that")
	cmd.AddCommand(restart, newDaemonStop(g), newDaemonStart(g))
	return cmd
}

// actOnDaemon creates an action of a kind daemon.VERB.
func (g *globals) actOnDaemon(ctx context.Context, kind, name string, force, wait bool, timeout time.Duration) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	d, err := g.findDaemon(ctx, c, name)
	if err != nil {
		return err
	}
	a := &api.Action{Spec: api.ActionSpec{Kind: kind, Target: "daemon/" + d.Name}}
	a.Spec.Cluster, a.Spec.Host = d.Spec.Cluster, d.Spec.Host
	a.Namespace, a.GenerateName = d.Namespace, strings.TrimPrefix(kind, "daemon.")+"-"+d.Name+"-"
	if force {
		a.Spec.Parameters = map[string]api.ActionParameter{hosts.ParamForce: hosts.Yes}
	}
	return g.act(ctx, a, wait, timeout)
}

// act creates an action, and waits for its end, or for the leader's first word of it.
func (g *globals) act(ctx context.Context, a *api.Action, wait bool, timeout time.Duration) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	err = withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, a) })
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &exitError{exitRefused, &plainError{err}}
	}
	if err != nil {
		return fmt.Errorf("while creating the action: %w", err)
	}
	fmt.Fprintf(g.out, "action/%s created\n", a.Name)
	if wait {
		return g.waitAction(ctx, c, a, timeout)
	}
	return g.firstWord(ctx, c, a)
}

// findDaemon returns a daemon by its name, or by the name that the storage system's own people know it by.
func (g *globals) findDaemon(ctx context.Context, c client.Client, name string) (*api.Daemon, error) {
	var list api.DaemonList
	err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list, client.InNamespace(g.namespace)) })
	if err != nil {
		return nil, fmt.Errorf("while reading daemons: %w", err)
	}
	var names []string
	var found []*api.Daemon
	for i := range list.Items {
		d := &list.Items[i]
		if d.Name == name {
			return d, nil
		}
		if shortName(d) == name {
			found = append(found, d)
		}
		names = append(names, d.Name, shortName(d))
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, &exitError{exitRefused, fmt.Errorf("%s could be %s or %s: choose one",
			name, found[0].Name, found[1].Name)}
	}
	text := fmt.Sprintf("daemon %s does not exist in namespace %s", name, g.namespace)
	if like := spell.Nearest(name, names); like != "" {
		text += fmt.Sprintf(": did you mean %s?", like)
	}
	return nil, &exitError{exitRefused, errors.New(text)}
}
