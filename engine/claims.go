package engine

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/devicename"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
)

// ClusterOf returns the name of the StorageCluster that a StorageNode belongs to: the one that it names, else the one
// cluster of its type in its namespace. It is empty when there is none or more than one.
func ClusterOf(node *api.StorageNode, clusters []api.StorageCluster) string {
	only, named := "", node.ClusterName()
	for i := range clusters {
		c := &clusters[i]
		if c.Namespace != node.Namespace || c.Spec.Type != node.Spec.Type {
			continue
		}
		if named == c.Name {
			return c.Name
		}
		if named != "" {
			continue
		}
		if only != "" {
			return ""
		}
		only = c.Name
	}
	return only
}

// ClaimsOf lists who claims which device, by these StorageNodes and Daemons, with all Hosts and StorageClusters that there are.
// It is pure, and its result is sorted.
//
// Claims that stand only in a node's spec are listed too: two clusters that are declared at the same moment and name the
// same device then see each other before either records it, and both find the same winner. A Daemon claims its devices for
// itself, so that a device stays claimed when its StorageNode is deleted and the daemon still uses it, and the disks of which they are parts.
func ClaimsOf(nodes []api.StorageNode, daemons []*api.Daemon, hosts []api.Host, clusters []api.StorageCluster) []Claim {
	claims := make([]Claim, 0, 2*len(daemons)) // about
	index := newHostIndex(hosts)
	for i := range nodes {
		claims = append(claims, nodeClaims(&nodes[i], index, ClusterOf(&nodes[i], clusters))...)
	}
	for _, d := range daemons {
		claims = append(claims, daemonClaims(d, key(d.Namespace, d.Spec.Cluster))...)
	}
	slices.SortFunc(claims, compareClaims)
	return claims
}

// daemonClaims are those of a daemon. With a part of a disk it claims the disk, too: until the first part is made, nothing else shows that it is taken.
func daemonClaims(d *api.Daemon, cluster types.NamespacedName) []Claim {
	claims := make([]Claim, 0, 2*len(d.Spec.Devices))
	for _, device := range d.Spec.Devices {
		for _, id := range []string{device.ID, device.Of} {
			if id != "" {
				claims = append(claims, Claim{Host: d.Spec.Host, DeviceID: id, Daemon: d.Name, Cluster: cluster, Recorded: true, Since: d.CreationTimestamp.Time})
			}
		}
	}
	return claims
}

func nodeClaims(node *api.StorageNode, hosts *hostIndex, cluster string) []Claim {
	claim := Claim{Node: key(node.Namespace, node.Name), Since: node.CreationTimestamp.Time}
	if cluster != "" {
		claim.Cluster = key(node.Namespace, cluster)
	}
	var claims []Claim
	add := func(host, id string, recorded bool) {
		c := claim
		c.Host, c.DeviceID, c.Recorded = host, id, recorded
		claims = append(claims, c)
	}
	out := exclusions.Of(node, hosts.named[node.Status.Host])
	for _, d := range node.Status.Devices {
		if out.Excluded(d.ID) && cluster != "" {
			continue // it counts as if it were not named; a device of spec.replace is kept from others
		}
		add(node.Status.Host, d.ID, true)
		claims[len(claims)-1].Dropped = out.Has(d.ID) || !slices.Contains(node.Spec.Devices, d.Name)
	}
	// A node that belongs to no cluster will not be accepted: what it only asks for, it does not hold up for others.
	if cluster == "" {
		return claims
	}
	r := ResolvedNode{Node: node}
	r.resolveHost(hosts)
	if r.Host == nil {
		return claims
	}
	out = exclusions.Of(node, r.Host)
	for _, name := range node.Spec.Devices {
		if recordedID(node, name) != "" || out.Leaves(name) {
			continue
		}
		if found := devicename.Match(r.Host.Status.Devices, name); len(found) == 1 {
			add(r.Host.Name, found[0].ID, false)
		}
	}
	return claims
}

func compareClaims(a, b Claim) int {
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	if c := strings.Compare(a.DeviceID, b.DeviceID); c != 0 {
		return c
	}
	return compareRights(a, b)
}

// compareRights orders claims to one device, the one that holds first.
func compareRights(a, b Claim) int {
	switch {
	case a.Recorded && !b.Recorded:
		return -1
	case b.Recorded && !a.Recorded:
		return 1
	}
	return cmp.Or(
		a.Since.Compare(b.Since),
		compareKeys(a.Node, b.Node),
		strings.Compare(a.Daemon, b.Daemon),
	)
}

func (c *Claim) owner() string {
	if c.Daemon != "" {
		return "daemon " + c.Daemon + " of cluster " + c.Cluster.String()
	}
	if c.Cluster.Name == "" {
		return "node " + c.Node.String()
	}
	return "node " + c.Node.String() + " of cluster " + c.Cluster.String()
}

type deviceKey struct{ host, id string }

// claimIndex finds the claims to a device.
type claimIndex map[deviceKey][]*Claim

func newClaimIndex(claims []Claim) claimIndex {
	index := make(claimIndex, len(claims))
	for i := range claims {
		k := deviceKey{claims[i].Host, claims[i].DeviceID}
		index[k] = append(index[k], &claims[i])
	}
	return index
}

// stronger returns a claim of something else that goes before own, or nil. A daemon of the node's own cluster does not
// stand against the node: it is the node's. Another cluster's that has the disk of a partition does, unless the partition is recorded.
func (x claimIndex) stronger(own Claim, disk string, cluster types.NamespacedName) *Claim {
	for _, c := range x[deviceKey{own.Host, own.DeviceID}] {
		switch {
		case c.Daemon != "" && c.Cluster == cluster:
		case c.Daemon != "":
			return c
		case c.Node != own.Node && compareRights(*c, own) < 0:
			return c
		}
	}
	if disk == "" || own.Recorded {
		return nil
	}
	for _, c := range x[deviceKey{own.Host, disk}] {
		if c.Daemon != "" && c.Cluster != cluster {
			return c
		}
	}
	return nil
}
