package control_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/join"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// with starts a server of the crew with a token, and returns what it said until it was ready.
func (c *crew) with(i int, token string) string {
	c.t.Helper()
	log := &safeBuffer{}
	config := c.configs[i]
	config.JoinToken, config.Log = token, slog.New(slog.NewTextHandler(log, nil))
	c.servers[i], c.stops[i] = start(c.t, config)
	return log.String()
}

func wantSaid(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("it said %s\nwant %q", text, want)
	}
}

// removeHost deletes the Host of a server, over another one, and waits until its agent is let in no more.
func (c *crew) removeHost(over, i int) {
	c.t.Helper()
	if err := newClient(c.t, c.servers[over].Config()).Delete(c.t.Context(), nodes(c.configs[i].Name)); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, func() error {
		_, err := endpoints.List(c.t.Context(), c.servers[i].AgentConfig())
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return errStillReady
	})
}

// joined fails the test unless the host of a server is let in, and is known as one that runs a server.
func (c *crew) joined(over, i int) {
	c.t.Helper()
	if _, err := endpoints.List(c.t.Context(), c.servers[i].AgentConfig()); err != nil {
		c.t.Errorf("its agent: %v", err)
	}
	host := &api.Host{}
	if err := newClient(c.t, c.servers[over].Config()).Get(c.t.Context(), key("", c.configs[i].Name), host); err != nil {
		c.t.Fatal(err)
	}
	if host.Labels[api.LabelServer] == "" {
		c.t.Errorf("its Host has the labels %v", host.Labels)
	}
}

// TestRejoin_server: a token brings a server back whose host was removed, with its data set aside, and is not used for one that is a member, that
// has joined, or of which nobody can say.
func TestRejoin_server(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "back", 3)
	token := newToken(t, c.servers[0], join.RoleServer)
	c.stops[2]()
	wantSaid(t, c.with(2, token), "this server is a member of etcd")
	seated(t, 3, c.servers...)
	c.removeHost(0, 2)
	c.standby(2)
	c.stops[2]()
	_, err := control.OpenAgent(t.Context(), control.AgentConfig{DataDir: c.configs[2].DataDir, JoinToken: token})
	wantError(t, err, "holdfast server --join TOKEN")
	kept := filepath.Join(c.configs[2].DataDir, "ceph", "osd-0")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, c.with(2, token), "joining again")
	c.heard(0, 2, metav1.ConditionTrue)
	c.joined(0, 2)
	seated(t, 3, c.servers...)
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what a daemon had: %v", err)
	}
	c.stops[2]()
	c.stops[1]()
	c.stops[0]()
	c.configs[2].JoinToken = token
	log := &safeBuffer{}
	c.configs[2].Log = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := timeoutOf(15 * time.Second)
	defer cancel()
	if _, err := control.Start(ctx, c.configs[2]); err == nil {
		t.Error("one of three is ready")
	}
	wantSaid(t, log.String(), "no other server can confirm that this one was removed")
}

// TestRejoin_serverAsks: a server that was removed joins again though none of the others can say so at first, as amid an election.
func TestRejoin_serverAsks(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "asks", 2)
	c.removeHost(0, 1)
	config, log := c.configs[1], &safeBuffer{}
	config.JoinToken, config.AskRemoved, config.Log = newToken(t, c.servers[0], join.RoleServer), time.Hour, slog.New(slog.NewTextHandler(log, nil))
	c.stops[1]()
	c.stops[0]()
	type started struct {
		*control.Server
		error
	}
	ready := make(chan started)
	ctx := timeout(t)
	go func() {
		s, err := control.Start(ctx, config)
		ready <- started{s, err}
	}()
	eventually(t, func() error {
		if !strings.Contains(log.String(), "asking again") {
			return errors.New("it asks nobody again")
		}
		return nil
	})
	c.start(0)
	got := <-ready
	if got.error != nil {
		t.Fatal(got.error)
	}
	t.Cleanup(got.Stop)
	c.servers[1] = got.Server
	wantSaid(t, log.String(), "joining again")
	c.joined(0, 1)
}

// TestRejoin_serverCut cuts off a server that joins again before each effect on its files: the same start, done again, brings it back, and
// without the token it says what to do.
func TestRejoin_serverCut(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "cut", 2)
	for cuts := 0; ; cuts++ {
		c.removeHost(0, 1)
		c.stops[1]()
		token := newToken(t, c.servers[0], join.RoleServer)
		config := c.configs[1]
		config.JoinToken = token
		restore := atomicfile.Cut(config.DataDir, cuts)
		s, err := control.Start(timeout(t), config)
		if err == nil {
			s.Stop()
		}
		restore()
		if err != nil && !errors.Is(err, atomicfile.ErrCut) {
			t.Fatalf("cut before effect %d: %v", cuts, err)
		}
		text := c.with(1, token)
		c.joined(0, 1)
		if err == nil {
			wantSaid(t, text, "this server has joined already")
			if cuts < 5 {
				t.Errorf("it was cut %d times", cuts)
			}
			return
		}
	}
}

// TestRejoin_refused: a token that is of no use leaves a server that says so, and joins with a good one.
func TestRejoin_refused(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "used", 2)
	c.removeHost(0, 1)
	c.stops[1]()
	config := c.configs[1]
	config.JoinToken = newToken(t, c.servers[0], join.RoleAgent)
	_, err := control.Start(timeout(t), config)
	wantError(t, err, "holdfast token create --role server")
	config.JoinToken = ""
	_, err = control.Start(timeout(t), config)
	wantError(t, err, "did not finish joining again after its host was removed")
	c.with(1, newToken(t, c.servers[0], join.RoleServer))
	c.joined(0, 1)
}

// TestRejoin_another: the token of another control plane is refused also when an earlier one was of no use.
func TestRejoin_another(t *testing.T) {
	t.Parallel()
	c, others := newCrew(t, "mine", 2), newCrew(t, "theirs", 1)
	c.removeHost(0, 1)
	c.stops[1]()
	config := c.configs[1]
	config.JoinToken = newToken(t, c.servers[0], join.RoleAgent)
	_, err := control.Start(timeout(t), config)
	wantError(t, err, "holdfast token create --role server")
	config.JoinToken = newToken(t, others.servers[0], join.RoleServer)
	_, err = control.Start(timeout(t), config)
	wantError(t, err, "belongs to another control plane than the token")
	c.with(1, newToken(t, c.servers[0], join.RoleServer))
	c.joined(0, 1)
}
