package ceph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/certificate"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// putStores writes the statuses of ObjectStores, and lets those go that are gone.
func (p *planner) putStores() {
	for _, x := range p.stores {
		next := x.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = x.Generation
		if x.DeletionTimestamp != nil {
			if p.dropStore(x, s) {
				p.plan.LetGo(x.ObjectStore)
				continue
			}
		} else {
			p.tellStore(x, s)
			p.setLost(next, p.poolsKnown(), x.lost)
			engine.Accept(next, x.refusals.texts(), p.now)
		}
		p.plan.PutResource(x.ObjectStore, next)
	}
}

// tellStore says how a store stands.
func (p *planner) tellStore(x *storePlan, s *api.ObjectStoreStatus) {
	p.storeState(x).Put(&s.ResourceStatus)
	up, all := p.gatewaysUp(x)
	s.Gateways = fmt.Sprintf("%d/%d", up, all)
	s.Endpoints = p.endpoints(x)
	if !p.poolsKnown() || len(x.refusals) > 0 {
		return
	}
	s.CertificateExpires = nil
	if c := p.seen.Certificates[x.tls()]; x.tls() != "" && c.Fingerprint != "" {
		s.CertificateExpires = &metav1.Time{Time: c.NotAfter}
	}
	if s.CertificateExpires.Equal(x.Status.CertificateExpires) {
		s.CertificateExpires = x.Status.CertificateExpires
	}
	s.Pools = nil
	for _, pool := range x.pools {
		if pool.have != nil {
			s.Pools = append(s.Pools, api.ObjectStorePoolStatus{Name: pool.Name, ID: pool.have.ID})
		}
	}
	if u, known := p.seen.PoolFacts.Usage[rgw.PoolData(x.Name)]; known {
		s.Used, s.Available = writes.Rounded(u.Stored), writes.Rounded(u.Available)
	}
	if equality.Semantic.DeepEqual(s, &x.Status) {
		*s = x.Status
	}
}

// endpoints are the URLs of the gateways that there are to be.
func (p *planner) endpoints(x *storePlan) []string {
	scheme := "http://"
	if x.tls() != "" {
		scheme = "https://"
	}
	var urls []string
	for _, at := range x.service.seats {
		url := scheme + x.listens(at)
		if d := p.have[p.daemonOf(&x.service.crew, at.id)]; d != nil && x.frozen {
			url = d.Spec.Parameters[rgw.ParamURL]
		}
		urls = append(urls, url)
	}
	return urls
}

// gatewaysUp counts the gateways that answer, and those that there are to be: where no number is declared as many as find a place.
func (p *planner) gatewaysUp(x *storePlan) (up, all int) {
	for _, at := range x.service.seats {
		if x.service.there(at.id) {
			up++
		}
	}
	all = len(x.service.seats)
	if x.Spec.Gateways.Placement.Count != nil {
		all = max(all, x.service.count)
	}
	return up, all
}

// storeState says whether a store can be used, and why not.
func (p *planner) storeState(x *storePlan) writes.Word {
	word := func(state api.ResourceState, text string) writes.Word { return writes.Word{State: state, Text: text} }
	problems := slices.Concat(x.refusals, x.waits).texts()
	fresh := neverServed(&x.Status.ResourceStatus)
	switch {
	case !p.poolsKnown() && !fresh:
		return word(api.ResourceOffline, "Ceph does not answer")
	case len(x.lost) > 0:
		return word(api.ResourceOffline, strings.Join(problems, "; "))
	case fresh && len(problems) > 0:
		return word(api.ResourcePending, strings.Join(problems, "; "))
	case !p.poolsKnown():
		return word(api.ResourcePending, "Ceph does not answer yet")
	case x.service.held && p.cluster.ModeOf() == api.ClusterObserved:
		return word(api.ResourcePending, "the cluster is in mode Observed: the pools do not exist and are not created")
	}
	is := word(api.ResourceOnline, strings.Join(problems, "; ")).WithPools(poolParts(p, x.pools, p.poolState))
	up, all := p.gatewaysUp(x)
	gateways := &writes.Store{Up: up, All: all, Held: len(x.service.seats) == 0 && x.service.held, Fresh: fresh}
	if up < all || all == 0 {
		gateways.Silent = p.silentGateways(x)
	}
	for _, at := range x.service.seats {
		if !x.service.there(at.id) {
			gateways.Failing = append(gateways.Failing, "rgw."+at.id)
		}
	}
	is = is.And(writes.JudgeStore(gateways))
	if !fresh && (is.State == api.ResourceCreating || is.State == api.ResourcePending) {
		is.State = map[bool]api.ResourceState{true: api.ResourceDegraded, false: api.ResourceOffline}[up > 0]
	}
	return is.Also(p.certificateWord(x)...)
}

// silentGateways says why gateways do not answer.
func (p *planner) silentGateways(x *storePlan) string {
	up, all := p.gatewaysUp(x)
	var why []string
	for _, at := range x.service.seats {
		d := p.have[p.daemonOf(&x.service.crew, at.id)]
		if !x.service.there(at.id) {
			why = append(why, fmt.Sprintf("rgw.%s on host %s %s", at.id, at.host, p.whySilent(d)))
		}
	}
	if n := all - len(x.service.seats); n > 0 {
		why = append(why, "no host for "+words.Plural(n, "further gateway"))
	}
	if len(why) == 0 {
		return "no host for a gateway yet"
	}
	return fmt.Sprintf("%d of %d gateways answer: %s", up, all, words.Few(why))
}

