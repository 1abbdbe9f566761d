// Package logs carries out the actions that read the log of a daemon of this host (package
// logaction), for users on other machines. What it reads goes into the Action alone: never into the
// agent's own log, an event or a message.
package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	"github.com/holdfast-storage/holdfast/action/logaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/daemonlog"
	"github.com/holdfast-storage/holdfast/internal/needs"
	"github.com/holdfast-storage/holdfast/internal/redact"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Host is what the actions need of the agent.
type Host struct {
	Name string
	// Pods is set where daemons are pods, whose output the agent does not have.
	Pods bool
	// Daemon is one of this host, nil if it has none of the name; known is false before the server
	// has said which there are.
	Daemon func(types.NamespacedName) (d *api.Daemon, known bool)
	// File is the log of a daemon.
	File func(types.NamespacedName) string
	// Client reads the Secrets that a daemon uses.
	Client client.Reader
}

// recheck is how often the agent looks for new lines.
const recheck = time.Second

// callTimeout bounds the calls of the API.
const callTimeout = 15 * time.Second

// New carries the actions out.
func New(h Host) action.Handler { return &handler{h} }

type handler struct{ Host }

// Kind implements action.Handler.
func (*handler) Kind() action.Kind { return logaction.Kind }

// Check implements action.Handler.
func (h *handler) Check(_ context.Context, a *api.Action) error {
	d, _, err := h.target(a)
	if err != nil {
		return err
	}
	_, err = os.Stat(h.File(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}))
	if errors.Is(err, os.ErrNotExist) {
		return h.none(d)
	}
	return err
}

// none refuses to read a log that does not exist.
func (h *handler) none(d *api.Daemon) error {
	return hostaction.Refuse("daemon %s has no log on host %s yet: it was not started there; see "+
		"'holdfast why daemon/%s'", d.Name, h.Name, d.Name)
}

// target is the daemon of an action, and what is asked of its log.
func (h *handler) target(a *api.Action) (*api.Daemon, logaction.Ask, error) {
	name, ask, err := logaction.Of(a)
	if err != nil {
		return nil, ask, err
	}
	d, known := h.Daemon(types.NamespacedName{Namespace: a.Namespace, Name: name})
	switch {
	case !known:
		return nil, ask, fmt.Errorf("the agent of host %s waits for the server to name its daemons", h.Name)
	case d == nil:
		return nil, ask, hostaction.Refuse("daemon %s does not exist on host %s: see 'holdfast get daemons -A'",
			name, h.Name)
	case h.Pods:
		return nil, ask, hostaction.Refuse("daemon %s is a pod on host %s: use 'kubectl -n %s logs %s'",
			name, h.Name, d.Namespace, d.Name)
	}
	return d, ask, nil
}

// Step implements action.Handler.
func (h *handler) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	d, ask, err := h.target(a)
	if err != nil {
		return action.Progress{}, err
	}
	c, err := read(h.File(types.NamespacedName{Namespace: d.Namespace, Name: d.Name}), ask, time.Now())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return action.Progress{}, h.none(d)
	case err != nil:
		return action.Progress{}, err
	case c.Text == "" && ask.From != "" && a.Status.Started != nil && time.Since(a.Status.Started.Time) < ask.Wait:
		return action.Progress{Message: "waiting for a new line", Recheck: recheck}, nil
	}
	values, err := h.secrets(ctx, d)
	if err != nil {
		return action.Progress{}, err
	}
	// Without secrets, and without what a terminal acts on.
	text := words.Text(redact.New(values).Text(c.Text), action.MaxOutput)
	return action.Progress{
		Done: true, Message: fmt.Sprintf("read the log of daemon %s", d.Name), Output: text, Next: c.Next.String(),
		Count: int64(len(c.Text)), Total: c.Of, Unit: "bytes",
	}, nil
}

// Undo implements action.Handler. It is not called for a kind of which nothing can be undone.
func (*handler) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{Done: true}, nil
}

// read reads what is asked for of a log. Of is then more than there is text where something that
// was asked for is missing, because it did not fit.
func read(path string, ask logaction.Ask, now time.Time) (daemonlog.Chunk, error) {
	if ask.From != "" {
		from, err := daemonlog.Parse(ask.From)
		if err != nil {
			return daemonlog.Chunk{}, hostaction.Refuse("%v", err)
		}
		return daemonlog.Continue(path, from, logaction.Most)
	}
	c, err := daemonlog.Tail(path, logaction.Most)
	if err != nil {
		return c, err
	}
	all, cut := c.Text, int64(len(c.Text)) < c.Of
	if ask.Since > 0 {
		c.Text = daemonlog.Young(c.Text, now.Add(-ask.Since))
		cut = cut && c.Text == all
	}
	if ask.Tail >= 0 {
		cut = cut && strings.Count(c.Text, "\n") < ask.Tail
		c.Text = daemonlog.Last(c.Text, ask.Tail)
	}
	if !cut {
		c.Of = int64(len(c.Text))
	}
	return c, nil
}

// secrets are the values of the Secrets that a daemon uses, which are taken out wherever they
// stand.
func (h *handler) secrets(ctx context.Context, d *api.Daemon) (values []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for _, name := range needs.Secrets(d) {
		var s corev1.Secret
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, &s)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("while reading the secrets that are taken out of a log: %w", err)
		}
		values = append(values, redact.Values(s.Data)...)
	}
	return values, nil
}
