package torus

import (
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Foresee returns what the nodes will report when all comes out well: blocks that have to move have moved, and copies are made.
func (Driver) Foresee(before, after *engine.View, commands []engine.Command) any {
	seen, _ := before.System.(*Observation)
	f := &foresight{hosts: after.HostsByName(), reports: map[string]*torus.Report{}, cluster: wordOf(seen)}
	for i := range after.Daemons {
		if d := &after.Daemons[i]; d.Spec.Type == torus.TypeTorusd {
			f.report(seen, d)
		}
	}
	if len(f.reports) == 0 {
		return before.System
	}
	for _, c := range commands {
		f.perform(c)
	}
	f.settle()
	return &Observation{Reports: f.reports}
}

// foresight is a Torus that does as it is told.
type foresight struct {
	hosts   map[string]*api.Host
	reports map[string]*torus.Report
	cluster *torus.Cluster
	daemons []*api.Daemon // those with a report
}

// byDefault is how many copies Torus keeps of each block before it is told otherwise.
const byDefault = 2

// wordOf is what was said of the cluster last, copied; of one that is new it is what 'torusctl init' makes.
func wordOf(seen *Observation) *torus.Cluster {
	if seen != nil {
		for _, r := range seen.Reports {
			if r.Cluster != nil {
				c := *r.Cluster
				c.Peers, c.Volumes, c.Moving, c.Back = slices.Clone(c.Peers), slices.Clone(c.Volumes), false, nil
				return &c
			}
		}
	}
	return &torus.Cluster{Replication: byDefault}
}

// report is what the agent of a daemon will tell of its peer, before the cluster's state is added.
func (f *foresight) report(seen *Observation, d *api.Daemon) {
	r := &torus.Report{UUID: "of:" + d.Name} // which one it will be, nobody knows yet
	switch {
	case seen != nil && seen.Reports[d.Name] != nil:
		r.UUID, r.Generation = seen.Reports[d.Name].UUID, seen.Reports[d.Name].Generation
		r.Started, r.Settled = torus.StartText(d.Status.Started), true
	case d.Status.State != api.DaemonRunning:
		return
	}
	if f.heard(d) && d.Status.State == api.DaemonRunning {
		r.Generation = d.Generation
	}
	f.reports[d.Name], f.daemons = r, append(f.daemons, d)
}

func (f *foresight) heard(d *api.Daemon) bool {
	h := f.hosts[d.Spec.Host]
	return h != nil && h.AgentHeard()
}

func (f *foresight) perform(c engine.Command) {
	switch c.Verb {
	case torus.VerbPeerAdd, torus.VerbPeerRemove:
		for uuid := range strings.FieldsSeq(c.Object) {
			if x := f.cluster.Peer(uuid); x != nil {
				x.State, x.Used = map[bool]torus.PeerState{true: torus.PeerOK, false: torus.PeerAvail}[c.Verb == torus.VerbPeerAdd], 0
			}
		}
	case torus.VerbPeerForce:
		f.cluster.Peers = slices.DeleteFunc(f.cluster.Peers, func(x torus.Peer) bool { return slices.Contains(strings.Fields(c.Object), x.UUID) })
	case torus.VerbReplication:
		if n, err := strconv.Atoi(c.Object); err == nil {
			f.cluster.Replication = n
		}
	case torus.VerbCreate:
		if bytes, err := strconv.ParseInt(c.Params[torus.ParamBytes], 10, 64); err == nil {
			f.cluster.Volumes = append(f.cluster.Volumes, torus.Volume{Name: c.Object, Size: torus.SizeText(bytes)})
		}
	case torus.VerbDelete:
		f.cluster.Volumes = slices.DeleteFunc(f.cluster.Volumes, func(v torus.Volume) bool { return v.Name == c.Object })
	}
}

// settle has Torus hear the peers that run, and tell so to whoever is asked for the cluster. Of a peer whose agent is silent its last
// word counts, and one whose daemon is gone is heard no more.
func (f *foresight) settle() {
	var peers []torus.Peer
	for _, x := range f.cluster.Peers {
		d := f.daemonOf(x.UUID)
		if d == nil && x.State == torus.PeerAvail {
			continue
		}
		if d == nil || f.heard(d) && d.Status.State != api.DaemonRunning {
			x = torus.Peer{UUID: x.UUID, State: torus.PeerDown}
		}
		peers = append(peers, x)
	}
	for _, d := range f.daemons {
		r := f.reports[d.Name]
		i := slices.IndexFunc(peers, func(x torus.Peer) bool { return x.UUID == r.UUID })
		switch up := f.heard(d) && d.Status.State == api.DaemonRunning; {
		case up && i < 0:
			peers = append(peers, torus.Peer{Address: d.Spec.Parameters[torus.ParamPeer], UUID: r.UUID, State: torus.PeerAvail})
		case up && peers[i].State == torus.PeerDown:
			peers[i].Address, peers[i].State = d.Spec.Parameters[torus.ParamPeer], torus.PeerOK
		}
		if d.Spec.Parameters[torus.ParamReport] == torus.DepthCluster && d.Status.State == api.DaemonRunning {
			r.Cluster = f.cluster
		}
	}
	slices.SortFunc(peers, func(a, b torus.Peer) int { return strings.Compare(a.UUID, b.UUID) })
	f.cluster.Peers = peers
}

func (f *foresight) daemonOf(uuid string) *api.Daemon {
	for _, d := range f.daemons {
		if f.reports[d.Name].UUID == uuid {
			return d
		}
	}
	return nil
}
