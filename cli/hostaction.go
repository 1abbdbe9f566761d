package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/names"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/screen"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// hostAction is what a command on a host asks for.
type hostAction struct {
	kind string
	// verb begins the action's name.
	verb       string
	host       string
	parameters map[string]string
	wait       bool
	dryRun     bool
	timeout    time.Duration
}

func (o *hostAction) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "show progress, and wait until it is done")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Hour, "how long --wait waits; the work continues after that")
}

// bindPlanned is bind of an action that may destroy data.
func (o *hostAction) bindPlanned(cmd *cobra.Command) {
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the plan, and change nothing")
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

// hostAction refuses what is known to be impossible, and what destroys data unless its plan is named; creates the action, and tells what
// becomes of it.
func (g *globals) hostAction(ctx context.Context, o hostAction) error {
	w, err := g.writer(false)
	if err != nil {
		return err
	}
	a := o.object()
	wiped := false
	err = withDeadline(ctx, func(ctx context.Context) (err error) {
		wiped, err = o.precheck(ctx, w.client, a, g.err)
		return err
	})
	if err != nil {
		return err
	}
	targets, err := w.checkAll(ctx, []object{declared(a)})
	if err != nil {
		return err
	}
	if o.dryRun || wiped {
		if err := g.planAction(ctx, w, targets, o.dryRun); err != nil || o.dryRun {
			return err
		}
	}
	if err := g.write(ctx, w, targets, applyOptions{}); err != nil {
		return err
	}
	if o.wait {
		return g.waitAction(ctx, w.client, a, o.timeout)
	}
	return g.firstWord(ctx, w.client, a)
}

// planAction shows what would come of an action, or refuses it if that destroys data. All else that the clusters would refuse is for the leader to
// say, who asks them.
func (g *globals) planAction(ctx context.Context, w *writer, targets []target, dryRun bool) error {
	p, err := g.propose(ctx, w, api.PlanApply, targets)
	if err != nil {
		return err
	}
	if dryRun {
		screen.Report(g.out, screen.Auto, p.Report)
		return p.refusal()
	}
	if p.destroys() {
		if err := p.refusal(); err != nil {
			return err
		}
	}
	return g.requireNamed(ctx, w, p)
}

// object is the action. It has its name here already, so that a plan of it makes one action and no second.
func (o *hostAction) object() *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: names.SimpleNameGenerator.GenerateName(o.verb + "-" + o.host + "-")},
		Spec: api.ActionSpec{
			Kind: o.kind, Target: "host/" + o.host, Host: o.host, Parameters: map[string]api.ActionParameter{},
		},
	}
	for k, v := range o.parameters {
		a.Spec.Parameters[k] = api.ActionParameter(v)
	}
	return a
}

// declared is the action as somebody would write it into a file.
func declared(a *api.Action) object {
	u := plans.Unstructured(engine.KindAction, a)
	for _, unsaid := range [][]string{{"status"}, {"metadata", "creationTimestamp"}, {"spec", "timeout"}, {"spec", "expiresAfter"}} {
		unstructured.RemoveNestedField(u.Object, unsaid...)
	}
	return object{Unstructured: u, source: "command line"}
}
