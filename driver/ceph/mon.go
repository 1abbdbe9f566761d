package ceph

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The order in which the daemons of a host stop, and how long each may take. What serves resources writes to
// OSDs, and OSDs tell the mons that they leave, so the mons go last.
const (
	stopOrderService = 5
	stopOrderOSD     = 10
	stopOrderMgr     = 20
	stopOrderMon     = 30

	stopTimeoutService = 20 * time.Second // it ends what clients have asked for
	stopTimeoutOSD     = 60 * time.Second // it writes down what is in its memory
	stopTimeoutMgr     = 10 * time.Second // it keeps nothing
	stopTimeoutMon     = 30 * time.Second
)

// member is a mon of the cluster.
type member = monset.Member

// planMons keeps the mons that there are; moveMons sees to those that have to move. In a new cluster it places them, each on a
// host of its own.
func (p *planner) planMons() {
	p.readAvoided()
	count := int(p.spec.Mon.Count)
	if p.members = monset.Of(p.view.Daemons); len(p.members) > 0 {
		return
	}
	for _, d := range p.daemonsOf(TypeOSD) {
		if d.Spec.State != api.WantPrepared {
			p.decide(api.VerdictRefuse, api.ReasonQuorumAtRisk, "mons",
				"no mon is left, but OSDs are (such as %s): new mons would not know their data. Restore a mon's Daemon and its "+
					"directory", label(d))
			return
		}
	}
	if count%2 == 0 {
		p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "mons",
			"spec.ceph.mon.count is %d but must be odd: an even number tolerates no more failures than one mon less", count)
		return
	}
	places, toCome := p.places(selection.Mons(&p.spec), "mons")
	if len(places) < count {
		p.tooFewHosts(count, places, toCome)
		return
	}
	chosen := p.spread(places, nil, count)
	slices.SortFunc(chosen, func(a, b place) int { return strings.Compare(a.host, b.host) })
	p.members = placeMons(chosen)
	p.checkMons()
}

func placeMons(places []place) []member {
	members := make([]member, len(places))
	for i, at := range places {
		members[i] = member{ID: ids.Letters(i), Host: at.host, Address: at.address}
	}
	return members
}

// tooFewHosts waits where hosts are still to come, and refuses where none are.
func (p *planner) tooFewHosts(count int, places []place, toCome int) {
	names := make([]string, len(places))
	for i, at := range places {
		names[i] = at.host
	}
	have := fmt.Sprintf("%s (%s)", words.Plural(len(places), "host"), strings.Join(names, ", "))
	if len(places) == 0 {
		have = "no host"
	}
	need := fmt.Sprintf("%d mons need %d hosts, each on its own", count, count)
	if count == 1 {
		need = "a mon needs a host"
	}
	switch hosts := selection.Mons(&p.spec); {
	case hosts.SelectsNone(p.view.Hosts): // checkSelectors has said so
	case len(p.nodes) == 0 && !hosts.Given():
		p.decide(api.VerdictWait, api.ReasonInsufficientNodes, "cluster/"+p.cluster.Name,
			"the cluster has no StorageNode yet: declare StorageNodes for the machines that it may use")
	case len(places)+toCome >= count:
		p.decide(api.VerdictWait, api.ReasonNotReady, "mons", "%d of %s for the mons are usable now", len(places),
			words.Plural(count, "host"))
	case hosts.Given():
		p.decide(api.VerdictRefuse, api.ReasonInsufficientNodes, "mons",
			"%s, but %s selects %s usable now: %s%s", need, hosts.Field, have, hosts.More(),
			orLower(count, len(places)))
	case p.settling() > 0:
		p.hold = p.settling()
		p.decide(api.VerdictWait, api.ReasonSettling, "mons",
			"%d of %s for mons are declared: waiting up to 2 s for more", len(places)+toCome, words.Plural(count, "host"))
	default:
		p.decide(api.VerdictRefuse, api.ReasonInsufficientNodes, "mons",
			"%s, but the cluster has StorageNodes for %s: add %s%s", need, have,
			words.Plural(count-len(places)-toCome, "StorageNode"), orLower(count, len(places)+toCome))
	}
}

// largestOdd is the largest number of mons that n hosts can have; at least one.
func largestOdd(n int) int { return max(1, n-(n+1)%2) }

