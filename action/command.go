package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// CommandTimeout bounds a command of a driver: how long it may wait for its agent, and how long the agent may take.
const CommandTimeout = time.Minute

// CommandKind is the kind of Actions that carry a command of a storage system's driver to the agent of a daemon.
var CommandKind = Kind{
	Name: api.ActionServiceCommand, Executor: api.ByAgent, Mode: Beside, Steps: []string{"perform"}, Final: true,
	Summary: "carry out a command of a storage system's driver on a daemon's host; only the leader requests it",
	Timeout: CommandTimeout, ExpiresAfter: CommandTimeout, KeepFor: time.Minute,
}

// Command is what an Action of CommandKind asks for.
type Command struct {
	// Namespace and Daemon name the Daemon whose agent carries it out.
	Namespace, Daemon string
	Verb, Object      string
	Params            map[string]string
	// Secret names a Secret in the namespace that the agent needs for it; empty for none. While the Action is there, its host may read it.
	Secret string
}

// The parameters of an Action of CommandKind.
const (
	paramVerb   = "verb"
	paramObject = "object"
	paramParams = "params"
	paramSecret = "secret"
)

// CommandAction is the Action of this name that asks for a command.
func CommandAction(name, cluster, host string, c Command) (*api.Action, error) {
	params, err := json.Marshal(c.Params)
	if err != nil {
		return nil, err // strings
	}
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: map[string]string{api.LabelCluster: cluster}},
		Spec: api.ActionSpec{
			Kind: api.ActionServiceCommand, Target: targetDaemon + c.Daemon, Cluster: cluster, Host: host, Want: api.WantDone,
			Parameters: map[string]api.ActionParameter{
				paramVerb: api.ActionParameter(c.Verb), paramObject: api.ActionParameter(c.Object), paramParams: api.ActionParameter(params),
			},
		},
	}
	if c.Secret != "" {
		a.Spec.Parameters[paramSecret] = api.ActionParameter(c.Secret)
	}
	return a, nil
}

const targetDaemon = "daemon/"

// CommandOf reads what an Action of CommandKind asks for. The error wraps ErrRefused.
func CommandOf(a *api.Action) (Command, error) {
	c := Command{
		Namespace: a.Namespace, Verb: string(a.Spec.Parameters[paramVerb]), Object: string(a.Spec.Parameters[paramObject]),
		Secret: string(a.Spec.Parameters[paramSecret]),
	}
	var ok bool
	if c.Daemon, ok = strings.CutPrefix(a.Spec.Target, targetDaemon); !ok {
		return c, fmt.Errorf("%w: the target %q is not a daemon: it must be daemon/NAME", ErrRefused, a.Spec.Target)
	}
	if err := json.Unmarshal([]byte(a.Spec.Parameters[paramParams]), &c.Params); err != nil {
		return c, fmt.Errorf("%w: cannot read the parameters of the command: %w", ErrRefused, err)
	}
	return c, nil
}

// SecretOf names the Secret, in the Action's namespace, that its host needs to carry it out; empty for none.
func SecretOf(a *api.Action) string {
	if a.Spec.Kind != api.ActionServiceCommand {
		return ""
	}
	return string(a.Spec.Parameters[paramSecret])
}

// CommandResult is what came of an Action of CommandKind that has ended: what the agent said of it, or an error with the words
// of whoever ended it.
func CommandResult(a *api.Action) (message string, err error) {
	text := a.Status.Message
	for _, s := range a.Status.Steps {
		if s.State == api.StepFailed && s.Message != "" {
			text = s.Message
		}
	}
	if a.Status.State != api.ActionDone {
		return "", fmt.Errorf("on host %s: %s", a.Spec.Host, text)
	}
	return text, nil
}
