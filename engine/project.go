package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// A projection is bounded: one that takes more steps than this goes round in a circle, mostly. A bring-up takes three, and the restart of a daemon two. To
// plan a step takes longer the more daemons there are, so that of many fewer steps are shown: maxPlanned daemons are looked at in all of them, but in minSteps.
const (
	minSteps, maxSteps = 32, 1000
	maxPlanned         = 50_000
)

func mostSteps(view *View) int {
	return max(minSteps, min(maxSteps, maxPlanned/max(1, len(view.Daemons))))
}

// Planner is the part of a Driver that decides. It is pure: it reads nothing but its arguments, and equal arguments give equal
// results.
type Planner interface {
	// Plan says what to change.
	Plan(view *View, now time.Time) *Plan
	// Foresee returns what the storage system will say of itself when it was asked for these commands, in the view before,
	// and its daemons are as they are in the view after, if all of that comes out well. It returns before.System where that
	// cannot be known. It serves plans that are shown; what is carried out is planned from what the system really says.
	Foresee(before, after *View, commands []Command) any
}

// Projection is everything that will happen to a cluster, as far as it can be known now, if it comes out well.
type Projection struct {
	// Steps are the plans that change something, in their order. Each begins when the one before it is done.
	Steps []ProjectedStep
	// First is the plan that is made now, and Last the one when all steps are done. They may be one.
	First, Last *Plan
	// Open says, in sentences, why more may happen than the steps tell.
	Open []string
}

// ProjectedStep is a plan with the view that it was made of.
type ProjectedStep struct {
	View *View
	Plan *Plan
}

// Risk is the highest risk of all steps.
func (p *Projection) Risk() api.Risk {
	risk := api.RiskNone
	for _, s := range p.Steps {
		risk = HigherRisk(risk, s.Plan.Risk())
	}
	return risk
}

// Project tells everything that will happen to a cluster, not only the first plan: it carries out plan after plan in the view
// alone, and takes it that agents bring their daemons to where they are wanted and that the storage system takes notice, until
// nothing is left to do. It is pure, and it ends. All plans are made of one moment, but for pauses (Plan.Pause): another deadline that
// passes meanwhile would be one of a world in which nobody reports.
func Project(planner Planner, view *View, now time.Time) *Projection {
	p := &Projection{}
	if mode := view.Cluster.ModeOf(); mode != api.ClusterActive {
		p.First = &Plan{}
		p.Last = p.First
		p.Open = append(p.Open, fmt.Sprintf("the cluster is in mode %s: nothing changes until spec.mode is Active", mode))
		return p
	}
	most := mostSteps(view)
	for range most {
		plan := settleRisks(view, planner.Plan(view, now))
		if p.First == nil {
			p.First = plan
		}
		p.Last = plan
		if plan.Refused || plan.Finished {
			return p
		}
		if !plan.Empty() {
			p.Steps = append(p.Steps, ProjectedStep{view, plan})
		}
		next := view.outcome(planner, plan)
		if plan.Empty() && sameWorld(view, next) && plan.Pause > 0 {
			now = now.Add(plan.Pause)
			continue
		}
		if plan.Empty() && sameWorld(view, next) {
			p.Open = waits(plan)
			return p
		}
		if _, stuck := view.carried(plan.Commands); stuck != "" && sameWorld(view, next) {
			p.Open = append(waits(plan), stuck)
			return p
		}
		view = next
	}
	p.Open = append(waits(p.Last), fmt.Sprintf("more than %d steps follow each other: later steps are not shown", most))
	return p
}

// waits are what a plan waits for.
func waits(p *Plan) []string {
	return sentences(p.Decisions, func(d api.Decision) bool { return d.Verdict == api.VerdictWait })
}

// sameWorld says whether nothing moved from one view to the next that a plan could depend on.
func sameWorld(a, b *View) bool {
	return equality.Semantic.DeepEqual(a.Daemons, b.Daemons) && equality.Semantic.DeepEqual(a.Resources, b.Resources) &&
		equality.Semantic.DeepEqual(a.System, b.System)
}

// outcome is the view when a plan was carried out, and everything came out well.
func (v *View) outcome(planner Planner, p *Plan) *View {
	next := v.after(p)
	if next == v { // after copies only what it changes
		copied := *v
		next = &copied
	}
	next.Secrets = slices.Clone(v.Secrets)
	for _, s := range p.Secrets {
		if s.Gone {
			next.Secrets = slices.DeleteFunc(next.Secrets, func(have SecretInfo) bool { return have.Name == s.Name })
			continue
		}
		next.Secrets = append(next.Secrets, SecretInfo{Name: s.Name, Annotations: s.Annotations})
	}
	next.Daemons, next.used = v.daemonsAfter(p), nil
	next.Claims = append(slices.Clone(v.Claims), newClaims(v.Cluster, p)...)
	slices.SortFunc(next.Claims, compareClaims)
	commands, _ := v.carried(p.Commands)
	next.System = planner.Foresee(v, next, commands)
	return next
}

