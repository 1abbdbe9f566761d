package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// hostAction is what a command on a host asks for.
type hostAction struct {
	kind string
	// verb begins the action's name.
	verb       string
	host       string
	parameters map[string]string
	wait       bool
	timeout    time.Duration
}

func (o *hostAction) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until it is done, and show progress meanwhile")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Hour, "how long --wait waits; the work goes on after that")
}

// set sets a parameter that has a value.
func (o *hostAction) set(parameter, value string) {
	if o.parameters == nil {
		o.parameters = map[string]string{}
	}
	if value != "" {
		o.parameters[parameter] = value
	}
}

func yes(b bool) string {
	if b {
		return hosts.Yes
	}
	return ""
}

// hostAction refuses what is known to be impossible, creates the action, and tells what becomes of it.
func (g *globals) hostAction(ctx context.Context, o hostAction) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	a := o.object()
	if err := withDeadline(ctx, func(ctx context.Context) error { return o.precheck(ctx, c, a) }); err != nil {
		return err
	}
	err = withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, a) })
	if err != nil {
		return fmt.Errorf("while creating the action: %w", err)
	}
	fmt.Fprintf(g.out, "action/%s created\n", a.Name)
	if o.wait {
		return g.waitAction(ctx, c, a, o.timeout)
	}
	return g.firstWord(ctx, c, a)
}

func (o *hostAction) object() *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: bare.SystemNamespace, GenerateName: o.verb + "-" + o.host + "-"},
		Spec: api.ActionSpec{
			Kind: o.kind, Target: "host/" + o.host, Host: o.host, Parameters: map[string]api.ActionParameter{},
		},
	}
	for k, v := range o.parameters {
		a.Spec.Parameters[k] = api.ActionParameter(v)
	}
	return a
}

// precheck refuses what can be seen to be impossible before anything is created.
func (o *hostAction) precheck(ctx context.Context, c client.Client, a *api.Action) error {
	all, err := readHosts(ctx, c)
	if err != nil {
		return err
	}
	if _, err := all.named(o.host); err != nil {
		return err
	}
	var heir *api.Host
	if name := o.parameters[hosts.ParamBy]; name != "" {
		if heir, err = all.named(name); err != nil {
			return err
		}
	}
	on, err := bare.ReadHost(ctx, c, o.host)
	if err != nil {
		return err
	}
	if err := hosts.Precheck(a, on, heir); errors.Is(err, action.ErrRefused) {
		return &exitError{exitRefused, err}
	} else if err != nil {
		return err
	}
	return underWayOn(ctx, c, o.host)
}

// underWayOn refuses a second action on a host. It would wait, for hours perhaps, where most people want the first one to end.
func underWayOn(ctx context.Context, c client.Client, host string) error {
	actions, err := hostActions(ctx, c, host)
	if err != nil {
		return err
	}
	for i := range actions {
		if a := &actions[i]; !a.Status.State.Final() {
			return &exitError{exitRefused, fmt.Errorf("action %s (%s) is under way on host %s%s: 'holdfast action cancel %s' ends it",
				a.Name, a.Spec.Kind, host, waitText(a), a.Name)}
		}
	}
	return nil
}

func waitText(a *api.Action) string {
	if a.Status.WaitsFor == "" {
		return ""
	}
	return " and waits for " + a.Status.WaitsFor
}

// hostActions returns the actions on a host, the newest first.
func hostActions(ctx context.Context, c client.Client, host string) ([]api.Action, error) {
	var list api.ActionList
	if err := c.List(ctx, &list, client.MatchingFields{"spec.host": host}); err != nil {
		return nil, fmt.Errorf("while reading actions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.Action) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return list.Items, nil
}
