package ceph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/monstore"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// askAtOnce bounds how many agents are asked at one time.
	askAtOnce = 16
	// giveTurn is how long one call of the step asks OSDs for their maps, one after the other.
	giveTurn = 30 * time.Second
)

// stop stops the mons, of which none can serve anyway. That nothing of the maps changes while a mon is made of those of the OSDs, these stop, too; and with
// them all that works on what lies on them: an MDS would go on by a map of filesystems that is lost.
func (r *recovery) stop(ctx context.Context) (action.Progress, error) {
	stopping := r.of(TypeMon)
	if r.way == monstore.FromOSDs {
		stopping = slices.Concat(stopping, r.of(TypeOSD), r.of(TypeMgr))
		for _, daemonType := range servingTypes {
			stopping = slices.Concat(stopping, r.of(daemonType))
		}
	}
	var waits []string
	for _, d := range stopping {
		if d.Spec.State == api.WantRunning {
			if err := r.put(ctx, d, func(next *api.Daemon) { next.Spec.State = api.WantStopped }); err != nil {
				return action.Progress{}, err
			}
		}
		if d.Spec.State == api.WantRunning || d.Spec.State == api.WantStopped && !at(d, api.DaemonStopped) {
			waits = append(waits, label(d))
		}
	}
	p := action.Progress{Count: int64(len(stopping) - len(waits)), Total: int64(len(stopping)), Unit: "daemons", Message: "the daemons are stopped"}
	if p.Done = len(waits) == 0; !p.Done {
		p.Message, p.WaitsFor, p.Recheck = "daemons are being stopped", words.Few(waits)+" to stop", time.Second/4
	}
	return p, nil
}

// put changes a daemon.
func (r *recovery) put(ctx context.Context, d *api.Daemon, change func(*api.Daemon)) error {
	next := *d.DeepCopy()
	if next.Spec.Parameters == nil {
		next.Spec.Parameters = map[string]string{}
	}
	memory.Move(&next)
	change(&next)
	err := r.Store.PutDaemon(ctx, r.view.Cluster, engine.DaemonChange{Daemon: next, New: d.UID == "", Reason: "the mons are being recovered"})
	if err != nil {
		return fmt.Errorf("while changing %s: %w", label(d), err)
	}
	return nil
}

// at says whether an agent has brought a daemon to a state by its newest spec.
func at(d *api.Daemon, state api.DaemonState) bool {
	return d.Status.State == state && d.Status.ObservedGeneration == d.Generation
}

// answer is what an agent said of a daemon.
type answer struct {
	daemon *api.Daemon
	text   string
	err    error
}

// askAll asks the agents of daemons one thing.
func (r *recovery) askAll(ctx context.Context, daemons []*api.Daemon, verb string) []answer {
	all := make([]answer, len(daemons))
	var group errgroup.Group
	group.SetLimit(askAtOnce)
	for i, d := range daemons {
		group.Go(func() error {
			all[i].daemon = d
			all[i].text, all[i].err = r.ask(ctx, d, verb, nil)
			return nil
		})
	}
	_ = group.Wait()
	return all
}

func (r *recovery) ask(ctx context.Context, d *api.Daemon, verb string, params map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, action.CommandTimeout)
	defer cancel()
	return r.Store.Ask(ctx, d, engine.Command{Verb: verb, Object: label(d), Daemon: d.Name, Params: params})
}

// order is what stands in the Daemon of the mon that is chosen.
func (r *recovery) order() string { return monstore.Order{Token: r.token, Way: r.way}.String() }

// chosen is the mon that this recovery begins with, or nil before it is chosen.
func (r *recovery) chosen() *api.Daemon {
	for i := range r.view.Daemons {
		d := &r.view.Daemons[i]
		if token, _, _ := strings.Cut(d.Spec.Parameters[monstore.ParamRecover], " "); d.Spec.Type == TypeMon && token == r.token {
			return d
		}
	}
	return nil
}

