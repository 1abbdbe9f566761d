package ceph

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/certificate"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// storePlan is an ObjectStore while it is planned.
type storePlan struct {
	*api.ObjectStore
	service *service
	// pools are those of the metadata and of the data.
	pools []*poolPlan
	// users are the ObjectStoreUsers that name the store.
	users []string
	// lost is what is gone of what was recorded.
	lost losses
	// refusals say why it cannot be as it is declared, waits what it waits for.
	refusals, waits objections
	// frozen has gateways that are there stay as they are: the store is being deleted, what they are to show is no good, or nobody can tell.
	frozen bool
	// taken are hosts that another one's port keeps a gateway from, and why.
	taken map[string]string
}

func (x *storePlan) object() string { return engine.ResourceObject(x.ObjectStore) }

// What an ObjectStore has of which nothing is said.
const (
	defaultGateways    = 2
	defaultGatewayPort = 7480
)

// storeEmpty is the condition of an ObjectStore that is being deleted that says that no bucket was found in it.
const storeEmpty = "Empty"

// declareStores finds the gateways that stores want.
func (p *planner) declareStores() {
	for _, s := range engine.OfKind[*api.ObjectStore](p.view.Resources) {
		x := &storePlan{ObjectStore: s, taken: map[string]string{}}
		for _, u := range engine.OfKind[*api.ObjectStoreUser](p.view.Resources) {
			if u.Spec.Store == s.Name {
				x.users = append(x.users, u.Name)
			}
		}
		x.service = &service{
			crew: crew{
				daemonType: rgw.Type, noun: "gateway", field: "spec.gateways.placement.count", count: x.gateways(), least: 1,
			},
			resource: s, placement: &x.Spec.Gateways.Placement,
			there: func(id string) bool {
				return p.gatewayAnswers(p.have[daemonName(p.cluster.Name, kindOf(rgw.Type), id)])
			},
			fits:   func(host string) string { return p.portTaken(x, host) },
			finish: func(d *api.Daemon, at seat) { p.finishGateway(x, d, at) },
		}
		p.stores = append(p.stores, x)
		p.serve(x.service)
		x.refusals.add(x.service.refusal)
	}
}

// gateways are how many there are to be: none any more of a store that is deleted and of which nothing is wanted before.
func (x *storePlan) gateways() int {
	c := meta.FindStatusCondition(x.Status.Conditions, storeEmpty)
	emptied := c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == x.Generation
	switch {
	case x.DeletionTimestamp != nil && len(x.users) == 0 && (emptied || x.Spec.DeletionPolicy != api.DeletionWipe || len(x.Status.Pools) == 0):
		return 0
	case x.Spec.Gateways.Placement.Count != nil:
		return int(*x.Spec.Gateways.Placement.Count)
	}
	return defaultGateways
}

func (x *storePlan) port() int32 {
	if x.Spec.Gateways.Port == 0 {
		return defaultGatewayPort
	}
	return x.Spec.Gateways.Port
}

// tls is the Secret with the certificate; empty for none.
func (x *storePlan) tls() string {
	if x.Spec.Gateways.TLS == nil {
		return ""
	}
	return x.Spec.Gateways.TLS.SecretName
}

// gatewayAnswers says whether a gateway answers, by the word of its agent, which has to be heard for that.
func (p *planner) gatewayAnswers(d *api.Daemon) bool {
	if d == nil || p.seen == nil || d.Status.State != api.DaemonRunning || !p.hosts[d.Spec.Host].AgentHeard() {
		return false
	}
	r := p.seen.Gateways[d.Name]
	return r != nil && r.Up
}

// portTaken says what keeps a gateway from listening on a host, as far as Holdfast runs it.
func (p *planner) portTaken(x *storePlan, host string) string {
	for _, d := range p.view.Others {
		if d.Spec.Host == host && d.Spec.Type == rgw.Type && portOf(d) == x.port() {
			x.taken[host] = fmt.Sprintf("a gateway of cluster %s/%s", d.Namespace, d.Spec.Cluster)
		}
	}
	for _, other := range p.stores {
		sits := slices.ContainsFunc(other.service.seats, func(s seat) bool { return s.host == host })
		for _, d := range p.membersOf(&other.service.crew) {
			sits = sits || d.Spec.Host == host
		}
		if other != x && sits && other.port() == x.port() {
			x.taken[host] = "ObjectStore " + other.Name
		}
	}
	return x.taken[host]
}

// portOf is the port of a gateway; 0 where nobody can tell.
func portOf(d *api.Daemon) int32 {
	_, at, _ := strings.Cut(d.Spec.Parameters[rgw.ParamURL], "://")
	_, port, err := net.SplitHostPort(at)
	n, bad := strconv.ParseInt(port, 10, 32)
	if err != nil || bad != nil {
		return 0
	}
	return int32(n)
}

// planStorePools finds how the pools of a store are to be, which are looked after like those of Pools.
func (p *planner) planStorePools(x *storePlan) {
	x.pools = []*poolPlan{p.storePool(x, rgw.PoolMeta(x.Name), x.Spec.Metadata), p.storePool(x, rgw.PoolData(x.Name), x.Spec.Data)}
	p.pools = append(p.pools, x.pools...)
	p.findStore(x)
	for _, pool := range x.pools {
		p.judgePlace(pool)
		x.refusals = append(x.refusals, pool.refusals.of("pool "+pool.Name)...)
		x.waits = append(x.waits, pool.waits.of("pool "+pool.Name)...)
		if pool.have == nil || len(pool.refusals) > 0 {
			x.service.held = true
		}
	}
}

