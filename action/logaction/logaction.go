// Package logaction is what users' programs and the agents share of the actions that read the log
// of a daemon: what such an Action asks for. It is pure.
package logaction

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// Most is how many bytes of a log one action reads. What stands in the place of secrets may
	// make them more.
	Most = 48 << 10
	// MostWait bounds how long an action waits for the next line.
	MostWait = 20 * time.Second
	// expiry bounds how long an action waits for its agent, and keep how long it is there after its
	// end: whoever asked removes it before, unless he was killed.
	expiry = 30 * time.Second
	keep   = 30 * time.Second
)

// Kind is the kind of the actions. It is carried out by the agent of the daemon's host.
var Kind = action.Kind{
	Name: action.DaemonLog, Executor: api.ByAgent, Mode: action.Beside, Steps: []string{"read"}, Final: true,
	Timeout: MostWait + expiry, ExpiresAfter: expiry, KeepFor: keep,
	Summary: "reads the end of the log of a daemon, for 'holdfast logs' (target daemon/NAME)",
}

// Ask is what an Action asks for: the end of a log, or what comes after a place in it.
type Ask struct {
	// Tail is how many lines of the end are read; all that fit if it is negative. Since leaves out
	// what is older than that; zero for nothing.
	Tail  int
	Since time.Duration
	// From is where an earlier action ended. Then Tail and Since say nothing, and the action waits
	// up to Wait for a line.
	From string
	Wait time.Duration
}

// The parameters.
const (
	paramTail  = "tail"
	paramSince = "since"
	paramFrom  = "from"
	paramWait  = "wait"
)

const target = "daemon/"

// For is the Action that asks the agent of a daemon.
func For(d *api.Daemon, ask Ask) *api.Action {
	parameters := map[string]api.ActionParameter{}
	if ask.From != "" {
		parameters[paramFrom] = api.ActionParameter(ask.From)
		parameters[paramWait] = api.ActionParameter(ask.Wait.String())
	} else {
		parameters[paramTail] = api.ActionParameter(strconv.Itoa(ask.Tail))
		parameters[paramSince] = api.ActionParameter(ask.Since.String())
	}
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, GenerateName: "log-"},
		Spec: api.ActionSpec{
			Kind: action.DaemonLog, Target: target + d.Name, Cluster: d.Spec.Cluster,
			Host: d.Spec.Host, Parameters: parameters,
		},
	}
}

// Of reads what an Action asks for, and of which daemon. The error wraps action.ErrRefused.
func Of(a *api.Action) (daemon string, ask Ask, err error) {
	daemon, ok := strings.CutPrefix(a.Spec.Target, target)
	if !ok || daemon == "" {
		return "", ask, hostaction.Refuse("spec.target must be %sNAME, not %q", target, a.Spec.Target)
	}
	ask.Tail = -1
	p := a.Spec.Parameters
	if text := string(p[paramTail]); text != "" {
		if ask.Tail, err = strconv.Atoi(text); err != nil {
			return "", ask, hostaction.Refuse("the parameter %q must be a number of lines, not %q", paramTail, text)
		}
	}
	if ask.Since, err = duration(p, paramSince); err != nil {
		return "", ask, err
	}
	if ask.Wait, err = duration(p, paramWait); err != nil {
		return "", ask, err
	}
	ask.From, ask.Wait = string(p[paramFrom]), min(ask.Wait, MostWait)
	return daemon, ask, nil
}

func duration(p map[string]api.ActionParameter, name string) (time.Duration, error) {
	text := string(p[name])
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, hostaction.Refuse("the parameter %q must be a time such as 10m, not %q", name, text)
	}
	return d, nil
}