// look looks at what is left, and chooses the mon to begin with. That stands in its Daemon, whoever leads next.
func (r *recovery) look(ctx context.Context) (action.Progress, error) {
	if d := r.chosen(); d != nil {
		return action.Progress{Done: true, Message: fmt.Sprintf("starting with %s on host %s", label(d), d.Spec.Host)}, nil
	}
	stores, err := r.stores(ctx)
	if err != nil {
		return action.Progress{}, err
	}
	if r.way == monstore.FromOSDs {
		return r.chooseByOSDs(ctx, stores)
	}
	return r.chooseSurvivor(ctx, stores)
}

// store is the store of a mon, and what it is worth.
type store struct {
	*api.Daemon
	monstore.State
}

func (r *recovery) stores(ctx context.Context) (all []store, err error) {
	for _, a := range r.askAll(ctx, r.of(TypeMon), monstore.VerbLook) {
		if a.err != nil {
			return nil, fmt.Errorf("while checking the store of %s: %w", label(a.daemon), a.err)
		}
		s, err := monstore.Decode(a.text)
		if err != nil {
			return nil, err
		}
		all = append(all, store{a.daemon, s})
	}
	return all, nil
}

// tell says of each store what it is worth.
func tell(stores []store) string {
	texts := make([]string, len(stores))
	for i, s := range stores {
		texts[i] = fmt.Sprintf("%s on host %s: %s", label(s.Daemon), s.Spec.Host, s.State)
	}
	return strings.Join(texts, "; ")
}

// chooseSurvivor takes the mon that knows the most, unless those that are left can still be a quorum.
func (r *recovery) chooseSurvivor(ctx context.Context, stores []store) (action.Progress, error) {
	whole := slices.DeleteFunc(slices.Clone(stores), func(s store) bool { return !s.Whole() })
	members := monset.Of(r.view.Daemons)
	switch {
	case len(whole) == 0:
		return action.Progress{}, refusef("no mon has a whole store (%s): recover the mons from the OSDs, with --from osds",
			cmp.Or(tell(stores), "none can be reached"))
	case len(whole) > len(members)/2 && !r.force:
		return action.Progress{}, refusef("%d of %d mons have a whole store, which is a quorum once "+
			"they reach each other (%s); check network, ports 3300 and 6789, clocks, and the end of their logs ('holdfast "+
			"logs NAME'). --force starts with one of them alone", len(whole), len(members), tell(whole))
	}
	best := slices.MaxFunc(whole, func(a, b store) int { return cmp.Compare(a.Version, b.Version) })
	if err := r.put(ctx, best.Daemon, func(d *api.Daemon) { d.Spec.Parameters[monstore.ParamRecover] = r.order() }); err != nil {
		return action.Progress{}, err
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("newest store: %s on host %s: %s",
		label(best.Daemon), best.Spec.Host, tell(stores))}, nil
}

// chooseByOSDs begins on the host of the OSD with the newest map: nothing has to travel, and no OSD knows more than the new mon will.
func (r *recovery) chooseByOSDs(ctx context.Context, stores []store) (action.Progress, error) {
	for _, s := range stores {
		if s.Whole() && !r.force {
			return action.Progress{}, refusef("the store of %s on host %s is whole and newer than the maps of the OSDs: "+
				"recover from it, without --from osds; --force continues without it", label(s.Daemon), s.Spec.Host)
		}
	}
	host, newest, failed := r.newest(r.askAll(ctx, r.osds(), monstore.VerbNewest))
	switch {
	case len(failed) > 0 && !r.force:
		return action.Progress{Message: "not all OSDs answer", WaitsFor: fmt.Sprintf("%s. To continue without "+
			"them: cancel this action and start again with --force", words.Few(failed))}, nil
	case host == "":
		return action.Progress{}, refusef("no OSD has a map: %s", cmp.Or(words.Few(failed), "there are none"))
	}
	d, err := r.monOn(host)
	if err != nil {
		return action.Progress{}, err
	}
	if err := r.put(ctx, d, func(*api.Daemon) {}); err != nil {
		return action.Progress{}, err
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("the OSDs of host %s have the newest map, number %d: "+
		"creating %s there", host, newest, label(d))}, nil
}

// osds are those that have ever had data.
func (r *recovery) osds() []*api.Daemon {
	return slices.DeleteFunc(r.of(TypeOSD), func(d *api.Daemon) bool { return d.Spec.State == api.WantPrepared })
}

