package engine

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// at gives a host other addresses.
func at(h api.Host, addresses ...string) api.Host {
	h.Status.Addresses = addresses
	return h
}

// TestAddresses: what a host says of its addresses takes none from another host, and leads nowhere where it is no address.
func TestAddresses(t *testing.T) {
	given := func(host, address string) api.Daemon {
		d := api.Daemon{Spec: api.DaemonSpec{Host: host, Parameters: map[string]string{"address": address}}}
		d.Name = "c-mon-" + host
		return d
	}
	tests := map[string]struct {
		says    []string // what h3 says
		daemons []api.Daemon
		h1, h3  []string
	}{
		"its own":             {[]string{"10.0.0.3"}, nil, []string{"10.0.0.1"}, []string{"10.0.0.3"}},
		"nothing":             {nil, nil, []string{"10.0.0.1"}, nil},
		"lines of ceph.conf":  {[]string{"10.0.0.4\n[osd.1]\nlog_file = /tmp/x\n# "}, nil, []string{"10.0.0.1"}, nil},
		"everybody and all":   {[]string{"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "fe80::1%eth0"}, nil, []string{"10.0.0.1"}, nil},
		"that of h1":          {[]string{"10.0.0.1", "10.0.0.3"}, nil, nil, []string{"10.0.0.3"}},
		"that of h1 as IPv6":  {[]string{"::ffff:10.0.0.1"}, nil, nil, nil},
		"that of a mon of h1": {[]string{"10.0.0.1"}, []api.Daemon{given("h1", "10.0.0.1")}, []string{"10.0.0.1"}, nil},
		"one twice":           {[]string{"10.0.0.3", "::ffff:10.0.0.3"}, nil, []string{"10.0.0.1"}, []string{"10.0.0.3", "10.0.0.3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := view([]api.Host{at(host("h1"), "10.0.0.1"), at(host("h3"), tt.says...)})
			v.Daemons = tt.daemons
			x := NewAddresses(v)
			if h1, h3 := x.Of(&v.Hosts[0]), x.Of(&v.Hosts[1]); !slices.Equal(h1, tt.h1) || !slices.Equal(h3, tt.h3) {
				t.Errorf("h1 has %q and h3 %q, not %q and %q", h1, h3, tt.h1, tt.h3)
			}
		})
	}
}

// TestAddresses_silent: a machine that has the address of one that is gone gets it, unless a daemon was given it.
func TestAddresses_silent(t *testing.T) {
	v := view([]api.Host{at(host("h1"), "10.0.0.1"), at(host("h3"), "10.0.0.1")})
	v.Hosts[0].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	if got := NewAddresses(v).Of(&v.Hosts[1]); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("h3 has %q", got)
	}
	for _, p := range []map[string]string{{"address": "10.0.0.1"}, {"peer": "http://10.0.0.1:40000"}} {
		v.Daemons = []api.Daemon{{Spec: api.DaemonSpec{Host: "h1", Parameters: p}}}
		x := NewAddresses(v)
		if h1, h3 := x.Of(&v.Hosts[0]), x.Of(&v.Hosts[1]); len(h1) != 1 || len(h3) != 0 {
			t.Errorf("with %v, h1 has %q and h3 %q", p, h1, h3)
		}
	}
}

// TestResolveNodes_sharedAddress: a node on a host that shares all its addresses says so, and what to do; a person's word settles it.
func TestResolveNodes_sharedAddress(t *testing.T) {
	hosts := []api.Host{at(host("h1"), "10.0.0.1"), at(host("h3"), "10.0.0.1")}
	got := ResolveNodes(view(hosts, node("n")))[0]
	if got.Address != "" || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "10.0.0.1 (h3)") {
		t.Errorf("address %q, problems %q", got.Address, got.Problems)
	}
	named := node("n", func(n *api.StorageNode) { n.Spec.StorageNetwork.IPs = []string{"10.0.0.1"} })
	if got = ResolveNodes(view(hosts, named))[0]; got.Address != "10.0.0.1" || len(got.Problems) > 0 {
		t.Errorf("address %q, problems %q", got.Address, got.Problems)
	}
}
