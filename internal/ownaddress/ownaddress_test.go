package ownaddress

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// routes answers with the source address of the longest of the networks that has the target.
func routes(table map[string]string) func(context.Context, string) string {
	return func(_ context.Context, target string) string {
		host, _, _ := net.SplitHostPort(target)
		ip := netip.MustParseAddr(host)
		best, source := -1, ""
		for network, from := range table {
			if p := netip.MustParsePrefix(network); p.Contains(ip) && p.Bits() > best {
				best, source = p.Bits(), from
			}
		}
		return source
	}
}

func TestBest(t *testing.T) {
	two := map[string]string{"0.0.0.0/0": "192.168.1.5", "10.3.0.0/24": "10.3.0.5", "10.3.0.5/32": "10.3.0.5"}
	for name, c := range map[string]struct {
		routes  map[string]string
		servers []string
		want    string
	}{
		"no default route":   {map[string]string{"10.3.0.0/24": "10.3.0.5"}, []string{"10.3.0.1:7440"}, "10.3.0.5"},
		"the servers' net":   {two, []string{"10.3.0.1:7440"}, "10.3.0.5"},
		"a server's own":     {two, []string{"8.8.8.8:7440", "10.3.0.5:7440"}, "10.3.0.5"},
		"the default route":  {two, nil, "192.168.1.5"},
		"an unreachable one": {map[string]string{"10.3.0.0/24": "10.3.0.5"}, []string{"8.8.8.8:1", "10.3.0.9:1"}, "10.3.0.5"},
		"none":               {map[string]string{"10.3.0.0/24": "10.3.0.5"}, nil, ""},
	} {
		if got := (Machine{Source: routes(c.routes)}).Best(t.Context(), c.servers); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestAll has docker's bridge, whose ports lead to containers, one with a network adapter, and one
// with a VLAN.
func TestAll(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{
		"docker0/brif/veth1", "veth1/brport", "br0/brif/eth0", "eth0/device", "br1/brif/eth1.7", "eth1.7/lower_eth1", "idle",
	} {
		if err := os.MkdirAll(filepath.Join(root, "sys/class/net", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name string, running bool, ips ...string) Link {
		l := Link{Name: name, Running: running}
		for _, ip := range ips {
			l.Addresses = append(l.Addresses, netip.MustParseAddr(ip))
		}
		return l
	}
	m := Machine{Root: root, Source: routes(nil), Links: func() []Link {
		return []Link{
			link("lo", true, "127.0.0.1"), link("docker0", true, "172.17.0.1"), link("idle", false, "10.0.0.1"),
			link("br0", true, "192.168.1.5", "fe80::1"), link("br1", true, "192.168.7.5", "192.168.7.9"),
		}
	}}
	want := []string{"192.168.1.5", "192.168.7.5", "192.168.7.9", "10.0.0.1", "172.17.0.1"}
	if got := m.All(""); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if got := m.All("192.168.7.5"); len(got) != len(want) || got[0] != "192.168.7.5" {
		t.Errorf("%v", got)
	}
	for before, want := range map[string]string{
		"192.168.7.9": "192.168.7.9", "172.17.0.1": "", "10.0.0.1": "", "192.168.9.9": "",
	} {
		if got := m.Kept([]string{before, "192.168.1.5"}); got != want {
			t.Errorf("of %s is kept %q, not %q", before, got, want)
		}
	}
	if got := m.Kept(nil); got != "" {
		t.Errorf("of none is kept %s", got)
	}
	if got := m.Any(t.Context(), nil); got != "192.168.1.5" {
		t.Errorf("any is %s", got)
	}
}

// TestKernel asks the real one: a server's own address is found, and a name is not looked up.
func TestKernel(t *testing.T) {
	all := Machine{}.All("")
	if len(all) == 0 {
		t.Skip("this machine has no address")
	}
	for _, ip := range all {
		if got := (Machine{}).Best(t.Context(), []string{net.JoinHostPort(ip, "9")}); got != ip {
			t.Errorf("to itself at %s it comes from %q", ip, got)
		}
	}
	if got := kernelSource(t.Context(), "holdfast:7440"); got != "" {
		t.Errorf("a name has the source %s", got)
	}
}