// newest is the host of the OSD with the newest map: of several one that has a mon, because clients know its address.
func (r *recovery) newest(answers []answer) (host string, newest uint64, failed []string) {
	hasMon := func(host string) bool {
		return slices.ContainsFunc(r.of(TypeMon), func(d *api.Daemon) bool { return d.Spec.Host == host })
	}
	for _, a := range answers {
		n, err := strconv.ParseUint(a.text, 10, 64)
		if a.err != nil || err != nil {
			failed = append(failed, fmt.Sprintf("%s on host %s: %v", label(a.daemon), a.daemon.Spec.Host, cmp.Or(a.err, err)))
			continue
		}
		if n > newest || n == newest && !hasMon(host) && hasMon(a.daemon.Spec.Host) {
			host, newest = a.daemon.Spec.Host, n
		}
	}
	return host, newest, failed
}

// monOn is the Daemon of the mon to be made on a host: the one that is there, or a new one.
func (r *recovery) monOn(host string) (*api.Daemon, error) {
	p := r.planner(monset.Of(r.view.Daemons))
	m := member{Host: host}
	for _, d := range r.of(TypeMon) {
		if d.Spec.Host == host {
			m.ID, m.Address = d.Spec.ID, d.Spec.Parameters[ParamAddress]
		}
	}
	for _, d := range r.of(TypeOSD) {
		if d.Spec.Host == host && m.Address == "" {
			m.Address = d.Spec.Parameters[ParamAddress]
		}
	}
	if m.ID == "" {
		p.seen = &Observation{} // nobody knows Ceph's own map
		m.ID = p.nextMonID()
	}
	if m.Address == "" {
		return nil, fmt.Errorf("host %s has no address for a mon", host)
	}
	monmap, hosts := monset.Params(p.members)
	d := p.monDaemon(m, p.confFacts(), monmap, hosts)
	d.Spec.Files = slices.DeleteFunc(d.Spec.Files, func(f api.DaemonFile) bool { return f.Path == FileKeyring })
	d.Spec.Files = append(d.Spec.Files, p.keyringFile(entityMon, entityAdmin))
	d.Spec.Parameters[monstore.ParamRecover], d.Spec.State = r.order(), api.WantStopped
	if have := p.have[d.Name]; have != nil {
		d.Status = have.Status
		memory.TakeMeta(&d, have)
	}
	return &d, nil
}

// planner makes Daemons of mons as the plans of the cluster do.
func (r *recovery) planner(members []member) *planner {
	p := newPlanner(r.view, time.Now()) //nolint:forbidigo // an action, and no plan
	p.identity()
	p.planConfig()
	p.resolve()
	p.declareServices()
	p.readAvoided()
	p.members = members
	p.planOSDs() // ceph.conf says how many copies there are by default
	return p
}

// rebuild has the agent make the store of the mon to begin with. What was there is kept beside it.
func (r *recovery) rebuild(ctx context.Context) (action.Progress, error) {
	d := r.chosen()
	if d == nil {
		return action.Progress{}, refusef("the Daemon of the first mon was deleted")
	}
	if r.way == monstore.FromOSDs {
		if p, err := r.gather(ctx, d); err != nil || !p.Done {
			return p, err
		}
	}
	return r.prepared(ctx, d, r.order(), "its store is built")
}

// prepared has an agent carry out an order on a mon's store.
func (r *recovery) prepared(ctx context.Context, d *api.Daemon, order, done string) (action.Progress, error) {
	if d.Spec.State != api.WantPrepared || d.Spec.Parameters[monstore.ParamRecover] != order {
		err := r.put(ctx, d, func(next *api.Daemon) {
			next.Spec.State, next.Spec.Parameters[monstore.ParamRecover] = api.WantPrepared, order
		})
		return action.Progress{Message: fmt.Sprintf("building the store of %s on host %s",
			label(d), d.Spec.Host), Recheck: time.Second / 4}, err
	}
	if at(d, api.DaemonPrepared) {
		return action.Progress{Done: true, Message: fmt.Sprintf("%s on host %s: %s", label(d), d.Spec.Host, done)}, nil
	}
	return action.Progress{
		Message:  fmt.Sprintf("building the store of %s on host %s", label(d), d.Spec.Host),
		WaitsFor: strings.TrimSuffix(fmt.Sprintf("the agent of host %s: %s, %s", d.Spec.Host, d.Status.State, d.Status.Message), ", "), Recheck: time.Second / 4,
	}, nil
}

