package ceph

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// putMirrors writes the statuses of RBDMirrors, and lets those go that are gone.
func (p *planner) putMirrors() {
	for _, x := range p.mirrors {
		next := x.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = x.Generation
		if x.DeletionTimestamp != nil {
			s.State, s.Message = api.ResourceDeleting, "deletion: removing its daemons and keys"
			if len(p.have) == 0 || len(p.membersOf(&x.service.crew)) == 0 && !p.mirrorKeys(x) {
				p.plan.LetGo(x.RBDMirror)
				continue
			}
			p.decide(api.VerdictWait, api.ReasonDeleting, x.object(), "%s", s.Message)
		} else {
			p.tellMirror(x, s)
			engine.Accept(next, x.refusals.texts(), p.now)
		}
		p.plan.PutResource(x.RBDMirror, next)
	}
}

// mirrorKeys says whether keys of daemons of an RBDMirror are left, or that of other clusters, which goes with the last one.
func (p *planner) mirrorKeys(x *mirrorPlan) bool {
	last := !slices.ContainsFunc(p.mirrors, func(m *mirrorPlan) bool { return m.DeletionTimestamp == nil })
	return slices.ContainsFunc(p.view.Secrets, func(s engine.SecretInfo) bool {
		entity := s.Annotations[AnnotationEntity]
		c, id := p.crewOf(entity)
		return id != "" && c == &x.service.crew || last && entity == rbdmirror.PeerEntity
	})
}

// tellMirror says how the mirroring stands.
func (p *planner) tellMirror(x *mirrorPlan, s *api.RBDMirrorStatus) {
	up := x.service.readyOf(p.membersOf(&x.service.crew))
	s.Daemons = fmt.Sprintf("%d/%d", up, max(x.service.count, len(x.service.seats)))
	_, r := p.mirrorSpeaker(x)
	if r != nil {
		s.Pools = nil
		var summary []string
		for _, pool := range x.Spec.Pools {
			have, known := r.Pools[pool.Name]
			if !known {
				s.Pools = append(s.Pools, remembered(x.told(pool.Name))...)
				continue
			}
			st := api.RBDMirrorPoolStatus{Name: pool.Name, Health: have.Health, Images: words.Counts(have.Images)}
			for _, peer := range have.Peers {
				st.Peers = append(st.Peers, strings.TrimSpace(peer.Site+" "+peer.Direction))
			}
			slices.Sort(st.Peers)
			p.notePool(x, &pool, &have, &st)
			s.Pools = append(s.Pools, st)
			summary = append(summary, strings.TrimSuffix(strings.TrimSpace(pool.Name+" "+st.Health+" ("+st.Images)+")", " ()"))
		}
		s.Summary = words.Cut(strings.Join(summary, ", "), 1024)
	}
	p.mirrorState(x, up).Put(&s.ResourceStatus)
}

// remembered is what the status goes on to say of a pool that could not be asked about, as it stands nowhere else.
func remembered(was api.RBDMirrorPoolStatus) []api.RBDMirrorPoolStatus {
	if was.SnapshotInterval == "" && was.PeerToken == "" {
		return nil
	}
	return []api.RBDMirrorPoolStatus{{Name: was.Name, SnapshotInterval: was.SnapshotInterval, PeerToken: was.PeerToken}}
}

// mirrorState says whether what is declared is mirrored, and why not.
func (p *planner) mirrorState(x *mirrorPlan, up int) writes.Word {
	word := func(state api.ResourceState, text string) writes.Word { return writes.Word{State: state, Text: text} }
	fresh := neverServed(&x.Status.ResourceStatus)
	problems := slices.Concat(x.refusals, x.waits).texts()
	_, r := p.mirrorSpeaker(x)
	switch {
	case fresh && len(problems) > 0:
		return word(api.ResourcePending, strings.Join(problems, "; "))
	case !p.reachable() && fresh:
		return word(api.ResourcePending, "Ceph does not answer yet")
	case !p.reachable():
		return word(api.ResourceOffline, "Ceph does not answer")
	case r == nil && fresh:
		return word(api.ResourceCreating, "its daemons are starting")
	case r == nil:
		return word(api.ResourceOffline, "none of its rbd-mirror daemons answers: no images are fetched")
	}
	is := word(api.ResourceOnline, strings.Join(problems, "; "))
	worsen := func(to api.ResourceState, format string, args ...any) {
		is = is.And(word(to, fmt.Sprintf(format, args...)))
	}
	if want := max(x.service.count, len(x.service.seats)); up < want {
		worsen(api.ResourceDegraded, "%d of %s run", up, words.Plural(want, "rbd-mirror"))
	}
	var pools []writes.Part
	for i := range x.Spec.Pools {
		pool := &x.Spec.Pools[i]
		have, known := r.Pools[pool.Name]
		making := map[bool]api.ResourceState{true: api.ResourceCreating, false: api.ResourceDegraded}[fresh]
		switch failure := p.failureOf(mirrorLine(x, pool.Name)); {
		case !failure.None():
			worsen(making, "pool %s: %s", pool.Name, failure.Message)
		case !known:
			worsen(making, "pool %s: mirroring state unknown yet %s", pool.Name, r.Problem)
		case have.Mode != modeWord(pool):
			worsen(making, "pool %s is not mirrored yet", pool.Name)
		case pool.PeerSecret != "" && !have.Fetches():
			worsen(making, "pool %s does not fetch from the other cluster yet", pool.Name)
		case p.otherToken(x, pool, &have) != "":
			worsen(api.ResourceDegraded, "%s", p.otherToken(x, pool, &have))
		case have.Health != "OK" && (pool.PeerSecret != "" || have.Health == "ERROR"): // of images that are only fetched from Ceph knows less
			worsen(making,
				"mirroring of pool %s is %s (%s): see 'rbd mirror pool status --verbose %s' in 'holdfast ceph shell'",
				pool.Name, have.Health, words.Counts(have.Images), pool.Name)
		}
		pools = append(pools, poolPart(p, pool.Name))
	}
	is = is.WithPools(pools)
	is.Text = words.Cut(is.Text, 1024)
	return is
}

// poolPart is how a pool stands that somebody uses, by its name. One that is lost, or not made yet,
// is waited for.
func poolPart(p *planner, name string) writes.Part {
	have := p.poolNamed(name)
	if !p.poolsKnown() || have == nil {
		return writes.Part{Name: name, Is: writes.Word{State: api.ResourceOnline}}
	}
	facts := poolFacts(p, have)
	facts.Declared = slices.ContainsFunc(p.pools, func(x *poolPlan) bool { return x.Name == name })
	is := writes.JudgePool(clusterFacts(p), facts)
	if is.State != api.ResourceOnline {
		is.State = api.ResourceDegraded // the others are mirrored
	}
	return writes.PartOf(facts, is)
}
