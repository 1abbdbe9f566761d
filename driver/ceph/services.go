package ceph

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/driver/installed"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// service is a crew that serves a resource, such as the MDS of a Filesystem. It is declared before hosts are brought to their modes
// (declareServices), and manned after that (manServices).
type service struct {
	crew
	resource  api.Placed
	placement *api.Placement
	// there says whether Ceph knows of one that it runs.
	there func(id string) bool
	// fits says why a host cannot have one although it is selected; empty where it can. Nil where nothing speaks against any.
	fits func(host string) string
	// held has no daemon made that is not there yet: the resource cannot be as it is declared, or waits for something.
	held bool
	// refusal says why the placement cannot be had.
	refusal engine.Objection
	// finish completes a Daemon that has what all have in common: the configuration, the keyring, the address.
	finish func(*api.Daemon, seat)
}

// servingTypes are the types of daemons that serve a resource. Each is of the crew of one.
var servingTypes = []string{TypeMDS, rgw.Type, rbdmirror.Type}

// stateless says whether daemons of a type keep nothing on disk.
func stateless(daemonType string) bool {
	return daemonType == TypeMgr || daemonType == ganesha.Type || slices.Contains(servingTypes, daemonType)
}

// declareServices finds the crews of the resources.
func (p *planner) declareServices() {
	p.mgrs = p.mgrCrew()
	p.crews = []*crew{p.mgrs}
	p.declareFilesystems()
	p.declareStores()
	p.declareMirrors()
}

// serve adds the crew of a resource.
func (p *planner) serve(s *service) {
	s.name, s.object = s.resource.GetName(), engine.ResourceObject(s.resource)
	s.absent = func(int) int { return p.missing(s) }
	p.services, p.crews = append(p.services, s), append(p.crews, &s.crew)
	p.checkPlacement(s)
	checkInstalled(p, s)
}

// checkInstalled refuses where all hosts that may have a daemon lack its program.
func checkInstalled(p *planner, s *service) {
	if s.held || s.count == 0 || len(p.membersOf(&s.crew)) > 0 || len(p.daemonsOf(TypeMon)) == 0 {
		return
	}
	places, toCome := p.places(s.hosts(), s.object)
	if without := lacking(p, s, places); toCome == 0 && len(without) > 0 && len(without) == len(places) {
		s.refusal, s.held = installed.Refusal(without, s.daemonType), true
	}
}

// lacking are the hosts of places that lack the program of a service.
func lacking(p *planner, s *service, places []place) (hosts []string) {
	for _, at := range places {
		hosts = append(hosts, at.host)
	}
	return installed.Without(p.hosts, hosts, s.daemonType)
}

// missing counts the daemons of a service that are to run, and that Ceph does not know of.
func (p *planner) missing(s *service) (n int) {
	for _, d := range p.membersOf(&s.crew) {
		if d.DeletionTimestamp == nil && !told(d) && !s.there(d.Spec.ID) {
			n++
		}
	}
	return n
}

// hosts is where the daemons of a service may be.
func (s *service) hosts() selection.Selection { return selection.Of(&s.placement.HostSelection) }

// checkPlacement refuses a placement that no host answers to.
func (p *planner) checkPlacement(s *service) {
	if hosts := s.hosts(); s.resource.GetDeletionTimestamp() == nil && hosts.SelectsNone(p.view.Hosts) {
		s.refusal = engine.Refusal(api.ReasonInsufficientNodes, "placement selects no host: %s", hosts.NoneText(p.view.Hosts))
		s.held = true
	}
}

// placesFor are the hosts that may have daemons of a service, and how many more there may come to be.
func (p *planner) placesFor(s *service) (places []place, toCome int) {
	places, toCome = p.places(s.hosts(), s.object)
	if without := lacking(p, s, places); len(without) > 0 {
		s.without = "; " + installed.Text(without, s.daemonType, "")
	}
	return slices.DeleteFunc(places, func(at place) bool {
		return installed.Lacks(p.hosts[at.host], s.daemonType) || s.fits != nil && s.fits(at.host) != ""
	}), toCome
}

// manServices brings the crews of resources to where they are wanted.
func (p *planner) manServices() {
	for _, s := range p.services {
		if s.count == 0 {
			p.dismissAll(s)
			continue
		}
		var places []place
		if !s.held {
			places, _ = p.placesFor(s)
		}
		p.man(&s.crew, places)
	}
	p.dismissStrays()
}

// dismissAll removes all daemons of a service that is over.
func (p *planner) dismissAll(s *service) {
	for _, d := range p.membersOf(&s.crew) {
		if d.DeletionTimestamp == nil {
			p.dismissOne(api.ReasonDeleting, d, "the "+strings.Replace(s.object, "/", " ", 1)+" is being deleted")
		}
	}
}

