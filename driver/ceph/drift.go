package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/drift"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/outside"
)

// planDrift has put back what others changed in Ceph, as far as it is Holdfast's own, and reports the rest.
func planDrift(p *planner) {
	checkMonNetwork(p)
	if p.seen != nil && p.seen.Refused {
		commandAlone(p, verbAdminKey, drift.Difference{Object: entityAdmin, Text: drift.AdminKey}, nil)
	}
	if !p.reachable() {
		return
	}
	stopPurged(p)
	for _, x := range drift.Compare(declaredTo(p), &p.seen.Found) {
		switch {
		case x.Remedy == drift.AwaitsWord:
			p.decide(api.VerdictWait, api.ReasonChangedOutside, x.Object, "%s", x.Text)
		case x.Remedy == drift.Reported:
			p.decide(api.VerdictSkip, api.ReasonChangedOutside, x.Object, "%s", x.Text)
		case x.Kind == drift.Place:
			putBackPlace(p, x)
		case x.Kind == drift.Key:
			commandAlone(p, verbAuthImport, x, nil)
		case x.Kind == drift.Mon:
			p.decide(api.VerdictDo, api.ReasonChangedOutside, x.Object, "%s", x.Text) // dropForgotten does it
		}
	}
}

// commandAlone has one thing put back, on which nothing else relies.
func commandAlone(p *planner, verb string, x drift.Difference, params map[string]string) {
	p.command(api.ReasonChangedOutside, verb, x.Object, params, x.Text)
	p.plan.Commands[len(p.plan.Commands)-1].Line = x.Object
	p.moving = true
}

// declaredTo is what Ceph is compared with.
func declaredTo(p *planner) *drift.Declared {
	d := &drift.Declared{
		OSD:   func(id int) *drift.OSD { return declaredOSD(p, id) },
		Keeps: func(entity string) bool { return keepsKey(p, entity) },
		Bound: func(yield func(drift.Bound) bool) { bound(p, yield) },
		Mons:  names(p.members), Monmap: p.seen.Monmap, Quorum: p.seen.Quorum,
	}
	for _, mon := range p.daemonsOf(TypeMon) {
		d.Others = append(d.Others, mon.Spec.ID)
	}
	for name, parts := range p.parting {
		if parts && p.have[name] != nil {
			d.Moving = "the removal of OSDs"
		}
	}
	return d
}

// keepsKey says whether an entity is that of a daemon that stays. The key of a new one is imported as it is
// declared.
func keepsKey(p *planner, entity string) bool {
	for _, d := range p.have {
		if entityFor(d.Spec.Type, d.Spec.ID) == entity && d.DeletionTimestamp == nil {
			registered := d.Spec.Type != TypeOSD || p.inCeph(d) // else 'osd new' brings its key
			return registered && p.hasSecret(entity) && p.now.Sub(d.CreationTimestamp.Time) > newDaemon
		}
	}
	return false
}

// newDaemon is how long after it was made the key of a daemon may still be on its way into Ceph, and slowStart
// how long an OSD may take to come up before its key is looked at.
const newDaemon, slowStart = time.Minute, 5 * time.Second

// fillKeys compares the keys of daemons that fail with those that Holdfast keeps. What is not answered is
// asked again.
func fillKeys(ctx context.Context, c *conn, view *engine.View, secrets engine.SecretReader, o *Observation) {
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	asked := 0
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if asked == fewClients || !mayLackKey(d, o, c.now()) {
			continue
		}
		asked++
		entity := entityFor(d.Spec.Type, d.Spec.ID)
		data, err := secrets.Secret(ctx, secretName(view.Cluster.Name, entity))
		if err != nil {
			continue
		}
		if state, differs := keyState(ctx, c, entity, data); differs {
			if o.Found.Keys == nil {
				o.Found.Keys = map[string]drift.KeyState{}
			}
			o.Found.Keys[entity] = state
		}
	}
}

// mayLackKey says whether a daemon does not come up, which may be for want of its key. The mons have theirs in
// their stores.
func mayLackKey(d *api.Daemon, o *Observation, now time.Time) bool {
	switch {
	case d.Spec.Type == TypeMon || told(d):
		return false
	case d.Status.State == api.DaemonBackOff:
		return true
	}
	started := d.Status.Started
	return d.Spec.Type == TypeOSD && d.Status.State == api.DaemonRunning && !osdOf(d, o.OSDs).Up && started != nil &&
		now.Sub(started.Time) > slowStart
}

