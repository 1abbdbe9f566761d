package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// spaceUnknown says whether an OSD that is up has not told how full it is; a mgr that has just become active does not know.
// One that CRUSH does not have gets no data: Ceph lists it elsewhere.
func (p *planner) spaceUnknown() bool {
	for id, o := range p.seen.OSDs {
		if _, placed := p.seen.Drain.Places[id]; placed && o.Up && p.seen.Drain.Usage[id].Total == 0 {
			return true
		}
	}
	return false
}

// room is what there is for the data of OSDs that would leave, beside those that leave already.
type room struct {
	// before are the OSDs that have data, or had until they began to leave; after are those that would be left. Both are in the order of numbers.
	before, after []placedOSD
	total, used   int64 // of the OSDs that would be left, and of all, in KiB
	leaving       int64 // what is on those that leave
	others        []string
}

// placedOSD is an OSD with where CRUSH has it.
type placedOSD struct {
	id int
	Place
}

// noRoom says why the OSDs that would be left cannot hold the data; none when they can: too few places
// for the copies, too little space as a whole, or on one of them.
func (p *planner) noRoom(u *upkeep) engine.Objection {
	r := p.roomWithout(u)
	why := p.noPlaces(r)
	if why.None() {
		why = p.noSpace(u, r)
	}
	if why.None() {
		why = p.overfull(r)
	}
	if !why.None() && len(r.others) > 0 {
		why.Message += fmt.Sprintf(" (already being removed: %s)", words.Few(r.others))
	}
	return why
}

func (p *planner) roomWithout(u *upkeep) *room {
	r := &room{}
	for _, o := range p.osds {
		seen, usage := p.seen.OSDs[o.id], p.seen.Drain.Usage[o.id]
		if seen.UUID != o.uuid || !seen.In && !seen.Up {
			continue
		}
		at := placedOSD{o.id, p.seen.Drain.Places[o.id]}
		switch leaves := u.has(o) || p.leaves(o); {
		case leaves:
			r.used, r.leaving = r.used+usage.Used, r.leaving+usage.Used // what it has still to give away
			if at.Weight = p.weightOf(o, at.Weight); at.Weight > 0 {
				r.before = append(r.before, at)
			}
			if !u.has(o) {
				r.others = append(r.others, o.label())
			}
		case seen.Up:
			r.used += usage.Used
			if seen.In && at.Weight > 0 {
				r.before, r.after = append(r.before, at), append(r.after, at)
				r.total += usage.Total
			}
		}
	}
	return r
}

// weightOf is the weight that an OSD had before it began to leave.
func (p *planner) weightOf(o *osd, now float64) float64 {
	if d := p.have[daemonName(p.cluster.Name, "osd", strconv.Itoa(o.id))]; d != nil && now == 0 {
		if was, err := strconv.ParseFloat(memory.Of(d, memory.CrushWeight), 64); err == nil {
			return was
		}
	}
	return now
}

// noPlaces says which pool could not keep as many copies as it wants.
func (p *planner) noPlaces(r *room) (none engine.Objection) {
	left := make([]Place, len(r.after))
	for i, at := range r.after {
		left[i] = at.Place
	}
	for _, pool := range p.seen.Pools {
		rule, known := p.seen.Drain.Rules[pool.Rule]
		have := rule.Room(left, pool.Size)
		switch domain := rule.Domain(); {
		case !known || have >= pool.Size:
		case domain != "":
			return engine.Refusal(api.ReasonInsufficientNodes,
				"pool %s keeps %d copies, one per %s, but %s would be left; add one, or lower the pool's size",
				pool.Name, pool.Size, domain, words.Plural(have, domain))
		default:
			return engine.Refusal(api.ReasonInsufficientNodes, "pool %s keeps %d copies, but without it the CRUSH "+
				"rule %s would find places for %d; add hosts there first, or lower the pool's size",
				pool.Name, pool.Size, rule.Name, have)
		}
	}
	return none
}

// noSpace compares space as a whole.
func (p *planner) noSpace(u *upkeep, r *room) (none engine.Objection) {
	if full := p.seen.BackfillFull; r.total == 0 || full > 0 && float64(r.used) > full*float64(r.total) {
		return engine.Refusal(api.ReasonInsufficientSpace,
			"its data does not fit on the other %s would be %d %% full, but Ceph moves no data to OSDs more than %.0f %% full "+
				"(backfillfull_ratio); add disks first", u.others(), 100*r.used/max(r.total, 1), 100*full)
	}
	return none
}

