package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// maxLeftAlone is of how many disks a plan says one by one why a group does not take them, and maxCandidates a bound of the schema.
	maxLeftAlone  = 32
	maxCandidates = 64
	maxMessage    = 1024
)

// resolveGroups finds out which disks the DriveGroups mean. Those of one host are then as a StorageNode that names them.
func (p *planner) resolveGroups() {
	groups := engine.OfKind[*api.DriveGroup](p.view.Resources)
	if len(groups) == 0 {
		return
	}
	p.groups = drives.Decide(groups, p.view.Hosts, &drives.Env{Claimed: p.claimedBy(), Partition: p.partitionOf, Share: p.shareOf, Leaving: p.leavingPartitions()})
	view := *p.view
	var of []*drives.Outcome
	view.Nodes = nil
	for _, o := range p.groups {
		p.tellGroup(o)
		for _, n := range p.nodesOf(o) {
			view.Nodes, of = append(view.Nodes, n), append(of, o)
		}
	}
	for i, r := range engine.ResolveNodes(&view) {
		n := p.addNode(r)
		n.group = of[i]
		p.foreseeShares(n)
		tellEach(p, api.VerdictRefuse, api.ReasonNodeUnusable, n.object(), slices.Concat(r.Problems, n.problems))
		tellEach(p, api.VerdictWait, api.ReasonNotReady, n.object(), r.Waits)
		p.tellUnheard(n)
	}
}

// claimedBy tells who claims a disk beside the groups. With a disk, other clusters' daemons have all partitions of it.
func (p *planner) claimedBy() func(drives.Place) string {
	by, foreign := map[drives.Place]string{}, map[drives.Place]string{}
	for _, c := range p.view.Claims {
		at := drives.Place{Host: c.Host, ID: c.DeviceID}
		who := "StorageNode " + c.Node.String()
		if c.Daemon != "" {
			who = "daemon " + c.Daemon + " of cluster " + c.Cluster.String()
		}
		by[at] = cmp.Or(by[at], who)
		if c.Daemon != "" && (c.Cluster.Name != p.cluster.Name || c.Cluster.Namespace != p.cluster.Namespace) {
			foreign[at] = cmp.Or(foreign[at], who)
		}
	}
	return func(at drives.Place) string {
		if by[at] != "" || len(foreign) == 0 {
			return by[at]
		}
		return foreign[drives.Place{Host: at.Host, ID: p.diskOf(at)}]
	}
}

// diskOf is the disk that a partition lies on; empty for any other device.
func (p *planner) diskOf(at drives.Place) string {
	h := p.hosts[at.Host]
	if h == nil {
		return ""
	}
	i := slices.IndexFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == at.ID })
	if i < 0 {
		return ""
	}
	return h.Status.Devices[i].Parent
}

// nodesOf are StorageNodes that name the disks of a group, one for each host.
func (p *planner) nodesOf(o *drives.Outcome) []api.StorageNode {
	var nodes []api.StorageNode
	for _, d := range o.Devices {
		if len(nodes) == 0 || nodes[len(nodes)-1].Status.Host != d.Host {
			n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: o.Group.Namespace, Name: o.Group.Name, CreationTimestamp: o.Group.CreationTimestamp}}
			n.Spec.Type, n.Spec.Cluster = api.StorageCeph, p.cluster.Name
			n.Spec.NodeSelector = map[string]string{api.LabelHostname: hostnameOf(p.hosts[d.Host], d.Host)}
			n.Status.Host = d.Host
			nodes = append(nodes, n)
		}
		n := &nodes[len(nodes)-1]
		n.Spec.Devices = append(n.Spec.Devices, d.ID)
		n.Status.Devices = append(n.Status.Devices, api.ClaimedDevice{Name: d.ID, ID: d.ID})
	}
	return nodes
}

// hostnameOf is the label by which StorageNodes select a host.
func hostnameOf(h *api.Host, name string) string {
	if h != nil {
		return h.Hostname()
	}
	return name
}

