package ceph

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// An OSD that went down and came back up so many times within so long is held back. They are Ceph's own numbers for an OSD that was marked down
// although its process lived, and that then ends itself (osd_max_markdown_count, osd_max_markdown_period); its agent starts it again. Each time
// all its placement groups peer anew, twice.
const (
	flapCount  = 5
	flapWindow = 10 * time.Minute
)

// flapsNow adds to what is known of an OSD that it came back, if it did since.
func flapsNow(d *api.Daemon, view *engine.View, osds map[int]OSD, now time.Time, w waits.Waits) []memory.Flap {
	all, seen := memory.FlapsOf(d), osdOf(d, osds)
	last := 0
	if len(all) > 0 {
		last = all[len(all)-1].Epoch
	}
	if !seen.Up || seen.DownAt <= last || told(d) {
		return all
	}
	all = slices.DeleteFunc(all, func(f memory.Flap) bool { return now.Sub(f.At) >= flapWindow })
	if othersFell(d, view.Daemons, osds) || restarted(d, view.Actions, now, w) {
		return append(all, memory.Flap{Epoch: seen.DownAt})
	}
	return append(all, memory.Flap{Epoch: seen.DownAt, At: now})
}

// osdOf is what Ceph says of a Daemon's OSD; nothing where it knows another one by the number.
func osdOf(d *api.Daemon, osds map[int]OSD) OSD {
	id, err := strconv.Atoi(d.Spec.ID)
	if seen := osds[id]; err == nil && seen.UUID == d.Spec.Parameters[ParamOSDUUID] {
		return seen
	}
	return OSD{}
}

// oneEvent is how many seconds after each other OSDs of several hosts go down by one cause.
const oneEvent = 30

// othersFell says whether an OSD of another host is down, or went down at about the same time: a loss of power, or of the network between hosts.
func othersFell(d *api.Daemon, daemons []api.Daemon, osds map[int]OSD) bool {
	down := osdOf(d, osds).DownStamp
	return slices.ContainsFunc(daemons, func(x api.Daemon) bool {
		seen := osdOf(&x, osds)
		together := seen.DownStamp > 0 && max(down-seen.DownStamp, seen.DownStamp-down) < oneEvent
		return x.Spec.Type == TypeOSD && x.Spec.Host != d.Spec.Host && !told(&x) && seen.In && (!seen.Up || together)
	})
}

// restarted says whether an OSD that is found to be back was away because somebody asked for its restart. When Ceph marked it down does not tell:
// of an OSD that ends in good order Ceph keeps the time when it was down before that.
func restarted(d *api.Daemon, actions []api.Action, now time.Time, w waits.Waits) bool {
	return slices.ContainsFunc(actions, func(a api.Action) bool {
		switch s := a.Status; {
		case a.Spec.Kind != api.ActionDaemonRestart || a.Namespace != d.Namespace || a.Spec.Target != "daemon/"+d.Name || s.Started == nil:
			return false
		case s.Finished == nil:
			return now.Sub(s.Started.Time).Abs() <= w.RestartEnd
		default: // by the clock of its agent, which may be ahead
			return now.Sub(s.Finished.Time).Abs() <= w.RestartBack
		}
	})
}

// flapping says whether an OSD is to be held back.
func flapping(all []memory.Flap, now time.Time) bool {
	recent := slices.DeleteFunc(slices.Clone(all), func(f memory.Flap) bool { return now.Sub(f.At) >= flapWindow })
	return len(recent) >= flapCount
}

// heldSince is since when an OSD has been held back; zero while it is not, or shall be tried again.
func heldSince(d *api.Daemon) time.Time {
	text := memory.Of(d, memory.HeldSince)
	if text == "" {
		return time.Time{}
	}
	since, err := time.Parse(time.RFC3339, text)
	again, wrong := time.Parse(time.RFC3339, d.Annotations[api.AnnotationStart])
	if err != nil || wrong == nil && !again.Before(since) {
		return time.Time{}
	}
	return since
}

func held(d *api.Daemon) bool { return !heldSince(d).IsZero() }

// resting says whether a daemon stays stopped, held back or by the word of a person: nobody waits for it.
func resting(d *api.Daemon) bool { return held(d) || asked.Stopped(d) }

// keepStopped keeps the daemons stopped that a person had stopped. All else counts them as down.
func (p *planner) keepStopped() {
	for i := range p.view.Daemons {
		if d := &p.view.Daemons[i]; asked.Stopped(d) {
			p.stop[d.Name] = true
			p.decide(api.VerdictSkip, api.ReasonStopAsked, label(d), "%s", asked.StopText(d))
		}
	}
}