// dismissStrays removes daemons whose resource is gone altogether.
func (p *planner) dismissStrays() {
	for _, d := range p.view.Daemons {
		owned := slices.ContainsFunc(p.services, func(s *service) bool { return s.owns(&d) })
		if slices.Contains(servingTypes, d.Spec.Type) && !owned && d.DeletionTimestamp == nil {
			p.dismissOne(api.ReasonRemoving, &d, "its resource is not declared any more")
		}
	}
}

// elsewhere counts the daemons that a crew has on other hosts that can stay, and the hosts that may have another one.
func (p *planner) elsewhere(s *service, host string) (others []*api.Daemon, free int) {
	for _, d := range p.membersOf(&s.crew) {
		if d.Spec.Host != host && !p.closed(d.Spec.Host) && p.astray[d.Name] == "" && !told(d) && d.DeletionTimestamp == nil {
			others = append(others, d)
		}
	}
	places, _ := p.placesFor(s)
	for _, at := range places {
		if at.host != host && !slices.ContainsFunc(p.membersOf(&s.crew), func(d *api.Daemon) bool { return d.Spec.Host == at.host }) {
			free++
		}
	}
	return others, free
}

// ready says whether a daemon of a service runs, by its agent's and by Ceph's word.
func (s *service) ready(d *api.Daemon) bool {
	return d.Spec.State == api.WantRunning && d.Status.State == api.DaemonRunning && d.DeletionTimestamp == nil && s.there(d.Spec.ID)
}

func (s *service) readyOf(daemons []*api.Daemon) (n int) {
	for _, d := range daemons {
		if s.ready(d) {
			n++
		}
	}
	return n
}

// servedBy are the daemons of a service among those of a host.
func (u *upkeep) servedBy(s *service) []*api.Daemon {
	return slices.DeleteFunc(slices.Clone(u.daemons), func(d *api.Daemon) bool { return !s.owns(d) })
}

// servicesAllow wants others to be ready before those on a host stop, where another host may have them.
func (p *planner) servicesAllow(u *upkeep) bool {
	for _, s := range p.services {
		running := slices.DeleteFunc(u.servedBy(s), told)
		if len(running) == 0 {
			continue
		}
		others, free := p.elsewhere(s, u.host)
		switch {
		case s.readyOf(others) >= s.least:
		case len(others) >= s.least:
			return p.await(u, api.ReasonAwaitingReplacement, "waiting for %s on another host before %s stops", s.noun,
				label(running[0]))
		case free > 0 && !s.held:
			return p.await(u, api.ReasonAwaitingReplacement, "creating another %s on another host before %s stops", s.noun,
				label(running[0]))
		default:
			p.decide(api.VerdictSkip, api.ReasonNoOtherHost, label(running[0]),
				"stops with host %s; no eligible host for a replacement. %s runs below its declared count until the host returns",
				u.host, s.object)
		}
	}
	return true
}

// mayMoveServices refuses to drain a host whose daemons no other host may have.
func (p *planner) mayMoveServices(u *upkeep) (none engine.Objection) {
	for _, s := range p.services {
		running := u.servedBy(s)
		if others, free := p.elsewhere(s, u.host); len(running) > 0 && len(others)+free < s.least {
			return engine.Refusal(api.ReasonNoOtherHost,
				"cannot drain: no other host may run %s; give %s another placement, or delete it", label(running[0]), s.object)
		}
	}
	return none
}

// moveServices has others ready before the daemons on a host go.
func (p *planner) moveServices(u *upkeep) bool {
	for _, s := range p.services {
		if here := u.servedBy(s); len(here) > 0 {
			return p.moveOne(u, s, here[0])
		}
	}
	return true
}

// moveOne lets a daemon go as soon as as many others are ready as are wanted, or can be had.
func (p *planner) moveOne(u *upkeep, s *service, d *api.Daemon) bool {
	others, free := p.elsewhere(s, d.Spec.Host)
	if s.readyOf(others) < min(s.count, len(others)+free) {
		return p.await(u, api.ReasonAwaitingReplacement, "waiting for another %s before %s is removed", s.noun, label(d))
	}
	p.released[d.Name] = true
	return p.await(u, api.ReasonRemoving, "%s is being removed", label(d))
}

// withdrawCrews moves daemons of services off hosts that their placement does not select any more, or that a
// person asks them to leave.
func (p *planner) withdrawCrews(unmeant func(string) bool) {
	for _, s := range p.services {
		var leave []*api.Daemon
		for _, d := range p.membersOf(&s.crew) {
			why := cmp.Or(p.misplaced(s.hosts(), label(d), d.Spec.Host, unmeant), asked.Leave(d, p.hosts[d.Spec.Host]))
			if why == "" {
				continue
			}
			p.astray[d.Name] = why
			if d.DeletionTimestamp == nil {
				leave = append(leave, d)
			}
		}
		for _, d := range leave {
			if others, free := p.elsewhere(s, d.Spec.Host); len(others)+free < s.least || s.held {
				p.decide(api.VerdictSkip, api.ReasonNoOtherHost, label(d), "%s; it stays: no other host may run it",
					p.astray[d.Name])
				delete(p.astray, d.Name)
				continue
			}
			p.moveOne(&upkeep{host: d.Spec.Host, withdrawn: []string{label(d)}}, s, d)
		}
	}
}

