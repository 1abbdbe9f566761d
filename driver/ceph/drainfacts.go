package ceph

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// DrainFacts are what has to be known to move data off OSDs. They are asked for only while an OSD
// is to leave.
type DrainFacts struct {
	// Safe are the OSDs that Ceph calls safe to destroy.
	Safe map[int]bool
	// Rules are the CRUSH rules by their numbers, and Places where CRUSH has the OSDs.
	Rules  map[int]Rule
	Places map[int]Place
	// Usage is the space of the OSDs, and Stored that of the pools with all copies, by their names,
	// in bytes.
	Usage  map[int]Usage
	Stored map[string]int64
	// Buckets counts the children of CRUSH's hosts, by their names.
	Buckets map[string]int
}

// Usage is the space of an OSD, in KiB.
type Usage struct{ Total, Used int64 }

// departures tell which OSDs are not to stay: those of hosts that are drained or gone, and those
// whose device no StorageNode of the cluster names any more.
type departures struct {
	hosts map[string]*api.Host
	named map[devicePlace]bool
	// declared are those of them that StorageNodes name.
	declared map[devicePlace]bool
	// vague names, by its host, a node of which it is not plain what each entry means; by no host,
	// one that may mean any.
	vague map[string]string
	// nobodys are the hosts with devices of nodes that could be of several clusters.
	nobodys map[string]bool
}

// departuresOf goes by the claims, which a node has to what its spec names. While nobody can tell
// whose a node is, or what it means by another entry, which may be the same device by a new name,
// the OSD stays.
func departuresOf(view *engine.View) departures {
	x := departures{hosts: view.HostsByName(), named: map[devicePlace]bool{}, declared: map[devicePlace]bool{}, vague: map[string]string{}, nobodys: map[string]bool{}}
	ours, fresh := types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}, map[types.NamespacedName]int{}
	for i := range view.Claims {
		c := &view.Claims[i]
		if c.Node.Name == "" || c.Node.Namespace != view.Cluster.Namespace {
			continue
		}
		if !c.Recorded {
			fresh[c.Node]++
		}
		if c.Cluster.Name == "" {
			x.nobodys[c.Host] = true
		}
		if c.Cluster.Name == "" || c.Cluster == ours && !c.Dropped {
			x.named[devicePlace{c.Host, c.DeviceID}] = true
		}
	}
	maps.Copy(x.declared, x.named)
	for _, g := range engine.OfKind[*api.DriveGroup](view.Resources) {
		for _, d := range g.Status.Devices {
			if at := (drives.Place{Host: d.Host, ID: d.ID}); drives.Holds(g, at) {
				x.named[devicePlace{d.Host, d.ID}] = true
			}
		}
	}
	for i := range view.Nodes {
		n := &view.Nodes[i]
		if unrecorded(n) > fresh[types.NamespacedName{Namespace: n.Namespace, Name: n.Name}] {
			x.vague[onlyHost(n, x.hosts)] = n.Name
		}
	}
	return x
}

// onlyHost is the one host that a node can mean, whether or not it is there: the one that it was
// accepted on, or that it names by its label, which in Kubernetes may differ from its name. Other
// labels are moved and given, so a node that asks for these alone, and whose host is not known, may
// mean any: then it is empty.
func onlyHost(n *api.StorageNode, hosts map[string]*api.Host) string {
	label := n.Spec.NodeSelector[api.LabelHostname]
	if n.Status.Host != "" || label == "" {
		return n.Status.Host
	}
	for name, h := range hosts {
		if h.Hostname() == label {
			return name
		}
	}
	return label
}

// unrecorded counts the entries of which the node's status does not say what they mean.
func unrecorded(n *api.StorageNode) (count int) {
	for _, name := range n.Spec.Devices {
		if !slices.ContainsFunc(n.Status.Devices, func(d api.ClaimedDevice) bool { return d.Name == name }) {
			count++
		}
	}
	return count
}

// host says whether a host is not to keep any OSDs: it is drained, or its Host is gone.
func (x departures) host(name string) bool {
	h := x.hosts[name]
	return h == nil || h.ModeOf() == api.HostDrain
}

// place says whether the OSD on a device of a host is not to stay.
func (x departures) place(at devicePlace) bool { return x.host(at.host) || x.withdrawn(at) }

// withdrawn says whether a device was taken from the cluster.
func (x departures) withdrawn(at devicePlace) bool { return x.unnamed(at) && x.heldUpBy(at.host) == "" }