// overfull names an OSD that would get more than Ceph lets it have, although there is space elsewhere: the CRUSH rules bind the data to its host,
// or it is small, or fuller than the others already. What each gets is an estimate from the weights, since CRUSH spreads by chance.
func (p *planner) overfull(r *room) (none engine.Objection) {
	full := p.seen.BackfillFull
	if full == 0 {
		return none
	}
	gains := p.gains(r)
	var all []string
	worst, most := 0, full
	for i, at := range r.after {
		u := p.seen.Drain.Usage[at.id]
		will := (float64(u.Used) + gains[at.id]*float64(r.leaving)) / float64(max(u.Total, 1))
		if gains[at.id] == 0 || will <= full {
			continue
		}
		if all = append(all, osdName(at.id)); will > most {
			worst, most = i, will
		}
	}
	if len(all) == 0 {
		return none
	}
	at := r.after[worst]
	u := p.seen.Drain.Usage[at.id]
	return engine.Refusal(api.ReasonInsufficientSpace, "the data does not fit: CRUSH would move too much of its data to "+
		"%s: osd.%d on host %s, %.0f %% full now, would be about %.0f %% full, but Ceph moves no data to OSDs more than "+
		"%.0f %% full (backfillfull_ratio); add disks there first, or where the rules allow it",
		words.Few(all), at.id, at.Buckets["host"], 100*float64(u.Used)/float64(max(u.Total, 1)), 100*most, 100*full)
}

// gains is which part of the data that leaves each OSD gets; together they are 1.
func (p *planner) gains(r *room) map[int]float64 {
	type kind struct{ rule, size int }
	var kinds []kind
	data := map[kind]float64{}
	for _, pool := range p.seen.Pools {
		k := kind{pool.Rule, pool.Size}
		if _, known := p.seen.Drain.Rules[k.rule]; known && data[k] == 0 {
			kinds = append(kinds, k)
		}
		data[k] += float64(max(1, p.seen.Drain.Stored[pool.Name]))
	}
	gains, sum := map[int]float64{}, 0.0
	for _, k := range kinds {
		rule := p.seen.Drain.Rules[k.rule]
		was, is := sharesOf(rule, r.before, k.size), sharesOf(rule, r.after, k.size)
		for _, at := range r.after {
			if more := data[k] * (is[at.id] - was[at.id]); more > 0 {
				gains[at.id], sum = gains[at.id]+more, sum+more
			}
		}
	}
	for id := range gains {
		gains[id] /= sum
	}
	return gains
}

// sharesOf is which part of a pool of size copies each of the OSDs gets on average, if there are places for all.
func sharesOf(r Rule, osds []placedOSD, size int) map[int]float64 {
	shares := map[int]float64{}
	for _, t := range r.Takes {
		reached := slices.DeleteFunc(slices.Clone(osds), func(at placedOSD) bool { return !t.Reaches(at.Place) })
		spread(shares, reached, t.Steps, size, 1/float64(max(1, size)))
	}
	return shares
}

// spread adds to the shares what the steps come to where part of the data is to be given to these OSDs by each of their choices.
func spread(shares map[int]float64, osds []placedOSD, steps []Choose, size int, part float64) {
	if len(steps) == 0 {
		total := 0.0
		for _, at := range osds {
			total += at.Weight
		}
		for _, at := range osds {
			shares[at.id] += part * at.Weight / total
		}
		return
	}
	in, weights := map[string][]placedOSD{}, map[string]float64{}
	for _, at := range osds {
		if name := at.Buckets[steps[0].Type]; name != "" {
			in[name] = append(in[name], at)
			weights[name] += at.Weight
		}
	}
	most := steps[0].Num
	if most <= 0 {
		most += size
	}
	often := drawn(weights, most)
	for _, name := range slices.Sorted(maps.Keys(often)) {
		spread(shares, in[name], steps[1:], size, part*often[name])
	}
}

// drawn is how often, on average, each of some buckets is among n that are drawn by weight, none twice.
func drawn(weights map[string]float64, n int) map[string]float64 {
	heaviest := slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), strings.Compare(a, b))
	})
	total, left := 0.0, float64(n)
	for _, name := range heaviest {
		total += weights[name]
	}
	often := map[string]float64{}
	for _, name := range heaviest {
		if total <= 0 || left <= 0 {
			break
		}
		if often[name] = min(1, left*weights[name]/total); often[name] == 1 {
			left, total = left-1, total-weights[name]
		}
	}
	return often
}