// carried are the commands of a plan that are carried out, and why not all of them: an agent that is silent carries out none, and
// holds up those that rely on them.
func (v *View) carried(commands []Command) (done []Command, stuck string) {
	held := heldLines{}
	for _, c := range commands {
		why := v.noAgent(c)
		switch {
		case held.up(c):
		case why == "":
			done = append(done, c)
		default:
			held[c.Line] = true
			stuck = cmp.Or(stuck, fmt.Sprintf("%q of %s is not run: %s", c.Verb, c.Object, why))
		}
	}
	return done, stuck
}

// daemonsAfter are the daemons when the plan was carried out and the agents have done their part. They share with those of before what no step changes in
// place.
func (v *View) daemonsAfter(p *Plan) []api.Daemon {
	changed := map[string]*DaemonChange{}
	for i := range p.Daemons {
		changed[p.Daemons[i].Daemon.Name] = &p.Daemons[i]
	}
	var daemons []api.Daemon
	for i := range v.Daemons {
		copied := v.Daemons[i]
		d := &copied
		c := changed[d.Name]
		delete(changed, d.Name)
		switch {
		case v.Gone[d.Spec.Host] && (d.DeletionTimestamp != nil || removes(p, d.Name)):
			continue
		case !v.heard(d.Spec.Host) && (c != nil || removes(p, d.Name)):
			v.told(d, c, p)
		case d.DeletionTimestamp != nil && v.heard(d.Spec.Host) || removes(p, d.Name):
			continue
		case c != nil:
			c.write(d)
			ran := d.Status.State == api.DaemonRunning
			brought(d)
			v.release(d, ran)
		case v.heard(d.Spec.Host) && onItsWay(d):
			brought(d)
		}
		daemons = append(daemons, *d)
	}
	for _, c := range p.Daemons {
		if changed[c.Daemon.Name] != nil {
			daemons = append(daemons, *v.placed(c))
		}
	}
	slices.SortFunc(daemons, func(a, b api.Daemon) int { return compareKeys(keyOf(&a), keyOf(&b)) })
	return daemons
}

// write makes the change of a daemon that is there.
func (c *DaemonChange) write(d *api.Daemon) {
	if generation, _ := leadermemory.Write(d, &c.Daemon); generation {
		d.Generation++
	}
}

// told changes what is wanted of a daemon whose agent does not hear of it.
func (v *View) told(d *api.Daemon, c *DaemonChange, p *Plan) {
	if c != nil {
		c.write(d)
	}
	if removes(p, d.Name) && d.DeletionTimestamp == nil {
		t := v.Cluster.CreationTimestamp
		d.DeletionTimestamp = &t
	}
}

// placed is a new daemon, brought to where it is wanted.
func (v *View) placed(c DaemonChange) *api.Daemon {
	d := DaemonFor(v.Cluster, c)
	d.Generation = 1
	if v.heard(d.Spec.Host) {
		brought(d)
		v.release(d, false)
	}
	return d
}

func removes(p *Plan, name string) bool {
	return slices.ContainsFunc(p.Remove, func(r Removal) bool { return r.Name == name })
}

// heard says whether a host's agent can be expected to act.
func (v *View) heard(host string) bool {
	i := slices.IndexFunc(v.Hosts, func(h api.Host) bool { return h.Name == host })
	return i >= 0 && v.Hosts[i].AgentHeard()
}

// onItsWay says whether a daemon is not where it is wanted and nothing is known to be wrong with it.
func onItsWay(d *api.Daemon) bool {
	switch d.Status.State {
	case api.DaemonFailed, api.DaemonBackOff:
		return false
	default:
		return d.Status.State != d.Spec.State.Reached() || d.Status.ObservedGeneration != d.Generation
	}
}

// brought is what an agent makes of a daemon in the end.
func brought(d *api.Daemon) {
	d.Status.State, d.Status.ObservedGeneration, d.Status.Message = d.Spec.State.Reached(), d.Generation, ""
}

// release is the one that a process runs: what was installed when it started.
func (v *View) release(d *api.Daemon, ran bool) {
	switch i := slices.IndexFunc(v.Hosts, func(h api.Host) bool { return h.Name == d.Spec.Host }); {
	case d.Status.State != api.DaemonRunning:
		d.Status.Version = ""
	case !ran && i >= 0:
		d.Status.Version = v.Hosts[i].Status.Release(d.Spec.Type)
	}
}

// newClaims are the claims of the daemons that a plan places.
func newClaims(cluster *api.StorageCluster, p *Plan) []Claim {
	var claims []Claim
	for i := range p.Daemons {
		if c := &p.Daemons[i]; c.New {
			claims = append(claims, daemonClaims(&c.Daemon, clusterKey(cluster))...)
		}
	}
	return claims
}

func keyOf(d *api.Daemon) types.NamespacedName { return key(d.Namespace, d.Name) }