// gather has the OSDs of the host give their maps, one after the other. Those that have given are quick to say so.
func (r *recovery) gather(ctx context.Context, mon *api.Daemon) (action.Progress, error) {
	here := slices.DeleteFunc(r.osds(), func(d *api.Daemon) bool { return d.Spec.Host != mon.Spec.Host })
	turn, cancel := context.WithTimeout(ctx, giveTurn)
	defer cancel()
	params := map[string]string{monstore.ParamMon: mon.Namespace + "." + mon.Name, monstore.ParamToken: r.token}
	for i, d := range here {
		p := action.Progress{
			Count: int64(i), Total: int64(len(here)), Unit: "OSDs", Message: label(d) + " exports its maps",
			Recheck: time.Second / 4,
		}
		if turn.Err() != nil {
			return p, nil
		}
		if _, err := r.ask(ctx, d, monstore.VerbGive, params); err != nil {
			p.WaitsFor = fmt.Sprintf("%s on host %s: %v", label(d), d.Spec.Host, err)
			return p, ctx.Err()
		}
	}
	return action.Progress{Done: true}, nil
}

// found writes that the mon to begin with is the only one, and starts it. The others are told to leave; their stores are kept.
func (r *recovery) found(ctx context.Context) (action.Progress, error) {
	d := r.chosen()
	if d == nil {
		return action.Progress{}, refusef("the Daemon of the first mon was deleted")
	}
	for i := range r.view.Daemons {
		other := &r.view.Daemons[i]
		if other.Spec.Type != TypeMon || other.Name == d.Name || other.DeletionTimestamp != nil || drains(other) {
			continue
		}
		if err := r.put(ctx, other, func(next *api.Daemon) {
			memory.Set(next, memory.Drain, memory.Begun)
			next.Spec.OnRemoval, next.Spec.State = api.DeletionRetain, api.WantStopped
		}); err != nil {
			return action.Progress{}, err
		}
	}
	err := r.put(ctx, r.only(d), func(*api.Daemon) {})
	return action.Progress{Done: err == nil, Message: fmt.Sprintf("%s on host %s is the only mon now", label(d), d.Spec.Host)}, err
}

// only is a mon's Daemon as that of the only one.
func (r *recovery) only(d *api.Daemon) *api.Daemon {
	p := r.planner([]member{{ID: d.Spec.ID, Host: d.Spec.Host, Address: d.Spec.Parameters[ParamAddress]}})
	monmap, hosts := monset.Params(p.members)
	next := p.monDaemon(p.members[0], p.confFacts(), monmap, hosts)
	next.Spec.Parameters[monstore.ParamRecover], next.Spec.State = d.Spec.Parameters[monstore.ParamRecover], api.WantRunning
	memory.TakeMeta(&next, d)
	return &next
}

// keys waits for the mon to answer, and imports the keys that it does not know: OSDs and clients could not come in without.
func (r *recovery) keys(ctx context.Context) (action.Progress, error) {
	c, err := r.answers(ctx)
	if err != nil {
		return action.Progress{}, err
	}
	if c == nil {
		return action.Progress{Message: "the mon is starting", WaitsFor: "the mon to answer", Recheck: time.Second / 4}, nil
	}
	out, err := c.client.Mon(ctx, ask("auth ls"), nil)
	if err != nil {
		return action.Progress{}, err
	}
	known, err := parseEntities(out)
	if err != nil {
		return action.Progress{}, err
	}
	var imported []string
	for _, s := range r.view.Secrets {
		entity := s.Annotations[AnnotationEntity]
		// What the OSDs wrote of their own keys is not relied on.
		if entity == "" || entity == entityMon || known[entity] && !strings.HasPrefix(entity, "osd.") {
			continue
		}
		err := c.authImport(ctx, request{engine.Command{Verb: verbAuthImport, Object: entity}, r.view.Cluster.Name, r.Store.Secrets(r.key())})
		if err != nil {
			return action.Progress{}, err
		}
		imported = append(imported, entity)
	}
	message := "the mon has all keys"
	if len(imported) > 0 {
		message = "imported keys: " + words.Few(imported)
	}
	return action.Progress{Done: true, Message: message}, nil
}