func (p *planner) storePool(x *storePlan, name string, like api.ObjectStorePool) *poolPlan {
	pool := &api.Pool{Spec: api.PoolSpec{
		Cluster: x.Spec.Cluster, Replicated: like.Replicated, ErasureCoded: like.ErasureCoded, FailureDomain: like.FailureDomain,
		DeviceClass: like.DeviceClass, Compression: like.Compression, Application: "rgw", DeletionPolicy: x.Spec.DeletionPolicy,
	}}
	pool.Namespace, pool.Name, pool.DeletionTimestamp = x.Namespace, name, x.DeletionTimestamp
	pool.Status.ResourceStatus = x.Status.ResourceStatus
	plan := &poolPlan{Pool: pool, owner: x.ObjectStore}
	for _, had := range x.Status.Pools {
		if had.Name == name {
			plan.id = p.recorded(had.ID)
		}
	}
	return plan
}

// planStores finds how the stores are to be, and has no gateways made before they can do anything.
func (p *planner) planStores() {
	for _, x := range p.stores {
		p.planStorePools(x)
		wrong := p.checkCertificate(x)
		if wrong.Verdict == api.VerdictWait {
			x.waits.add(wrong)
		} else {
			x.refusals.add(wrong)
		}
		x.frozen = !wrong.None() || x.DeletionTimestamp != nil || x.tls() != "" && !p.reachable()
		x.service.held = x.service.held || !wrong.None() || x.DeletionTimestamp != nil
	}
	p.sharePorts()
}

// sharePorts gives ports to those that were declared first. One without gateways is refused where others have its port on each host, and waits for
// one that may come to have it there: it is known before anything is made.
func (p *planner) sharePorts() {
	for _, x := range slices.SortedFunc(slices.Values(p.stores), declaredBefore) {
		if len(p.membersOf(&x.service.crew)) > 0 || x.DeletionTimestamp != nil {
			continue
		}
		ahead := p.ahead(x)
		switch {
		case p.noPort(x):
			x.refusePort()
		case ahead != nil:
			x.waits.wait(api.ReasonOneAtATime,
				"waiting for ObjectStore %s, which has the same port and was declared earlier", ahead.Name)
			holdNew(x.pools)
		default:
			continue
		}
		x.service.held = true
	}
}

// declaredBefore orders stores by when they were declared, and those of one moment by their names.
func declaredBefore(a, b *storePlan) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// ahead is a store that comes before one with the same port, and is yet to get gateways on hosts that are all that the other may have. Where it will
// take all of them it is noted who has them.
func (p *planner) ahead(x *storePlan) *storePlan {
	mine, toCome := p.placesFor(x.service)
	if len(mine) == 0 || toCome > 0 {
		return nil
	}
	for _, y := range p.stores {
		if y == x || y.port() != x.port() || y.DeletionTimestamp != nil || len(y.refusals) > 0 || declaredBefore(y, x) > 0 || len(p.membersOf(&y.service.crew)) > 0 {
			continue
		}
		theirs, _ := p.placesFor(y.service)
		if slices.ContainsFunc(mine, func(at place) bool { return !slices.Contains(theirs, at) }) {
			continue
		}
		if y.service.count >= len(theirs) {
			for _, at := range mine {
				x.taken[at.host] = "ObjectStore " + y.Name
			}
		}
		return y
	}
	return nil
}

// checkCertificate says why gateways cannot show the certificate: not at all, or not yet.
func (p *planner) checkCertificate(x *storePlan) (none engine.Objection) {
	if x.tls() == "" || !p.reachable() || x.DeletionTimestamp != nil {
		return none
	}
	c, known := p.seen.Certificates[x.tls()]
	switch {
	case !known:
		return engine.Wait(api.ReasonDependencyNotReady, "cannot read Secret %s with the certificate", x.tls())
	case !c.Problem.None():
		return c.Problem
	case !p.now.Before(c.NotAfter):
		return engine.Refusal(api.ReasonInvalidSpec, "the certificate in Secret %s expired on %s: replace it",
			x.tls(), certificate.Day(c.NotAfter))
	}
	return none
}

// noPort says whether a store without gateways can have none, because others have its port on each host, or will.
func (p *planner) noPort(x *storePlan) bool {
	places, toCome := p.placesFor(x.service)
	return toCome == 0 && len(x.taken) > 0 && !slices.ContainsFunc(places, func(at place) bool { return x.taken[at.host] == "" })
}

func (x *storePlan) refusePort() {
	var hosts []string
	for host, who := range x.taken {
		hosts = append(hosts, fmt.Sprintf("%s (%s)", host, who))
	}
	slices.Sort(hosts)
	x.refusals.refuse(api.ReasonConflict, "port %d is in use on each host that may run a gateway, such as %s: choose "+
		"another spec.gateways.port, or other hosts", x.port(), words.Few(hosts))
}

// checkStores tells what is wrong with stores, after gateways were given places.
func (p *planner) checkStores() {
	for _, x := range p.stores {
		if x.DeletionTimestamp != nil {
			continue
		}
		if s := x.service; len(s.seats) == 0 && !s.held && len(x.taken) > 0 {
			x.refusePort()
		}
		for _, o := range x.refusals {
			p.object(x.object(), o)
			holdNew(x.pools)
		}
		p.object(x.object(), x.waits...)
	}
}
