package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func host(name string, devices ...api.Device) api.Host {
	n := "1"
	if name == "h0" {
		n = "100"
	}
	return api.Host{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name, "rack": "r1"}},
		Status:     api.HostStatus{Addresses: []string{"192.168.0." + n, "10.0.0." + n}, BootID: "b", Devices: devices},
	}
}

func disk(id, path string) api.Device {
	return api.Device{ID: id, Path: path, Availability: api.DeviceAvailable}
}

func node(name string, edit ...func(*api.StorageNode)) api.StorageNode {
	n := api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec: api.StorageNodeSpec{
			Type: api.StorageCeph, Cluster: "c", NodeSelector: map[string]string{api.LabelHostname: "h1"},
		},
	}
	for _, e := range edit {
		e(&n)
	}
	return n
}

func devices(names ...string) func(*api.StorageNode) {
	return func(n *api.StorageNode) { n.Spec.Devices = names }
}

func recorded(host, name, id string) func(*api.StorageNode) {
	return func(n *api.StorageNode) {
		n.Status.Host = host
		n.Status.Devices = append(n.Status.Devices, api.ClaimedDevice{Name: name, ID: id})
	}
}

func cluster(name string) api.StorageCluster {
	return api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       api.StorageClusterSpec{Type: api.StorageCeph, Ceph: &api.CephSpec{}},
	}
}

func view(hosts []api.Host, nodes ...api.StorageNode) *View {
	c := cluster("c")
	return &View{
		Cluster: &c, Hosts: hosts, Nodes: nodes,
		Claims: ClaimsOf(nodes, nil, hosts, []api.StorageCluster{c}),
	}
}

func TestResolveNodes_host(t *testing.T) {
	tests := []struct {
		name          string
		hosts         []api.Host
		node          api.StorageNode
		host, address string
		problem, wait string
	}{
		{name: "one", hosts: []api.Host{host("h0"), host("h1")}, node: node("n"), host: "h1", address: "192.168.0.1"},
		{
			name: "none", hosts: []api.Host{host("h0")}, node: node("n"),
			wait: "no host has the labels kubernetes.io/hostname=h1: check that the host has joined; did you mean kubernetes.io/hostname=h0?",
		},
		{
			name: "several", hosts: []api.Host{host("h0"), host("h1")},
			node:    node("n", func(n *api.StorageNode) { n.Spec.NodeSelector = map[string]string{"rack": "r1"} }),
			problem: "2 hosts match the labels rack=r1 (h0, h1)",
		},
		{
			name: "the first ip", hosts: []api.Host{host("h1")}, host: "h1", address: "10.0.0.1",
			node: node("n", func(n *api.StorageNode) { n.Spec.StorageNetwork.IPs = []string{"10.0.0.1", "192.168.0.1"} }),
		},
		{
			name: "an ip of another machine", hosts: []api.Host{host("h1")}, host: "h1",
			node:    node("n", func(n *api.StorageNode) { n.Spec.StorageNetwork.IPs = []string{"10.9.9.9"} }),
			problem: "10.9.9.9, which is not an address of host h1; its addresses: 192.168.0.1, 10.0.0.1",
		},
		{
			name: "moved labels", hosts: []api.Host{host("h0"), host("h1")}, node: node("n", recorded("h0", "a", "a")),
			host: "h0", address: "192.168.0.100", problem: "accepted on host h0, but its nodeSelector now selects h1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ResolveNodes(view(tt.hosts, tt.node))[0]
			if name := hostName(got.Host); name != tt.host || got.Address != tt.address {
				t.Errorf("host %q address %q, want %q %q", name, got.Address, tt.host, tt.address)
			}
			wantSentence(t, "Problems", got.Problems, tt.problem)
			wantSentence(t, "Waits", got.Waits, tt.wait)
		})
	}
}

func hostName(h *api.Host) string {
	if h == nil {
		return ""
	}
	return h.Name
}

func wantSentence(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("%s = %q, want one that contains %q", what, got, want)
	}
}

func TestResolveNodes_publicNetwork(t *testing.T) {
	v := view([]api.Host{host("h1")}, node("n"))
	v.Cluster.Spec.Network.Public = "10.0.0.0/24"
	if got := ResolveNodes(v)[0]; got.Address != "10.0.0.1" || len(got.Problems) > 0 {
		t.Errorf("address %q, problems %q", got.Address, got.Problems)
	}
	v.Cluster.Spec.Network.Public = "172.16.0.0/24"
	got := ResolveNodes(v)[0]
	wantSentence(t, "Problems", got.Problems, "host h1 has no address in the cluster's public network 172.16.0.0/24; its addresses: 192.168.0.1, 10.0.0.1")
	if got.Address != "" {
		t.Errorf("address %q, want none", got.Address)
	}
}