// unnamed says whether no node names a device as far as can be told.
func (x departures) unnamed(at devicePlace) bool { return at.device != "" && !x.named[at] }

// heldUpBy is a node that may mean devices of a host; empty when there is none.
func (x departures) heldUpBy(host string) string { return cmp.Or(x.vague[host], x.vague[""]) }

// placeOf is what the Daemon of an OSD lies on.
func placeOf(d *api.Daemon) devicePlace {
	at := devicePlace{host: d.Spec.Host}
	for _, device := range d.Spec.Devices {
		if device.Name == DeviceBlock {
			at.device = device.ID
		}
	}
	return at
}

// fillDrain asks for the facts where an OSD is to leave. What is not known stays out, and is waited
// for.
func (c *conn) fillDrain(ctx context.Context, view *engine.View, o *Observation) error {
	going := departuresOf(view)
	needed := len(orphans(view, o)) > 0 || slices.ContainsFunc(view.Hosts, func(h api.Host) bool { return h.ModeOf() == api.HostDrain })
	var leaving []string
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if d.Spec.Type != TypeOSD || !drains(d) && !going.place(placeOf(d)) {
			continue
		}
		needed = true
		if drains(d) {
			leaving = append(leaving, d.Spec.ID)
		}
	}
	if !needed {
		return nil
	}
	o.Drain = &DrainFacts{Safe: map[int]bool{}, Usage: map[int]Usage{}, Stored: map[string]int64{}}
	for _, fill := range []func(context.Context, *DrainFacts) error{c.fillUsage, c.fillStored, c.fillPlaces} {
		if err := fill(ctx, o.Drain); err != nil {
			return err
		}
	}
	leaving = slices.DeleteFunc(leaving, func(id string) bool { return !o.weightless(id) })
	if len(leaving) > 0 && c.mgrIgnorance(ctx, o) == "" {
		c.fillSafe(ctx, leaving, o.Drain)
	}
	return nil
}

// weightless says whether CRUSH gives an OSD of Ceph's map no data.
func (o *Observation) weightless(osd string) bool {
	id, err := strconv.Atoi(osd)
	return err == nil && o.OSDs[id].UUID != "" && o.Drain.Places[id].Weight == 0
}

// fillSafe asks what may be destroyed. The answer is no error when nothing may: the lists in it
// count.
func (c *conn) fillSafe(ctx context.Context, osds []string, facts *DrainFacts) {
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	out, err := c.client.Mgr(ctx, command{"prefix": "osd safe-to-destroy", "ids": osds, "format": "json"}, nil)
	var answer struct {
		Safe []int `json:"safe_to_destroy"`
	}
	if err != nil || json.Unmarshal(out, &answer) != nil {
		return // it is asked again in the next run
	}
	for _, id := range answer.Safe {
		facts.Safe[id] = true
	}
}

// fillDestroyed finds the hosts of numbers that wait for another OSD.
func (c *conn) fillDestroyed(ctx context.Context, o *Observation) error {
	if len(o.Destroyed) == 0 {
		return nil
	}
	tree, err := c.crushTree(ctx)
	for id := range o.Destroyed {
		o.Destroyed[id] = tree.places[id].Buckets["host"]
	}
	return err
}

// fillPlaces has where the OSDs are, and the rules.
func (c *conn) fillPlaces(ctx context.Context, facts *DrainFacts) error {
	rules, err := c.crushRules(ctx)
	if err != nil {
		return err
	}
	tree, err := c.crushTree(ctx)
	facts.Rules, facts.Places, facts.Buckets = rules, tree.places, tree.children
	return err
}

func (c *conn) fillStored(ctx context.Context, facts *DrainFacts) error {
	pools, err := c.poolStats(ctx)
	for _, p := range pools {
		facts.Stored[p.Name] = p.Stats.Used
	}
	return err
}

func (c *conn) fillUsage(ctx context.Context, facts *DrainFacts) error {
	var df struct {
		Nodes []struct {
			ID   int   `json:"id"`
			KB   int64 `json:"kb"`
			Used int64 `json:"kb_used"`
		} `json:"nodes"`
	}
	err := c.ask(ctx, "osd df", &df)
	for _, n := range df.Nodes {
		facts.Usage[n.ID] = Usage{Total: n.KB, Used: n.Used}
	}
	return err
}
