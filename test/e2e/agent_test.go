package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestAgentHost has a host with an agent alone join, die and come back, and lose the server that it talks to: its heartbeat
// goes on over another one.
func TestAgentHost(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	agent, token := lab.Host(4), b.Token(t, "agent")
	b.StartAgent(t, 4, token)
	b.AwaitHosts(t, 4)

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	again := agent.Command(ctx, binary, "agent", "--data-dir", "/var/lib/other", "--name", "other", "--join", "-")
	again.Stdin = strings.NewReader(token)
	if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "already used by host "+agent.Name) {
		t.Errorf("a second host with the same token: %v\n%s", err, out)
	}

	b.Server(4).Kill(t)
	last := b.beat(1, agent)
	b.StartAgent(t, 4, "")
	b.await("a heartbeat of the agent that was started again", b.beatsOn(1, agent, last))

	cut := b.serverOf(agent)
	other := cut%3 + 1
	lab.Host(cut).Cut(t)
	for range 2 { // the first one may have been on its way
		b.await("a heartbeat over another server", b.beatsOn(other, agent, b.beat(other, agent)))
	}
}

// beat is when a server saw the last heartbeat of a host; "" while the server cannot tell.
func (b *bed) beat(server int, h *hosts.Host) string {
	out, err := b.HoldfastOn(server, "get", "leases", "host-"+h.Name, "-n", "holdfast-system", "-o", "json")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(out, `"renewTime": "`)
	at, _, _ := strings.Cut(after, `"`)
	return at
}

// beatsOn returns a check of whether a host was heard again since the last time.
func (b *bed) beatsOn(server int, h *hosts.Host, last string) func() error {
	return func() error {
		if now := b.beat(server, h); now == "" || now == last {
			return fmt.Errorf("the last heartbeat is of %q", now)
		}
		return nil
	}
}

// serverOf is the number of the host whose server an agent is connected to.
func (b *bed) serverOf(agent *hosts.Host) int {
	b.Helper()
	number := 0
	b.await("a connection of the agent", func() error {
		out, err := agent.Try(context.Background(), "ss", "-Htn", "state", "established", "( dport = :7440 )")
		for n, h := range b.Lab.Hosts() {
			if strings.Contains(out, h.IP+":7440") {
				number = n + 1
			}
		}
		if err == nil && number == 0 {
			err = fmt.Errorf("it has none:\n%s", out)
		}
		return err
	})
	return number
}