// tellGroup tells what a group comes to.
func (p *planner) tellGroup(o *drives.Outcome) {
	object := engine.ResourceObject(o.Group)
	if o.Group.DeletionTimestamp != nil {
		return
	}
	tellEach(p, api.VerdictRefuse, api.ReasonInvalidSpec, object, o.Problems)
	tellEach(p, api.VerdictWait, api.ReasonNotReady, object, o.Waits)
	tellEach(p, api.VerdictDo, api.ReasonDeclared, object, o.Serves)
	tellEach(p, api.VerdictSkip, api.ReasonDeviceUnavailable, object, o.Unmatched)
	for i, text := range o.Others {
		if i == maxLeftAlone {
			p.decide(api.VerdictSkip, api.ReasonMoreToReport, object, "and %s more", words.Plural(len(o.Others)-i, "disk"))
			break
		}
		p.decide(api.VerdictSkip, api.ReasonKeptAsIs, object, "%s", text)
	}
}

// writeGroups writes down what each group has taken, before any OSD is made on it.
func (p *planner) writeGroups() {
	for _, o := range p.groups {
		if o.Group.DeletionTimestamp != nil {
			p.endGroup(o)
			continue
		}
		next := o.Group.DeepCopy()
		s := &next.Status
		if !p.plan.Refused { // else nothing is made, and what is taken is decided when something is
			s.Selection, s.Unseen, s.Devices = o.Selection, o.Unseen, o.Devices
			s.Taken, s.Waiting = int32(drives.Disks(o.Devices)), int32(len(o.Candidates))
			s.Candidates = o.Candidates[:min(len(o.Candidates), maxCandidates)]
		}
		s.State, s.Message = p.groupState(o)
		engine.Accept(next, o.Problems, p.now)
		engine.TellUnmatched(&s.Conditions, o.Unmatched, next.Generation, p.now)
		p.plan.PutResource(o.Group, next)
	}
}

// groupState says how the OSDs of a group are. A group that takes no disk is as it is declared,
// unless something about it is open.
func (p *planner) groupState(o *drives.Outcome) (api.ResourceState, string) {
	up := 0
	for _, d := range o.Devices {
		if x := p.taken[devicePlace{d.Host, d.ID}]; x != nil && p.inMap(x) && p.seen.OSDs[x.id].Up {
			up++
		}
	}
	waits := ""
	if n := len(o.Candidates); n > 0 {
		waits = fmt.Sprintf("; %s matching that came later: to use them, list them in spec.take", words.Plural(n, "disk"))
	}
	text := fmt.Sprintf("%d of %s up%s", up, words.Plural(len(o.Devices), "OSD"), waits)
	open := slices.Concat(o.Problems, o.Waits)
	switch {
	case len(open) > 0:
		text = words.Cut(strings.Join(open, "; "), maxMessage)
	case len(o.Devices) == 0:
		text = "it has no disk" + waits
	}
	switch {
	case len(o.Devices) == 0 && (len(open) > 0 || p.plan.Refused):
		return api.ResourcePending, text
	case up == len(o.Devices):
		return api.ResourceOnline, text
	case up > 0:
		return api.ResourceDegraded, text
	}
	return api.ResourceCreating, text
}

// endGroup lets a deleted group go when no OSD is on a disk of it that no StorageNode names: a group that is deleted by mistake takes no
// data with it.
func (p *planner) endGroup(o *drives.Outcome) {
	var left []string
	for _, d := range o.Devices {
		if x := p.taken[devicePlace{d.Host, d.ID}]; x != nil && !p.going.Declared(x.place().drive()) {
			left = append(left, x.label())
		}
	}
	if len(left) == 0 {
		p.plan.Resources = append(p.plan.Resources, engine.ResourceChange{Resource: o.Group, Gone: true})
		return
	}
	text := fmt.Sprintf("deletion waits: the group still has %s; list the disks in spec.exclude to remove them, or in "+
		"StorageNodes to keep them", words.Few(left))
	p.decide(api.VerdictSkip, api.ReasonInUse, engine.ResourceObject(o.Group), "%s", text)
	next := o.Group.DeepCopy()
	next.Status.State, next.Status.Message, next.Status.ObservedGeneration = api.ResourceDeleting, words.Cut(text, maxMessage), o.Group.Generation
	next.Status.Devices, next.Status.Taken = o.Devices, int32(drives.Disks(o.Devices))
	p.plan.PutResource(o.Group, next)
}