// keyState asks for the key of an entity, and its capabilities.
func keyState(ctx context.Context, c *conn, entity string, own map[string][]byte) (state drift.KeyState, differs bool) {
	var found []drift.Auth
	out, err := c.client.Mon(ctx, command{"prefix": "auth get", "entity": entity, "format": "json"}, nil)
	if errors.Is(err, syscall.ENOENT) {
		return drift.KeyMissing, true
	}
	if err != nil || json.Unmarshal(out, &found) != nil || len(found) == 0 {
		return "", false
	}
	return found[0].State(string(own[secretKey]), cephx.CapsIn(string(own[secretKeyring])))
}

// declaredOSD is an OSD that is to have a place in CRUSH.
func declaredOSD(p *planner, id int) *drift.OSD {
	name := daemonName(p.cluster.Name, "osd", strconv.Itoa(id))
	for _, o := range p.osds {
		if o.id == id && p.inMap(o) && !o.leaving && !p.parting[name] && !p.unplaced[o.host] {
			x := &drift.OSD{Label: o.label(), Bucket: p.crushHome(o.host)}
			p.options.Of(sectionsOf(TypeOSD, strconv.Itoa(id))).Each(func(_, option, _ string) {
				x.Own = x.Own || slices.Contains(placeOptions, option)
			})
			return x
		}
	}
	return nil
}

func putBackPlace(p *planner, x drift.Difference) {
	id, _ := strconv.Atoi(strings.TrimPrefix(x.Object, "osd."))
	to := "root=" + poolRoot + " host=" + declaredOSD(p, id).Bucket
	commandAlone(p, verbCrushPut, x, map[string]string{x.Object: to})
}

// performCrushPut puts an OSD where it belongs. Its weight is its size in TiB, as where it puts itself there.
func performCrushPut(c *conn, ctx context.Context, r request) error { //nolint:revive // as methods of conn
	id, err := strconv.Atoi(strings.TrimPrefix(r.Object, "osd."))
	if err != nil {
		return fmt.Errorf("placing %s: %w", r.Object, err)
	}
	var df drift.Sizes
	if err := c.ask(ctx, "osd df", &df); err != nil {
		return fmt.Errorf("placing %s: %w", r.Object, err)
	}
	size, known := df.TiB(id)
	if !known {
		return fmt.Errorf("placing %s: the mgr has not reported its size yet", r.Object)
	}
	weight, to := json.RawMessage(weightText(size)), strings.Fields(r.Params[r.Object])
	return c.plain(ctx, r, command{"prefix": r.Verb, "id": id, "weight": weight, "args": to})
}

func crushPutDone(f *foresight, r request) {
	host := r.Params[r.Object]
	f.crushStarts(r.Object, host[strings.LastIndexByte(host, '=')+1:])
}

// performAdminKey puts the key of client.admin back as mon., whose key is in no database that anybody changes.
func performAdminKey(c *conn, ctx context.Context, r request) error { //nolint:revive // as methods of conn
	own, err := r.secrets.Secret(ctx, secretName(r.cluster, entityMon))
	if err != nil {
		return fmt.Errorf("putting back the key of %s: reading the key of the mons: %w", r.Object, err)
	}
	cfg := c.cfg
	cfg.Entity, cfg.Key = entityMon, string(own[secretKey])
	as := &conn{cfg: cfg, client: c.dial(cfg)}
	defer as.close()
	return as.authImport(ctx, r)
}

// dropForgotten has mons leave that Ceph's map does not have any more, so that others come in their places.
// What they know stays on their hosts: whoever changed the map may need it. The step that it returns keeps the
// rest as many as they are until the hosts are free for the others.
func dropForgotten(p *planner) (await func() bool) {
	for _, m := range slices.Clone(p.members) {
		d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]
		if len(p.seen.Quorum) == 0 || slices.Contains(p.seen.Monmap, m.ID) || len(p.members) == 1 {
			continue
		}
		p.members = slices.DeleteFunc(p.members, func(x member) bool { return x == m })
		if d != nil {
			p.leaveMon(d, drift.Removed)
			p.plan.Daemons[len(p.plan.Daemons)-1].Daemon.Spec.OnRemoval = api.DeletionRetain
		}
	}
	leaves := func(d *api.Daemon) bool { return !p.isMember(d.Spec.ID) && !slices.Contains(p.seen.Monmap, d.Spec.ID) }
	return func() bool {
		return len(p.members) < int(p.spec.Mon.Count) && slices.ContainsFunc(p.daemonsOf(TypeMon), leaves)
	}
}

// importReason is why a key is imported that Ceph does not have: it is new, or was removed.
func importReason(p *planner, entity string) api.Reason {
	if keepsKey(p, entity) {
		return api.ReasonChangedOutside
	}
	return api.ReasonDeclared
}

