package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestTwins copies the data directory of a host to another machine and starts an agent there, as with the clone of a machine. Both machines, the
// leader and the commands say so, the Host stays as it was, and it is over when a person stops one of the two.
func TestTwins(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	original, clone := lab.Host(2), lab.Host(3)
	b.StartAgent(t, 2, b.Token(t, "agent"))
	b.AwaitHosts(t, 2)
	b.await("a report of the host", func() error { return b.addressed(original) })
	if out, err := exec.Command("cp", "-a", original.Path("/var/lib/holdfast"), clone.Path("/var/lib/")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := clone.Command(context.Background(), "env", "HOLDFAST_MACHINE=another", binary, "agent")
	agent := clone.Launch(t, "clone", cmd)

	b.await("the leader to tell of two machines", func() error { return b.single(original, false) })
	for _, command := range [][]string{{"why", "host/" + original.Name}, {"doctor"}} {
		out, _ := b.HoldfastOn(1, command...) // doctor fails
		b.names(out, original, clone, "systemctl disable --now holdfast")
	}
	for _, h := range []*hosts.Host{original, clone} {
		b.await("doctor on "+h.Name+" to tell of it", func() error {
			out, err := h.Command(t.Context(), binary, "doctor").Output()
			if err == nil || !strings.Contains(string(out), "two machines run as host "+original.Name) {
				return fmt.Errorf("%w: %s", err, out)
			}
			b.names(string(out), original, clone, "systemctl disable --now holdfast")
			return nil
		})
	}
	if err := b.addressed(original); err != nil {
		t.Error(err)
	}
	agent.Stop(t, limit)
	b.await("the leader to tell that one machine is left", func() error { return b.single(original, true) })
	b.await("doctor to be content with it", func() error {
		out, _ := original.Command(t.Context(), binary, "doctor").Output()
		if !strings.Contains(string(out), "OK    machines") {
			return fmt.Errorf("it says: %s", out)
		}
		return nil
	})
}

// names checks that a text names both machines and what to do.
func (b *bed) names(text string, original, clone *hosts.Host, do string) {
	b.Helper()
	for _, want := range []string{original.IP + " (boot id ", clone.IP + " (boot id ", do} {
		if !strings.Contains(text, want) {
			b.Errorf("nothing of %q in: %s", want, text)
		}
	}
}

// addressed checks that the Host has the addresses of its machine.
func (b *bed) addressed(h *hosts.Host) error {
	host, err := read[api.Host](b, 1, "hosts", h.Name)
	if err == nil && (len(host.Status.Addresses) == 0 || host.Status.Addresses[0] != h.IP) {
		err = fmt.Errorf("host %s has the addresses %v, want %s", h.Name, host.Status.Addresses, h.IP)
	}
	return err
}

// single checks whether one machine runs as a host, by the leader's word.
func (b *bed) single(h *hosts.Host, want bool) error {
	host, err := read[api.Host](b, 1, "hosts", h.Name)
	c := meta.FindStatusCondition(host.Status.Conditions, api.HostSingleMachine)
	reason := map[bool]string{true: "OneMachine", false: "TwoMachines"}[want]
	if err == nil && (c == nil || c.Reason != reason) {
		err = fmt.Errorf("the condition is %+v, want the reason %s", c, reason)
	}
	return err
}