// serve waits until the plans of the cluster have brought the other mons, and started the OSDs.
func (r *recovery) serve(ctx context.Context) (action.Progress, error) {
	seen, err := r.Driver.Observe(ctx, r.view, r.Store.Secrets(r.key()))
	o, ok := seen.(*Observation)
	if err != nil || !ok || !o.Reachable {
		return action.Progress{Message: "the mons do not answer", WaitsFor: "the mons to answer"}, err
	}
	var waits []string
	mons := 0
	for i := range r.view.Daemons {
		d := &r.view.Daemons[i]
		id, _ := strconv.Atoi(d.Spec.ID)
		switch lost := slices.Contains(r.lost, d.Spec.Host); {
		case d.Spec.Type == TypeMon && drains(d) && !lost:
			waits = append(waits, label(d)+" to be removed")
		case d.Spec.Type == TypeMon && slices.Contains(o.Quorum, d.Spec.ID):
			mons++
		case d.Spec.Type == TypeMon && !drains(d), d.Spec.Type == TypeOSD && !o.OSDs[id].Up && !lost && r.expected(d):
			waits = append(waits, label(d))
		}
	}
	p := r.planner(monset.Of(r.view.Daemons))
	p.seen = o
	p.findJoining()
	if more := p.monCount() - mons - len(waits); more > 0 && len(p.monPlaces()) > 0 {
		waits = append(waits, words.Plural(more, "more mon"))
	}
	if len(waits) > 0 {
		return action.Progress{Message: "the others follow", WaitsFor: words.Few(waits), Count: int64(mons), Total: int64(max(mons, p.monCount())), Unit: "mons"}, nil
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("%s serve. %s", words.Plural(mons, "mon"), r.after())}, nil
}

// expected says whether an OSD is to come up: not one that fails, or whose host is in maintenance.
func (r *recovery) expected(d *api.Daemon) bool {
	if d.Spec.State == api.WantPrepared || d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonBackOff {
		return false
	}
	return r.view.HostsByName()[d.Spec.Host].ModeOf() != api.HostMaintenance
}

// after says what a person has to look at when it is done.
func (r *recovery) after() string {
	if r.way == monstore.Alone {
		return "Data that only the other mons had, mostly of the last moments, is lost. The old stores are kept on their " +
			"hosts"
	}
	return "Settings of 'ceph config set', keys that are in no Client or Secret of Holdfast, and the maps of CephFS " +
		"file systems are lost: see docs/how-to/recover-mons.md. The old stores are kept on their hosts"
}

// putBack puts the store back that was there before, unless the mon serves already.
func (r *recovery) putBack(ctx context.Context) (action.Progress, error) {
	d := r.chosen()
	if d == nil || r.isFounded(d) {
		return action.Progress{Done: true, Message: "the new mon stays"}, nil
	}
	p, err := r.prepared(ctx, d, monstore.Order{Token: r.token, Way: monstore.Back}.String(), "its old store is restored")
	if !p.Done && at(d, api.DaemonFailed) && strings.HasSuffix(d.Spec.Parameters[monstore.ParamRecover], string(monstore.Back)) {
		return action.Progress{Done: true, Message: fmt.Sprintf("%s on host %s: %s", label(d), d.Spec.Host, d.Status.Message)}, nil
	}
	return p, err
}

// isFounded says whether a mon was written to be the only one.
func (r *recovery) isFounded(d *api.Daemon) bool {
	members := monset.Of(r.view.Daemons)
	return len(members) == 1 && members[0].ID == d.Spec.ID && d.Spec.State == api.WantRunning
}

// forget removes a mon that was to be made where there was none.
func (r *recovery) forget(ctx context.Context) (action.Progress, error) {
	d := r.chosen()
	if d == nil || slices.ContainsFunc(monset.Of(r.view.Daemons), func(m member) bool { return m.ID == d.Spec.ID }) {
		return action.Progress{Done: true}, nil
	}
	return action.Progress{Done: true}, r.Store.RemoveDaemon(ctx, d.Namespace, d.Name)
}
