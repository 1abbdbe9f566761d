package ceph

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const (
	// greetTime is how long a mon may take to greet. One that is well does so at once.
	greetTime = 500 * time.Millisecond
	// greetAgain is how long after that the mons are asked again: whoever asks for the restart of one has the cluster looked at, too, and waits.
	greetAgain = 5 * time.Second
)

// greeted is which mons did not greet when they were asked last, and when that was.
type greeted struct {
	mu   sync.Mutex
	at   time.Time
	mute []string
}

// muteMons asks the mons of a cluster, unless they were asked just now.
func (d *Driver) muteMons(ctx context.Context, c *conn, view *engine.View) []string {
	c.greeted.mu.Lock()
	defer c.greeted.mu.Unlock()
	if now := c.now(); c.greeted.at.IsZero() || now.Sub(c.greeted.at) >= greetAgain {
		c.greeted.mute = d.mute(ctx, view)
		c.greeted.at = c.now()
	}
	return c.greeted.mute
}

// mute are the mons that run by their agents' word and do not greet who connects, sorted. They are asked only when Ceph as a whole does not answer, which
// does not say who is to blame, and all at one time. What stands in the place of Ceph has no addresses.
func (d *Driver) mute(ctx context.Context, view *engine.View) []string {
	greet := d.Greet
	if greet == nil && d.Dial == nil {
		greet = rados.Greet
	}
	if greet == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var mute []string
	for _, m := range runningMons(view) {
		wg.Go(func() {
			if greet(ctx, net.JoinHostPort(m.Address, monset.PortV2)) != nil {
				mu.Lock()
				defer mu.Unlock()
				mute = append(mute, m.ID)
			}
		})
	}
	wg.Wait()
	slices.Sort(mute)
	return mute
}

func runningMons(view *engine.View) []member {
	have := view.DaemonsByName()
	return slices.DeleteFunc(slices.Clone(monset.Of(view.Daemons)), func(m member) bool {
		d := have[daemonName(view.Cluster.Name, "mon", m.ID)]
		return d == nil || d.Status.State != api.DaemonRunning
	})
}

// silentMon is what is known of a mon that runs by its agent's word while Ceph does not answer.
type silentMon struct {
	*api.Daemon
	// fresh is set of one that was started a moment ago, and mute of one that does not answer itself.
	fresh, mute bool
}

func (p *planner) silentMons() (all []silentMon) {
	for _, m := range p.members {
		d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]
		if d == nil || d.Status.State != api.DaemonRunning {
			continue
		}
		fresh := d.Status.Started == nil || p.now.Sub(d.Status.Started.Time) < p.waits.DaemonFresh
		all = append(all, silentMon{d, fresh, !fresh && p.seen != nil && slices.Contains(p.seen.Mute, m.ID)})
	}
	return all
}

// idleMons are the members that do not run by their agents' word.
func (p *planner) idleMons() (names []string) {
	for _, m := range p.members {
		if d := p.have[daemonName(p.cluster.Name, "mon", m.ID)]; d == nil || d.Status.State != api.DaemonRunning {
			names = append(names, fmt.Sprintf("mon.%s on %s", m.ID, m.Host))
		}
	}
	return names
}

// muteMons are those that do not answer, and where they are.
func (p *planner) muteMons() (names []string) {
	for _, m := range p.silentMons() {
		if m.mute {
			names = append(names, fmt.Sprintf("%s on %s", label(m.Daemon), m.Spec.Host))
		}
	}
	return names
}

// muteText says which mons do not answer; empty where that is known of none.
func muteText(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " does not answer"
	}
	return words.Few(names) + " do not answer"
}

// tellSilence says of each mon that runs why it is not as wanted while Ceph does not answer, and what helps. Of a new cluster it waits until its mons have
// had the time to find each other.
func (p *planner) tellSilence() {
	if p.seen != nil && (p.seen.Reachable || p.seen.Refused) {
		return // mons of another cluster, or they answer: the status says so
	}
	all := p.silentMons()
	answering := slices.ContainsFunc(all, func(m silentMon) bool { return !m.mute && !m.fresh })
	p.silence.from = len(p.plan.Decisions)
	for _, m := range all {
		if p.toldSilent(m) {
			p.object(label(m.Daemon), p.silenceOf(m, answering))
		}
	}
	p.silence.to = len(p.plan.Decisions)
}

// decided are decisions of a plan that follow each other, by their places in it.
type decided struct{ from, to int }

// in are these decisions.
func (d decided) in(p *engine.Plan) *engine.Plan {
	return &engine.Plan{Decisions: p.Decisions[d.from:d.to]}
}

// others are all but these.
func (d decided) others(p *engine.Plan) *engine.Plan {
	return &engine.Plan{Decisions: slices.Concat(p.Decisions[:d.from], p.Decisions[d.to:])}
}

// orderSilence puts what is said of each mon behind what it comes to, the quorum. Where mons are known not to answer, that is the most telling of all;
// else what was said before is, as that a mon fails or a host is silent.
func (p *planner) orderSilence(before, quorum []string) []string {
	silence := p.silence.in(p.plan).Open()
	if len(p.muteMons()) > 0 {
		return slices.Concat(quorum, silence, before)
	}
	return slices.Concat(before, quorum, silence)
}

func (p *planner) toldSilent(m silentMon) bool { return !m.fresh || p.founded() }

// silenceOf says what is known of one mon. Where none answers, it may be the way to them: then a restart would do harm.
func (p *planner) silenceOf(m silentMon, answering bool) engine.Objection {
	restart := fmt.Sprintf("restart it with 'holdfast daemon restart %s --force'", m.Name)
	switch h := p.hosts[m.Spec.Host]; {
	case m.fresh:
		return engine.Wait(api.ReasonStarting, "it has just started; the mons have no quorum yet")
	case m.mute && (h == nil || !h.AgentHeard()):
		return engine.Wait(api.ReasonAgentDisconnected,
			"it does not answer, and the agent of host %s is disconnected: check that the machine is on", m.Spec.Host)
	case m.mute && answering:
		return engine.Wait(api.ReasonDaemonHangs,
			"its process runs but does not answer, so it is not in the quorum: %s", restart)
	case m.mute:
		return engine.Wait(api.ReasonDaemonHangs, "no mon answers, although their processes run: check that the leader "+
			"reaches the network of the mons; if it does, the mons hang: %s", restart)
	}
	if others := muteText(p.muteMons()); others != "" {
		return engine.Wait(api.ReasonQuorumAtRisk, "it runs and answers, but the mons have no quorum: %s", others)
	}
	if others := p.idleMons(); len(others) > 0 {
		return engine.Wait(api.ReasonQuorumAtRisk, "it runs, but the mons have no quorum without %s", words.Few(others))
	}
	return engine.Wait(api.ReasonQuorumAtRisk, "it runs, but the mons have no quorum: check the network between their "+
		"hosts, and the clocks; the end of its log: 'holdfast logs %s'", m.Name)
}
