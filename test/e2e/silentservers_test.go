package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/situations"
)

// TestSilentServers stages why a server does not answer, and the loss of the quorum: 'holdfast
// why', other commands and kubectl name the cause and the servers.
func TestSilentServers(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	last := lab.Host(3)
	back := func(numbers ...int) {
		t.Helper()
		for _, n := range numbers {
			b.StartServer(t, n)
		}
		b.AwaitHosts(t, 3)
	}
	goOn := func(numbers ...int) {
		t.Helper()
		for _, n := range numbers {
			b.Server(n).Signal(t, syscall.SIGCONT)
		}
		b.AwaitHosts(t, 3)
	}

	b.Server(3).Kill(t)
	b.tells("server-killed", "h2", last.Name)
	back(3)

	b.Server(3).Signal(t, syscall.SIGSTOP)
	b.tells("server-hangs", "h2", last.Name)
	b.doctorSays("systemctl restart holdfast")
	goOn(3)

	last.PowerOff(t)
	b.tells("server-off", "h2", last.Name)
	b.doctorSays("host remove h3 --gone")
	last.PowerOn(t)
	back(3)

	b.Server(2).Kill(t)
	b.Server(3).Kill(t)
	for _, command := range []string{"status", "why host/h1", "get hosts"} {
		b.saysNoQuorum("servers-lost", b.Binary+" "+command)
	}
	b.saysNoQuorum("servers-lost", b.Binary+" why host/h1 -o json", `{"reason":"QuorumLost",`)
	b.kubectlSays("servers-lost-kubectl")
	back(2, 3)

	b.Server(2).Signal(t, syscall.SIGSTOP)
	b.Server(3).Signal(t, syscall.SIGSTOP)
	b.kubectlSays("servers-hang")
	goOn(2, 3)
}

// saysNoQuorum waits until a command on the first host fails, names the other servers, and has the
// next step of a situation.
func (b *bed) saysNoQuorum(situation, command string, more ...string) {
	b.Helper()
	s := situations.Get(situation)
	b.await("the words of "+situation+" by "+command, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		words := strings.Fields(command)
		out, err := b.Lab.Host(1).Try(ctx, words[0], words[1:]...)
		if err == nil {
			return fmt.Errorf("it succeeds:\n%s", out)
		}
		text := fmt.Sprint(out, err)
		for _, want := range append(more, s.Next, b.Lab.Host(2).IP, b.Lab.Host(3).IP) {
			if !strings.Contains(text, want) {
				return fmt.Errorf("it does not say %q:\n%s", want, text)
			}
		}
		b.Logf("%s: %s\n%s", situation, command, text)
		return nil
	})
}

// kubectlSays is saysNoQuorum for plain kubectl, which shows the reason.
func (b *bed) kubectlSays(situation string) {
	b.Helper()
	b.saysNoQuorum(situation, kubectl+" --kubeconfig /var/lib/holdfast/admin.kubeconfig get hosts",
		string(situations.Get(situation).Reason))
}

// doctorSays waits until 'holdfast doctor' on the first host says something.
func (b *bed) doctorSays(want string) {
	b.Helper()
	b.await("the word of doctor", func() error {
		out, err := b.Holdfast("doctor")
		if !strings.Contains(fmt.Sprint(out, err), want) {
			return fmt.Errorf("it does not say %q:\n%s", want, out)
		}
		b.Logf("%s", out)
		return nil
	})
}
