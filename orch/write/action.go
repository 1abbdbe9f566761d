package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// beganWithin bounds the wait for an Action to be taken up, or refused, where the call has no end;
// toAnswer is what is left of the time of a call then. pollEvery is between two looks.
const beganWithin, toAnswer, pollEvery = 2 * time.Second, 200 * time.Millisecond, 25 * time.Millisecond

// start creates an Action, and waits a moment until it is taken up. The answer is words with how to
// follow it; an Action that was refused is an error. enough says when it has come far enough.
func (c *Call) start(
	ctx context.Context, spec api.ActionSpec, words string, enough func(*api.Action) bool,
) (string, error) {
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: c.name()}, Spec: spec}
	if spec.Cluster != "" {
		a.Namespace = c.View.Cluster.Namespace
	}
	a.Annotations = map[string]string{
		wire.AnnotationCall: c.digest, wire.AnnotationAsked: c.Now.UTC().Format(wire.AskedLayout),
	}
	err := c.Client.Create(ctx, a)
	if apierrors.IsAlreadyExists(err) {
		err = c.sentBefore(ctx, a)
	}
	if err != nil {
		return "", writing(err, "action %s", a.Name)
	}
	return c.outcome(ctx, a, words, enough)
}

// outcome waits a moment until an Action has come far enough, and answers what has come of it.
func (c *Call) outcome(
	ctx context.Context, a *api.Action, words string, enough func(*api.Action) bool,
) (string, error) {
	if err := c.follow(ctx, a, enough); err != nil {
		return "", err
	}
	switch a.Status.State {
	case api.ActionFailed, api.ActionLost:
		return "", answer.Errorf("%s (action/%s)", a.Status.Message, a.Name)
	case api.ActionPendingApproval:
		words += "\nan administrator has to approve it: holdfast action approve " + a.Name
	default:
	}
	return following(a, words), nil
}

// following are words with how to follow an Action.
func following(a *api.Action, words string) string {
	return fmt.Sprintf("%s\naction/%s (holdfast%s action wait %s)", words, a.Name, inNamespace(a.Namespace), a.Name)
}

// sentBefore reads the Action that the same call created when it was sent before. It is refused where
// another call did. What a call asks for may be less the second time, so its parameters do not count.
func (c *Call) sentBefore(ctx context.Context, a *api.Action) error {
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil {
		return err
	}
	if !c.mine(a) || a.Annotations[wire.AnnotationCall] != c.digest {
		return answer.Errorf("action %s is of another call with the same id: send the call once more", a.Name)
	}
	return nil
}

// name is that of the Action of this call.
func (c *Call) name() string {
	const most = 12
	return "orch-" + c.ID[:min(len(c.ID), most)]
}

// inNamespace is the option that names a namespace which is not the default.
func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceDefault || namespace == api.SystemNamespace {
		return ""
	}
	return " -n " + namespace
}

// follow reads an Action until it has ended, waits for approval or has come far enough, or a moment
// has passed.
func (c *Call) follow(ctx context.Context, a *api.Action, enough func(*api.Action) bool) error {
	limit := beganWithin
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end) - toAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(a), a); err != nil && ctx.Err() == nil {
			return fmt.Errorf("while reading action %s: %w", a.Name, err)
		}
		if a.Status.State.Final() || a.Status.State == api.ActionPendingApproval || enough(a) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil // it is recorded, and goes its way
		case <-tick.C:
		}
	}
}

// accepted says that who carries the Action out has begun, or that it waits for its turn.
func accepted(a *api.Action) bool {
	return a.Status.State == api.ActionRunning || a.Status.WaitsFor != ""
}

// begun says that an Action is under way. Kinds that ask first whether they may begin are refused
// before that.
func begun(a *api.Action) bool { return a.Status.State == api.ActionRunning }

// stepDone says that an Action has done one of its steps.
func stepDone(name string) func(*api.Action) bool {
	return func(a *api.Action) bool {
		for _, s := range a.Status.Steps {
			if s.Name == name && s.State == api.StepDone {
				return true
			}
		}
		return false
	}
}

// cancelAll cancels what 'ceph orch' of this cluster asked for and has not ended.
func cancelAll(ctx context.Context, c *Call) (any, error) {
	for i := range c.View.Actions {
		if a := &c.View.Actions[i]; c.mine(a) && !a.Status.State.Final() {
			if err := c.cancel(ctx, a); err != nil {
				return nil, err
			}
		}
	}
	return "", nil
}

// mine says whether 'ceph orch' of this cluster asked for an Action.
func (c *Call) mine(a *api.Action) bool { return a.Spec.Requester == wire.User(c.cluster()) }

func (c *Call) cancel(ctx context.Context, a *api.Action) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"want": api.WantCancelled}})
	if err != nil {
		return err
	}
	return writing(client.IgnoreNotFound(c.Client.Patch(ctx, a.DeepCopy(),
		client.RawPatch("application/merge-patch+json", patch))), "action %s", a.Name)
}

// hostAction starts an Action on a host.
func (c *Call) hostAction(
	ctx context.Context, kind, host, words string, parameters map[string]api.ActionParameter,
) (string, error) {
	spec := api.ActionSpec{Kind: kind, Target: "host/" + host, Host: host, Parameters: parameters}
	return c.start(ctx, spec, words, accepted)
}

// onHost is the Action of a kind that is under way on a host, nil where there is none.
func onHost(v *engine.View, kind, host string) *api.Action {
	for i := range v.Actions {
		if a := &v.Actions[i]; a.Spec.Kind == kind && a.Spec.Host == host && !a.Status.State.Final() {
			return a
		}
	}
	return nil
}
