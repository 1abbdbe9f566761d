package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// CommandFor returns the Action by which a command reaches the agent of its daemon. Equal commands to one Daemon have one name, so
// that whoever asks again after a crash finds the one that is under way.
func CommandFor(d *api.Daemon, cmd Command) (*api.Action, error) {
	// The encoder orders the keys of maps.
	text, err := json.Marshal([]any{d.Namespace, d.Name, d.UID, cmd.Verb, cmd.Object, cmd.Params, cmd.Secret})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return action.CommandAction("command-"+hex.EncodeToString(sum[:12]), d.Spec.Cluster, d.Spec.Host, action.Command{
		Namespace: d.Namespace, Daemon: d.Name, Verb: cmd.Verb, Object: cmd.Object, Params: cmd.Params, Secret: cmd.Secret,
	})
}

// carryOut has one command carried out, by the driver or by the agent of a daemon.
func (r *run) carryOut(ctx context.Context, cmd Command, secrets SecretReader) error {
	ctx, cancel := context.WithTimeout(ctx, r.commandTimeout())
	defer cancel()
	if cmd.Daemon == "" {
		return r.Driver.Perform(ctx, r.view, cmd, secrets)
	}
	message, err := r.Store.Ask(ctx, r.view.daemon(cmd.Daemon), cmd)
	if err == nil {
		r.log.Info("an agent carried out a command", "daemon", cmd.Daemon, "command", cmd.Verb, "object", cmd.Object, "message", message)
	}
	return err
}

// noAgent says why no agent can be asked for a command; empty when one can, or none has to be.
func (v *View) noAgent(cmd Command) string {
	d := v.daemon(cmd.Daemon)
	switch {
	case cmd.Daemon == "":
		return ""
	case d == nil:
		return fmt.Sprintf("daemon %s, which must carry it out, does not exist", cmd.Daemon)
	case !v.heard(d.Spec.Host):
		return fmt.Sprintf("the agent of host %s, which must carry it out, is disconnected", d.Spec.Host)
	}
	return ""
}

func (v *View) daemon(name string) *api.Daemon {
	if i := slices.IndexFunc(v.Daemons, func(d api.Daemon) bool { return d.Name == name }); i >= 0 {
		return &v.Daemons[i]
	}
	return nil
}