// registerOSDs has Ceph know the OSDs that it does not have: new ones, and those that somebody purged.
func registerOSDs(p *planner) {
	missing := map[string]string{}
	for _, o := range p.osds {
		_, known := p.seen.OSDs[o.id]
		switch {
		case known || o.leaving || p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]:
		case p.osdHave(o) != nil && p.stop[p.osdHave(o).Name] && !ended(p.osdHave(o)): // stopPurged waits for that
		case o.started && !drains(p.osdHave(o)):
			gone := drift.Difference{Object: o.label(), Text: drift.Purged}
			commandAlone(p, verbOSDNew, gone, map[string]string{o.label(): o.uuid})
		default:
			missing[o.label()] = o.uuid
		}
	}
	if len(missing) > 0 {
		p.command(api.ReasonDeclared, verbOSDNew, strings.Join(slices.Sorted(maps.Keys(missing)), ", "), missing,
			"not in Ceph's OSD map yet")
	}
}

// heldByFlags says which flags keep data from moving; empty where none does.
func heldByFlags(p *planner) string {
	if !p.reachable() {
		return ""
	}
	return p.seen.Found.Holding()
}

// bound are the mons and the OSDs that listen on an address that their hosts do not report, as far as agents
// report.
func bound(p *planner, yield func(drift.Bound) bool) {
	has := func(host, address string) bool {
		h := p.hosts[host]
		return h == nil || !h.AgentHeard() || p.closed(host) || slices.Contains(h.Status.Addresses, address)
	}
	for _, m := range p.members {
		if !has(m.Host, m.Address) && !yield(drift.Bound{
			Daemon: "mon." + m.ID, Address: m.Address, Host: m.Host, Has: p.hosts[m.Host].Status.Addresses,
			ReplacedAfter: p.spec.Mon.ReplaceAfter.Duration,
		}) {
			return
		}
	}
	for _, o := range p.osds {
		seen := p.seen.OSDs[o.id]
		if seen.UUID == o.uuid && !o.leaving && !has(o.host, seen.Address) && !yield(drift.Bound{
			Daemon: o.label(), Address: seen.Address, Host: o.host, Has: p.hosts[o.host].Status.Addresses,
			Restart: seen.Address != o.address,
		}) {
			return
		}
	}
}

func asMember(d *api.Daemon) member {
	return member{ID: d.Spec.ID, Host: d.Spec.Host, Address: d.Spec.Parameters[ParamAddress]}
}

// stranded says whether the host of a mon gave up the mon's address for good: by its agent, for as long as a mon
// may be away. A mon keeps its address for life ("Changing a Monitor's IP address" in Ceph's "Adding/Removing
// Monitors": add a mon with the new address, then remove the old one).
func stranded(p *planner, m member) bool {
	h := p.hosts[m.Host]
	if h == nil || !h.AgentHeard() || p.closed(m.Host) {
		return false
	}
	b := drift.Bound{Address: m.Address, Has: h.Status.Addresses}
	since := outside.Since(engine.ChangedBefore(p.view), "host/"+m.Host).Time
	return b.Gone() && !since.IsZero() && p.now.Sub(since) >= p.spec.Mon.ReplaceAfter.Duration
}

// keepsMonsOff says whether a host gets no other mon because of this one: it has one at most, but where it gave up
// the address of the old one.
func keepsMonsOff(p *planner, m member, at place) bool {
	return m.Host == at.host && (m.Address == at.address || !stranded(p, m))
}

// checkMonNetwork refuses a network that the mons are not in.
func checkMonNetwork(p *planner) {
	network := p.cluster.Spec.Network.Public
	for _, m := range p.members {
		if network != "" && m.Address != "" && addressIn(network, []string{m.Address}) == "" {
			p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "mon."+m.ID, drift.OtherNetwork, m.Address, network, m.Host)
		}
	}
}

// anew connects anew to mons that have answered before, run and greet, and yet do not answer: a client whose
// key they do not take any more waits for ever, and is refused only when it connects.
func anew(d *Driver, c *conn, view *engine.View, mute []string) {
	const often = 3
	if c.silences.Add(1) >= often && len(mute) == 0 && len(runningMons(view)) > 0 {
		d.Forget(view.Cluster.Namespace, view.Cluster.Name)
	}
}

// stopPurged has OSDs stop that somebody purged, until they are registered again: one that runs on does not
// come up.
func stopPurged(p *planner) {
	for _, o := range p.osds {
		_, known := p.seen.OSDs[o.id]
		h := p.hosts[o.host]
		stays := o.started && !o.leaving && h != nil && h.AgentHeard() && !p.closed(o.host)
		if d := p.osdHave(o); !known && stays && d != nil && !p.parting[d.Name] && !ended(d) {
			p.stop[d.Name], p.moving = true, true
			p.decide(api.VerdictDo, api.ReasonChangedOutside, o.label(), "%s; it stops for that", drift.Purged)
		}
	}
}