func TestResolveNodes_devices(t *testing.T) {
	full := api.Device{
		ID: "wwn-0x5000c500a", Path: "/dev/sdb", WWN: "5000c500a", Serial: "S1", Links: []string{"/dev/disk/by-id/ata-S1"},
	}
	part := api.Device{ID: "partuuid-1", Path: "/dev/sdb1", WWN: "5000c500a", Serial: "S1", Parent: full.ID}
	h := host("h1", full, part, disk("file-/a", "/dev/loop0"), disk("unstable-sdz", "/dev/sdz"))
	h.Status.Devices = append(h.Status.Devices,
		api.Device{ID: "m1", Serial: "SAME"}, api.Device{ID: "m2", Serial: "SAME"})
	tests := []struct {
		name    string
		node    api.StorageNode
		ids     []string
		problem string
	}{
		{name: "id", node: node("n", devices("wwn-0x5000c500a")), ids: []string{full.ID}},
		{name: "wwn", node: node("n", devices("0x5000C500A")), ids: []string{full.ID}},
		{name: "serial", node: node("n", devices("S1")), ids: []string{full.ID}},
		{name: "link", node: node("n", devices("/dev/disk/by-id/ata-S1")), ids: []string{full.ID}},
		{name: "path", node: node("n", devices("/dev/sdb1")), ids: []string{part.ID}},
		{name: "recorded", node: node("n", devices("/dev/sdb"), recorded("h1", "/dev/sdb", "file-/a")), ids: []string{"file-/a"}},
		{
			name: "recorded and gone", node: node("n", devices("/dev/sdb"), recorded("h1", "/dev/sdb", "wwn-gone")),
			ids: []string{"wwn-gone"}, problem: "device /dev/sdb (wwn-gone) is missing on host h1",
		},
		{name: "nothing", node: node("n", devices("/dev/sdq")), ids: []string{""}, problem: "no device of host h1 matches"},
		{name: "ambiguous", node: node("n", devices("SAME")), ids: []string{""}, problem: "matches 2 devices of host h1 (m1, m2)"},
		{name: "no identity", node: node("n", devices("/dev/sdz")), ids: []string{""}, problem: "no persistent id"},
		{
			name: "twins", node: node("n", devices("S1", "/dev/sdb")), ids: []string{full.ID, full.ID},
			problem: "device /dev/sdb is the same device as S1 (wwn-0x5000c500a)",
		},
		{
			name: "a recorded twin keeps it", node: node("n", devices("S1", "/dev/sdb"), recorded("h1", "/dev/sdb", full.ID)),
			ids: []string{full.ID, full.ID}, problem: "device S1 is the same device as /dev/sdb",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ResolveNodes(view([]api.Host{h}, tt.node))[0]
			var ids, problems []string
			for _, d := range got.Devices {
				ids = append(ids, d.ID)
				if d.Problem != "" {
					problems = append(problems, d.Problem)
				}
			}
			if diff := cmp.Diff(tt.ids, ids); diff != "" {
				t.Error(diff)
			}
			wantSentence(t, "device problems", problems, tt.problem)
		})
	}
}

func TestResolveNodes_waitsForInventory(t *testing.T) {
	h := host("h1")
	h.Status = api.HostStatus{}
	got := ResolveNodes(view([]api.Host{h}, node("n", devices("/dev/sdb"))))[0]
	if len(got.Problems) > 0 || got.Devices[0].Problem != "" {
		t.Errorf("problems %q %q, want none", got.Problems, got.Devices[0].Problem)
	}
	wantSentence(t, "Waits", got.Waits, "has not reported its devices yet")
}