// misplaced says why a daemon is not where the spec selects hosts, or, where the spec selects none, on a host
// that is meant; nothing where it is.
func (p *planner) misplaced(hosts selection.Selection, label, host string, unmeant func(string) bool) string {
	h := p.hosts[host]
	switch {
	case h.ModeOf() != api.HostActive || h == nil:
	case hosts.Given() && !hosts.Selects(h):
		return hosts.LeftText(host)
	case hosts.Given() || !unmeant(host):
	case p.grace(host) > 0:
		p.awaitNode(label, host)
	default:
		return unmeantReason(host)
	}
	return ""
}

// admitted says whether a daemon is there, or may come: Ceph has its key. One that starts without it ends, and starts again later and later.
func (p *planner) admitted(c *crew, id string) bool {
	return p.have[p.daemonOf(c, id)] != nil || p.reachable() && p.seen.Entities[c.entityOf(id)]
}

// servesResource says whether an entity is that of a daemon that serves resources.
func servesResource(entity string) bool {
	return strings.HasPrefix(entity, nfsPrefix) || entity == rbdmirror.PeerEntity || slices.ContainsFunc(servingTypes, func(t string) bool { return strings.HasPrefix(entity, entityFor(t, "")) })
}

// serviceDaemon is the Daemon of a seat.
func (p *planner) serviceDaemon(s *service, at seat, facts *confFacts) api.Daemon {
	d := p.daemon(s.daemonType, at.id, at.host, at.address, facts)
	d.Spec.Files = append(d.Spec.Files, p.keyringFile(s.entityOf(at.id)))
	d.Spec.StopOrder, d.Spec.StopTimeout = stopOrderService, metav1.Duration{Duration: stopTimeoutService}
	d.Spec.OnRemoval = api.DeletionWipe
	s.finish(&d, at)
	return d
}

// forgetCrews takes the keys of daemons that are gone for good from Ceph's auth database, and then from the store: those that were made by Holdfast, but
// for those that the first mons were made with.
func (p *planner) forgetCrews() {
	for _, x := range p.view.Secrets {
		entity := x.Annotations[AnnotationEntity]
		c, id := p.crewOf(entity)
		if id == "" || p.have[daemonName(p.cluster.Name, kindOf(c.daemonType), id)] != nil || slices.ContainsFunc(c.seats, func(s seat) bool { return s.id == id }) {
			continue
		}
		switch {
		case p.seen.Entities[entity]:
			p.command(api.ReasonRemoving, verbAuthRm, entity, nil, "the "+kindOf(c.daemonType)+" is gone")
		case p.seen.Entities != nil && !p.named(x.Name):
			p.plan.Secrets = append(p.plan.Secrets, engine.SecretWant{Name: x.Name, Gone: true})
		}
	}
}

// named says whether a file of a daemon is made of a Secret.
func (p *planner) named(secret string) bool {
	return slices.ContainsFunc(p.view.Daemons, func(d api.Daemon) bool {
		return slices.ContainsFunc(d.Spec.Files, func(f api.DaemonFile) bool {
			return slices.ContainsFunc(f.Sources, func(s api.FileSource) bool { return s.Secret != nil && s.Secret.Name == secret })
		})
	})
}

// spent says whether a manager had an id that is gone for good: Ceph has forgotten its key, and it is there still. With that one the machine of a host
// that was said to be gone could come back and start it again, and Ceph takes two of one name for one that is started again and again.
func (p *planner) spent(c *crew, id string) bool {
	entity := c.entityOf(id)
	return c.daemonType == TypeMgr && p.reachable() && p.seen.Entities != nil && !p.seen.Entities[entity] &&
		slices.ContainsFunc(p.view.Secrets, func(x engine.SecretInfo) bool { return x.Annotations[AnnotationEntity] == entity })
}

// crewOf is the crew whose daemons have such keys, and the id of the one; a crew without seats where there is none any more.
func (p *planner) crewOf(entity string) (*crew, string) {
	for _, c := range p.crews {
		if id, ok := strings.CutPrefix(entity, c.entityOf("")); ok && c.owns(&api.Daemon{Spec: api.DaemonSpec{Type: c.daemonType, ID: id}}) {
			return c, id
		}
	}
	for _, daemonType := range servingTypes {
		if id, ok := strings.CutPrefix(entity, (&crew{daemonType: daemonType}).entityOf("")); ok {
			return &crew{daemonType: daemonType}, id
		}
	}
	return nil, ""
}
