package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestServerAddress gives the machine of one of three servers another address: its server is started again with it, and
// is a member of etcd again.
func TestServerAddress(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	b.AwaitHosts(t, 3)
	h := lab.Host(3)
	b.await("h3 to hold a member of etcd", func() error {
		log, err := os.ReadFile(filepath.Join(h.Dir(), "logs", "holdfast.log"))
		if err == nil && !strings.Contains(string(log), "this server holds a member of etcd now") {
			err = errors.New("it does not say so")
		}
		return err
	})
	old, moved := h.IP, strings.TrimSuffix(h.IP, ".13")+".43"
	h.Run(t, t.Context(), "ip", "address", "del", old+"/24", "dev", "eth0")
	h.Run(t, t.Context(), "ip", "address", "add", moved+"/24", "dev", "eth0")
	b.Server(3).Stop(t, time.Minute)
	b.StartServer(b, 3, "--address", moved)
	b.await("it to be a member with its new address", func() error { return b.votesAt(moved) })
	b.Server(3).Stop(t, time.Minute)
	b.StartServer(b, 3)
	b.await("it to be a member after a start without --address", func() error { return b.votesAt(moved) })
	b.await("its host to be connected", func() error { return b.hostAt("h3", moved) })
}

// TestServerAddress_alone gives the machine of the only server another address. The other hosts find it when they are
// told.
func TestServerAddress_alone(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 2})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	b.StartAgent(t, 2, b.Token(t, "agent"))
	b.AwaitHosts(t, 2)
	h := lab.Host(1)
	old, moved := h.IP, strings.TrimSuffix(h.IP, ".11")+".41"
	h.Run(t, t.Context(), "ip", "address", "del", old+"/24", "dev", "eth0")
	h.Run(t, t.Context(), "ip", "address", "add", moved+"/24", "dev", "eth0")
	b.Server(1).Stop(t, time.Minute)
	b.StartServer(b, 1, "--address", moved)
	b.await("the server to serve", func() error { return b.hostAt("h1", moved) })
	b.Server(2).Stop(t, time.Minute)
	b.await("the agent to be missed", func() error {
		if b.hostAt("h2", lab.Host(2).IP) == nil {
			return errors.New("h2 is connected")
		}
		return nil
	})
	lab.Host(2).Run(t, t.Context(), "sh", "-c", "echo "+moved+":7440 > /var/lib/holdfast/host/servers")
	b.StartAgent(b, 2, "")
	b.await("the agent to find it", func() error { return b.hostAt("h2", lab.Host(2).IP) })
}

// TestHostAddress_bridge: on hosts without a default route, the bridge of a container engine does
// not become the address of a host, and not that of a server that is made without --address.
func TestHostAddress_bridge(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 2})
	for i := range 2 {
		h := lab.Host(i + 1)
		// Of hosts that share a kernel, all see the interfaces of the machine in /sys.
		h.Run(t, t.Context(), "sh", "-ec", "mount -t sysfs sysfs /mnt; mount --bind /mnt/class/net /sys/class/net; "+
			"mount --bind /mnt/devices/virtual/net /sys/devices/virtual/net")
		h.Run(t, t.Context(), "ip", "link", "add", "docker0", "type", "bridge")
		// An interface with a lower address, which runs, as that of a container does.
		h.Run(t, t.Context(), "ip", "link", "add", "veth0", "master", "docker0", "type", "veth", "peer", "name", "veth1")
		h.Run(t, t.Context(), "ip", "address", "add", fmt.Sprintf("10.0.0.%d/24", i+1), "dev", "docker0")
		for _, link := range []string{"docker0", "veth0", "veth1"} {
			h.Run(t, t.Context(), "ip", "link", "set", link, "up")
		}
		if out := h.Run(t, t.Context(), "ip", "route", "show", "default"); out != "" {
			t.Fatalf("%s has a default route: %s", h.Name, out)
		}
	}
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	b.StartAgent(t, 2, b.Token(t, "agent"))
	b.AwaitHosts(t, 2)
	for i := range 2 {
		h := lab.Host(i + 1)
		b.await(h.Name+" to report its address first", func() error { return b.hostAt(h.Name, h.IP) })
		out := h.Run(t, t.Context(), "cat", "/var/lib/holdfast/host/servers")
		if strings.TrimSpace(out) != lab.Host(1).IP+":7440" {
			t.Errorf("%s knows the servers %s", h.Name, out)
		}
	}
}

// votesAt says whether there are three members of etcd that vote and answer, and whether hosts look for a server at
// an address.
func (b *bed) votesAt(address string) error {
	q, err := b.Quorum(1)
	if err != nil {
		return err
	}
	for _, m := range q.Members {
		if !m.Voter || !m.Answers {
			return fmt.Errorf("%+v", q)
		}
	}
	servers, err := b.Lab.Host(2).Try(b.Context(), "cat", "/var/lib/holdfast/host/servers")
	if err == nil && (len(q.Members) != 3 || !strings.Contains(servers, address)) {
		err = fmt.Errorf("%+v, and h2 knows the servers %s", q, servers)
	}
	return err
}

// hostAt says whether the agent of a host is connected, and reports an address as the first one.
func (b *bed) hostAt(name, address string) error {
	h, err := read[api.Host](b, 1, "hosts", name)
	if err != nil {
		return err
	}
	if !h.AgentHeard() || len(h.Status.Addresses) == 0 || h.Status.Addresses[0] != address {
		return fmt.Errorf("%+v", h.Status.Addresses)
	}
	return nil
}
