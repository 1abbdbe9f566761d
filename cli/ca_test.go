package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
)

const secondRotation = "apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: second, namespace: holdfast-system}\nspec: {kind: ca.rotate, target: ca/holdfast}\n"

// TestCA_rotate: the command carries a rotation through to its end, with a real server that leads, is restarted when it is asked for,
// and a real host.
func TestCA_rotate(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *control.Config) { c.Refresh = 100 * time.Millisecond })
	stopLeading := b.lead()
	agent := b.joinAgent("h1")
	old, before := b.authority().Fingerprint(), b.adminConfig()
	waiting, err := b.globals().client()
	b.must(err)
	b.expect("ca show", exitOK, old, "server/s1")

	b.expectThen("restarted, one after another", func() {
		b.expect("ca rotate", exitRefused, "already rotates the authority", "server s1", "cancel it with")
		b.expectInput(secondRotation, "apply -f - --wait --timeout 3m", exitRefused, "refused, and nothing was changed", "the authority is being rotated already, by the action ca-rotate-")
		if _, a := b.rotations(); a.Status.State != api.ActionRunning || meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionEffective) {
			t.Errorf("before the restart: %+v", a.Status)
		}
		stopLeading()
		b.restart()
		b.lead()
	}, "ca rotate --wait --timeout 10m", exitOK, "trust: Done", "sign: Done", "drop: Done", "restart: Done", "the old authority is not trusted any more")

	b.rotated(old, before, agent)
	if err := waiting.List(b.Context(), &api.HostList{}); err != nil {
		b.Errorf("a command that began before the rotation: %v", err)
	}
}

// rotated is what is so after a rotation: the new authority alone is believed, and everybody has a certificate of it.
func (b *bench) rotated(old string, before *rest.Config, agent *control.Agent) {
	b.Helper()
	n, a := b.rotations()
	if n != 1 || a.Status.State != api.ActionDone || !meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionEffective) || len(a.Status.Steps) != 4 {
		b.Errorf("%d rotations were accepted; the one: %+v", n, a.Status)
	}
	for _, s := range a.Status.Steps {
		if s.State != api.StepDone {
			b.Errorf("step %s is %s", s.Name, s.State)
		}
	}
	fresh := b.authority().Fingerprint()
	_, out := b.run("", "ca", "show")
	if fresh == old || !strings.Contains(out, fresh) || strings.Contains(out, short(old)) || strings.Count(out, short(fresh)) != 4 {
		b.Errorf("the old authority is %s, the new one %s:\n%s", old, fresh, out)
	}
	if trusted, err := endpoints.Trusted(b.Context(), agent.Config()); err != nil || len(trusted) != 1 || pki.Fingerprint(trusted[0]) != fresh {
		b.Errorf("the host believes %d authorities, %v", len(trusted), err)
	}
	if _, err := endpoints.List(b.Context(), before); err == nil {
		b.Error("who believes the old authority alone believes the server")
	}
	mixed := b.adminConfig()
	mixed.CertData, mixed.KeyData = before.CertData, before.KeyData
	if _, err := endpoints.List(b.Context(), mixed); !apierrors.IsUnauthorized(err) {
		b.Errorf("with a certificate of the old authority: %v", err)
	}
}

// rotations counts the rotations that were not refused, and returns the last of them.
func (b *bench) rotations() (n int, last api.Action) {
	b.Helper()
	c, err := b.globals().client()
	b.must(err)
	var list api.ActionList
	b.must(c.List(b.Context(), &list))
	for _, a := range list.Items {
		if a.Spec.Kind == rotation.KindName && a.Status.State != api.ActionFailed {
			n, last = n+1, a
		}
	}
	return n, last
}

func (b *bench) authority() *pki.Authority {
	b.Helper()
	authority, err := pki.OpenAuthority(filepath.Join(b.dir, "pki"))
	b.must(err)
	return authority
}

// adminConfig reads admin.kubeconfig as it is now.
func (b *bench) adminConfig() *rest.Config {
	b.Helper()
	config, err := b.globals().readConfig()
	b.must(err)
	return config
}

// joinAgent has a host join, which keeps its certificate and whom it believes fresh until the test ends.
func (b *bench) joinAgent(name string) *control.Agent {
	b.Helper()
	token, err := join.Create(b.Context(), b.adminConfig(), join.RoleAgent, time.Hour)
	b.must(err)
	a, err := control.OpenAgent(b.Context(), control.AgentConfig{
		DataDir: b.TempDir(), Name: name, JoinToken: token, Refresh: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	b.must(err)
	b.Cleanup(a.Close)
	return a
}

// lead has the server do all that a leader does, until the returned function is called or the test ends.
func (b *bench) lead() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = contend(ctx, b.server, &leader.Metrics{}, waits.Default(), slog.New(slog.DiscardHandler)) })
	stop = func() { cancel(); running.Wait() }
	b.Cleanup(stop)
	return stop
}