func TestResolveNodes_claims(t *testing.T) {
	part := disk("p1", "/dev/sdb1")
	part.Parent = "d1"
	hosts := []api.Host{host("h1", disk("d1", "/dev/sdb"), part)}
	clusters := []api.StorageCluster{cluster("c"), cluster("other")}
	rival := node("rival", devices("d1"), func(n *api.StorageNode) { n.Spec.Cluster = "other" })
	older := func(n *api.StorageNode) { n.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour)) }
	daemon := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other-osd-0"},
		Spec:       api.DaemonSpec{Cluster: "other", Host: "h1", Devices: []api.DaemonDevice{{Name: "block", ID: "d1"}}},
	}
	divides := func(cluster string) []api.Daemon {
		d := daemon
		d.Spec.Cluster, d.Spec.Devices = cluster, []api.DaemonDevice{{Name: "block", ID: "p0", Of: "d1"}, {Name: "block.db", ID: "p2", Of: "d1"}}
		return []api.Daemon{d}
	}
	with := func(n api.StorageNode, edit ...func(*api.StorageNode)) api.StorageNode {
		for _, e := range edit {
			e(&n)
		}
		return n
	}
	tests := []struct {
		name        string
		mine, rival api.StorageNode
		daemons     []api.Daemon
		problem     string
	}{
		{name: "equal age: by name", mine: node("n", devices("/dev/sdb")), rival: rival},
		{
			name: "older rival", mine: node("n", devices("/dev/sdb")), rival: with(rival, older),
			problem: "device /dev/sdb (d1) is claimed by node default/rival of cluster default/other",
		},
		{
			name: "older rival, recorded claim", mine: node("n", devices("/dev/sdb"), recorded("h1", "/dev/sdb", "d1")),
			rival: with(rival, older),
		},
		{
			name: "recorded rival", mine: node("n", devices("/dev/sdb"), older), rival: with(rival, recorded("h1", "d1", "d1")),
			problem: "is claimed by node default/rival",
		},
		{
			name: "a daemon without a node", mine: node("n", devices("d1")), rival: node("elsewhere"), daemons: []api.Daemon{daemon},
			problem: "is claimed by daemon other-osd-0 of cluster default/other",
		},
		{
			name: "a disk that a daemon is to have parts of", mine: node("n", devices("d1")), daemons: divides("other"),
			problem: "device d1 (d1) is claimed by daemon other-osd-0 of cluster default/other",
		},
		{name: "by its own cluster", mine: node("n", devices("d1")), daemons: divides("c")},
		{
			name: "a partition of such a disk", mine: node("n", devices("p1")), daemons: divides("other"),
			problem: "device p1 (p1) is claimed by daemon other-osd-0 of cluster default/other",
		},
		{name: "of a disk that a daemon has all of", mine: node("n", devices("p1")), daemons: []api.Daemon{daemon}, problem: "is claimed by daemon other-osd-0"},
		{name: "that was accepted", mine: node("n", devices("p1"), recorded("h1", "p1", "p1")), daemons: divides("other")},
		{name: "in its own cluster", mine: node("n", devices("p1")), daemons: divides("c")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := view(hosts, tt.mine)
			v.Claims = ClaimsOf([]api.StorageNode{tt.rival, tt.mine}, pointers(tt.daemons), hosts, clusters)
			var problems []string
			if p := ResolveNodes(v)[0].Devices[0].Problem; p != "" {
				problems = []string{p}
			}
			wantSentence(t, "problems", problems, tt.problem)
		})
	}
}

func TestClusterOf(t *testing.T) {
	one, two := []api.StorageCluster{cluster("c")}, []api.StorageCluster{cluster("c"), cluster("d")}
	anonymous := node("n", func(n *api.StorageNode) { n.Spec.Cluster = "" })
	named := node("n", func(n *api.StorageNode) { n.Spec.Cluster = "d" })
	for _, tt := range []struct {
		name     string
		node     api.StorageNode
		clusters []api.StorageCluster
		want     string
	}{
		{"only one", anonymous, one, "c"},
		{"ambiguous", anonymous, two, ""},
		{"named", named, two, "d"},
		{"named, not there", named, one, ""},
	} {
		if got := ClusterOf(&tt.node, tt.clusters); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNodeStatusFor(t *testing.T) {
	hosts := []api.Host{host("h1", disk("d1", "/dev/sdb"), disk("d2", "/dev/sdc"))}
	n := node("n", devices("/dev/sdb", "/dev/sdc"))
	n.Generation = 3
	r := ResolveNodes(view(hosts, n))[0]
	r.Devices[1].Problem = "device /dev/sdc has data on it"
	n.Status = NodeStatusFor(r, []string{"device /dev/sdc has data on it"}, epoch.Add(time.Millisecond))
	want := api.StorageNodeStatus{
		ObservedGeneration: 3, Host: "h1", Devices: []api.ClaimedDevice{{Name: "/dev/sdb", ID: "d1"}},
		Conditions: []metav1.Condition{{
			Type: api.NodeAccepted, Status: metav1.ConditionFalse, Reason: ReasonRefused, ObservedGeneration: 3,
			LastTransitionTime: metav1.NewTime(epoch), Message: "device /dev/sdc has data on it",
		}},
	}
	if diff := cmp.Diff(want, n.Status); diff != "" {
		t.Fatal(diff)
	}

	r = ResolveNodes(view(hosts, n))[0]
	again := NodeStatusFor(r, []string{"device /dev/sdc has data on it"}, epoch.Add(time.Hour))
	again.Devices = again.Devices[:1]
	if diff := cmp.Diff(n.Status, again); diff != "" {
		t.Errorf("nothing changed, and the status did:\n%s", diff)
	}
	if got := NodeStatusFor(r, nil, epoch.Add(time.Hour)); got.Conditions[0].Status != metav1.ConditionTrue ||
		len(got.Devices) != 2 || !got.Conditions[0].LastTransitionTime.Time.Equal(epoch.Add(time.Hour)) {
		t.Errorf("accepted now, got %+v", got)
	}
}