func (p *planner) whySilent(d *api.Daemon) string {
	switch {
	case d == nil:
		return "is being created"
	case !p.hosts[d.Spec.Host].AgentHeard():
		return "unknown: its agent is disconnected"
	case told(d):
		return "is stopped"
	case d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonBackOff:
		return "is " + string(d.Status.State) + words.Colon(d.Status.Message)
	}
	if r := p.seen.Gateways[d.Name]; r != nil && r.Problem != "" && d.Status.State == api.DaemonRunning {
		return "runs, but " + r.Problem
	}
	if d.Status.State == api.DaemonRunning && d.Status.Message != "" {
		return "state unknown: " + d.Status.Message
	}
	return "is starting"
}

// certificateWord warns of a certificate that ends soon.
func (p *planner) certificateWord(x *storePlan) []string {
	c := p.seen.Certificates[x.tls()]
	if x.tls() == "" || c.Fingerprint == "" || c.NotAfter.Sub(p.now) > certificate.ExpiresSoon {
		return nil
	}
	return []string{fmt.Sprintf("its certificate expires on %s: replace it in Secret %s",
		certificate.Day(c.NotAfter), x.tls())}
}

// dropStore takes a store away that is being deleted; it says whether the ObjectStore may go.
func (p *planner) dropStore(x *storePlan, s *api.ObjectStoreStatus) (gone bool) {
	s.State, s.Message = api.ResourceDeleting, ""
	daemons := p.membersOf(&x.service.crew)
	wipe := x.Spec.DeletionPolicy == api.DeletionWipe
	var wait engine.Objection
	switch {
	case len(p.have) == 0:
		return true
	case len(x.users) > 0:
		wait = engine.Wait(api.ReasonInUse, "deletion waits for the deletion of %s (%s)",
			words.Plural(len(x.users), "ObjectStoreUser"), words.Few(x.users))
	case p.plan.Refused:
		wait = waitsForCluster(p.view.Cluster.Name)
	case x.service.count > 0:
		return p.emptyStore(x, s)
	case len(daemons) > 0:
		wait = engine.Wait(api.ReasonStopping, "deletion: stopping %s", words.Plural(len(daemons), "gateway"))
	case !wipe:
		return true
	case !p.poolsKnown():
		wait = engine.Wait(api.ReasonNotAnswering, "deletion waits: Ceph does not answer")
	default:
		return p.dropStorePools(x, s)
	}
	s.Message = wait.Message
	p.object(x.object(), wait)
	return false
}

// emptyStore has a gateway look for buckets, as long as there are gateways.
func (p *planner) emptyStore(x *storePlan, s *api.ObjectStoreStatus) (gone bool) {
	word := wordOf(string(x.UID), strconv.FormatInt(x.Generation, 10), "empty")
	if p.did(x.object(), word) || p.neverUsed(x) {
		// The API keeps whole seconds.
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: storeEmpty, Status: metav1.ConditionTrue, Reason: "NoBuckets", Message: "it has no buckets", ObservedGeneration: x.Generation,
			LastTransitionTime: metav1.Time{Time: p.now.Truncate(time.Second)},
		})
		return false
	}
	wait := engine.Wait(api.ReasonTaskInProgress, "deletion: checking for buckets")
	g := p.gatewayOf(x.Name)
	if failure := p.failureOf(x.object()); !failure.None() {
		wait = engine.Wait(failure.Reason, "deletion waits: %s", failure.Message)
	}
	if g == "" {
		wait = engine.Wait(api.ReasonNotAnswering,
			"deletion waits: no gateway answers, so Holdfast cannot check for buckets; start a gateway ('holdfast get "+
				"daemons'), or set deletionPolicy to Retain, which keeps the data")
	} else {
		p.gatewayCommand(api.ReasonDeleting, x.object(), g, rgw.VerbFindBuckets, "", map[string]string{rgw.ParamWord: word},
			"deleted with its data")
	}
	s.Message = wait.Message
	p.object(x.object(), wait)
	return false
}

// neverUsed says whether a store that is being deleted has no gateways, and nothing was ever written to it, or all of it is deleted.
func (p *planner) neverUsed(x *storePlan) bool {
	if len(p.membersOf(&x.service.crew)) > 0 || !p.poolsKnown() {
		return false
	}
	usage, known := p.seen.PoolFacts.Usage[rgw.PoolData(x.Name)]
	return p.poolNamed(rgw.PoolData(x.Name)) == nil || known && usage.Stored == 0
}

func (p *planner) dropStorePools(x *storePlan, s *api.ObjectStoreStatus) (gone bool) {
	gone = true
	for _, pool := range x.pools {
		if pool.have == nil || !pool.owns() {
			continue
		}
		gone = false
		s.Message = p.failureOf(pool.line()).Message
		p.poolCommand(pool, api.ReasonDeleting, verbPoolDelete, api.RiskNone, pool.byID(),
			"the ObjectStore was deleted with deletionPolicy Wipe")
	}
	return gone
}