// planFlaps holds back OSDs that go down and come back again and again, as far as data can be used without them, and those of one host at most: what
// makes OSDs of several hosts flap is mostly the network between them, and then to stop them mends nothing. What is counted stands in the Daemons.
func (p *planner) planFlaps() {
	p.held = map[string]time.Time{}
	if p.seen == nil {
		return
	}
	var back []*api.Daemon
	for _, d := range p.daemonsOf(TypeOSD) {
		switch {
		case d.DeletionTimestamp != nil || !held(d) || asked.Stopped(d):
		case p.reachable() && p.seen.hasCheck(checkAvailability):
			p.moving = true
			p.decide(api.VerdictDo, api.ReasonBackInUse, label(d),
				"starting the held-back OSD: data is unavailable, and it may have the missing copy")
		default:
			p.holdBack(d, heldSince(d))
			back = append(back, d)
		}
	}
	for _, d := range p.daemonsOf(TypeOSD) {
		if !p.reachable() || d.DeletionTimestamp != nil || held(d) || told(d) || p.closed(d.Spec.Host) || !flapping(flapsNow(d, p.view, p.seen.OSDs, p.now, p.waits), p.now) {
			continue
		}
		if why := p.mayNotHold(d, back); why != "" {
			p.decide(api.VerdictSkip, api.ReasonDaemonFailing, label(d),
				"flapping (%d times within %v), not held back because %s; check its device and network", flapCount, flapWindow, why)
			continue
		}
		p.holdBack(d, p.now.UTC().Truncate(time.Second))
		back = append(back, d)
	}
}

// holdBack keeps an OSD stopped.
func (p *planner) holdBack(d *api.Daemon, since time.Time) {
	p.held[d.Name], p.stop[d.Name] = since, true
	p.decide(api.VerdictSkip, api.ReasonHeldBack, label(d), "%s", heldText(d, since))
}

func heldText(d *api.Daemon, since time.Time) string {
	return fmt.Sprintf("held back since %s: it went down and came back %d times within %v; check its device (kernel "+
		"log of host %s), log and network, then run 'holdfast daemon start %s' or replace its device",
		since.Format(time.RFC3339), flapCount, flapWindow, d.Spec.Host, label(d))
}

// mayNotHold says why an OSD that flaps cannot be held back now; empty when it can.
func (p *planner) mayNotHold(d *api.Daemon, back []*api.Daemon) string {
	for _, other := range back {
		if other.Spec.Host != d.Spec.Host {
			return label(other) + " on host " + other.Spec.Host + " is already held back"
		}
	}
	switch answer, asked := p.seen.Holdable[label(d)]; {
	case !asked || !answer.covers(p.downSoon()):
		p.moving = true
		return "checking with Ceph whether data stays available without it"
	case !answer.OK:
		p.moving = p.moving || answer.Unknown
		return fmt.Sprintf("Ceph says %q", words.Cut(answer.Reason, maxMessage/4))
	}
	return ""
}

// noteFlaps writes into an OSD's Daemon how often it came back. One that is started after it was stopped begins anew.
func (p *planner) noteFlaps(d, have *api.Daemon) {
	if d.Spec.Type != TypeOSD || have == nil {
		return
	}
	text := memory.Of(have, memory.Flaps)
	switch {
	case !p.reachable():
	case told(have) && d.Spec.State == api.WantRunning && osdOf(have, p.seen.OSDs).DownAt > 0:
		text = memory.FlapsText([]memory.Flap{{Epoch: osdOf(have, p.seen.OSDs).DownAt}})
	case !told(have):
		text = memory.FlapsText(flapsNow(have, p.view, p.seen.OSDs, p.now, p.waits))
	}
	memory.Set(d, memory.Flaps, text)
	if since, is := p.held[d.Name]; is {
		memory.Set(d, memory.HeldSince, since.Format(time.RFC3339))
	}
}

// mostHoldable bounds the questions of one run.
const mostHoldable = 8

// fillHoldable asks whether the OSDs that flap may stop: of each alone, as one after the other is held back, until one may.
func (c *conn) fillHoldable(ctx context.Context, view *engine.View, o *Observation) {
	hosts := view.HostsByName()
	for i := range view.Daemons {
		d := &view.Daemons[i]
		id, err := strconv.Atoi(d.Spec.ID)
		if err != nil || !c.holdable(d, hosts, view, o) {
			continue
		}
		down := downWithout(view.Daemons, o.OSDs, "")
		if !slices.Contains(down, id) {
			down = append(down, id)
		}
		if o.Holdable == nil {
			o.Holdable = map[string]StopAnswer{}
		}
		answer := c.okToStop(ctx, o, down)
		if o.Holdable[label(d)] = answer; answer.OK || answer.Unknown || len(o.Holdable) == mostHoldable {
			return
		}
	}
}

// holdable says whether all but Ceph's word is there for an OSD to be held back, as planFlaps sees it.
func (c *conn) holdable(d *api.Daemon, hosts map[string]*api.Host, view *engine.View, o *Observation) bool {
	elsewhere := func(x api.Daemon) bool {
		return x.Spec.Type == TypeOSD && x.DeletionTimestamp == nil && held(&x) && x.Spec.Host != d.Spec.Host
	}
	return d.Spec.Type == TypeOSD && d.DeletionTimestamp == nil && !held(d) && !told(d) && hosts[d.Spec.Host].ModeOf() == api.HostActive &&
		flapping(flapsNow(d, view, o.OSDs, c.now(), c.waits), c.now()) && !slices.ContainsFunc(view.Daemons, elsewhere)
}