// orLower offers the number of mons that n hosts can have, where they can have any.
func orLower(count, n int) string {
	if odd := largestOdd(n); n > 0 && odd < count {
		return fmt.Sprintf(" or lower spec.ceph.mon.count to %d", odd)
	}
	return ""
}

// checkMons refuses mons that could not hear each other.
func (p *planner) checkMons() {
	for _, m := range p.members[1:] {
		if first := p.members[0]; monset.IsIPv6(m.Address) != monset.IsIPv6(first.Address) {
			p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "mons",
				"host %s has the address %s and host %s has %s, but mons use either IPv4 or IPv6: choose one by "+
					"spec.network.public", first.Host, first.Address, m.Host, m.Address)
			return
		}
	}
	for _, m := range p.members {
		for _, other := range p.view.Others {
			p.checkPort(m, other)
		}
	}
}

// portTaken says whether a daemon of another cluster listens already where a mon would.
func portTaken(at place, other *api.Daemon) bool {
	return other.Spec.Type == TypeMon && other.Spec.Host == at.host && other.Spec.Parameters[ParamAddress] == at.address
}

// checkPort refuses an address that a mon of another cluster listens on already.
func (p *planner) checkPort(m member, other *api.Daemon) {
	if !portTaken(place{m.Host, m.Address}, other) {
		return
	}
	p.decide(api.VerdictRefuse, api.ReasonConflict, "mon."+m.ID,
		"on host %s, %s of cluster %s/%s listens on %s port %s already: "+
			"use other hosts (spec.ceph.mon.hostSelector) or another network (spec.network.public)",
		m.Host, label(other), other.Namespace, other.Spec.Cluster, m.Address, monset.PortV2)
}

func (p *planner) monDaemon(m member, facts *confFacts, monmap, monHosts string) api.Daemon {
	d := p.daemon(TypeMon, m.ID, m.Host, m.Address, facts)
	d.Spec.Command = append(d.Spec.Command, "--mon-data", "${DATA}/store")
	d.Spec.Parameters[ParamMonmap], d.Spec.Parameters[ParamMonHosts] = monmap, monHosts
	memory.Set(&d, memory.MonNewest, p.newestName())
	if p.founded() {
		d.Spec.Parameters[ParamMonFounded] = "true"
	}
	if p.rejoins(p.have[d.Name]) {
		d.Spec.Parameters[ParamMonRejoin] = "true"
	}
	memory.Set(&d, memory.MonAvoid, p.avoidedText())
	absence(p, m).Note(&d, p.have[d.Name], p.now)
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderMon, metav1.Duration{Duration: stopTimeoutMon}

	seed := p.keyringFile(p.seedEntities(m)...)
	if have := p.have[d.Name]; have != nil {
		// The keyring counts when the store is made, and never again.
		for _, f := range have.Spec.Files {
			if f.Path == FileKeyring {
				seed = f
			}
		}
	}
	d.Spec.Files = append(d.Spec.Files, seed)
	return d
}

// founded says whether the mons have ever had a quorum, as far as is known.
func (p *planner) founded() bool {
	return p.reachable() && len(p.seen.Quorum) > 0 ||
		slices.ContainsFunc(p.daemonsOf(TypeMon), func(d *api.Daemon) bool { return d.Spec.Parameters[ParamMonFounded] != "" })
}

// rejoins says whether a mon may make its store anew: it cannot be started, and the others are a quorum. Until it is among them it may.
func (p *planner) rejoins(have *api.Daemon) bool {
	if have == nil || !p.reachable() || !p.isMember(have.Spec.ID) {
		return have != nil && have.Spec.Parameters[ParamMonRejoin] != ""
	}
	begun := have.Spec.Parameters[ParamMonRejoin] != "" || have.Status.State == api.DaemonFailed
	return begun && !slices.Contains(p.seen.Quorum, have.Spec.ID)
}

// seedEntities are those whose keys the store of a mon is made with: all that a new cluster begins with. A mon that joins others
// has to know the key of the mons alone, and gets everything else from them.
func (p *planner) seedEntities(m member) []string {
	if !slices.Contains(p.members, m) {
		return []string{entityMon}
	}
	entities := []string{entityMon, entityAdmin}
	for _, mgr := range p.mgrs.seats {
		entities = append(entities, p.mgrs.entityOf(mgr.id))
	}
	return entities
}
