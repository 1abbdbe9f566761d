package ceph

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// manyRestarts are those after which a daemon that runs at the moment counts as failing.
const manyRestarts = 3

// spread chooses n of the places, each where the fewest mons are: in the emptiest region, in that the emptiest zone, and so on
// down to the host's chassis; then by name. taken are the hosts that have mons already. A level at which all hosts are alike, or
// that nobody has labelled, tells nothing, so the largest failure domain of several decides first.
func (p *planner) spread(places []place, taken []string, n int) []place {
	rest, taken := slices.Clone(places), slices.Clone(taken)
	var chosen []place
	for len(chosen) < n && len(rest) > 0 {
		crowds := p.crowds(taken)
		best := slices.MinFunc(rest, func(a, b place) int {
			return cmp.Or(slices.Compare(crowds(a.host), crowds(b.host)), strings.Compare(a.host, b.host))
		})
		chosen, taken = append(chosen, best), append(taken, best.host)
		rest = slices.DeleteFunc(rest, func(at place) bool { return at == best })
	}
	return chosen
}

// crowds returns a function that says how many of the taken hosts are in the failure domains of a host, the largest first.
func (p *planner) crowds(taken []string) func(host string) []int {
	return func(host string) []int {
		var counts []int
		for _, label := range slices.Backward(api.LocationLabels()) {
			count := 0
			for _, other := range taken {
				if p.location(other, label) == p.location(host, label) {
					count++
				}
			}
			counts = append(counts, count)
		}
		return counts
	}
}

func (p *planner) location(host, label string) string {
	if h := p.hosts[host]; h != nil {
		return h.Labels[label]
	}
	return ""
}

// monHosts are the hosts of the mons that stay, and of those on their way in.
func (p *planner) monHosts() []string {
	var hosts []string
	for _, m := range p.members {
		if p.departs(m) == "" {
			hosts = append(hosts, m.Host)
		}
	}
	for _, m := range p.joining {
		hosts = append(hosts, m.Host)
	}
	return hosts
}

// failing says whether a mon on its way in is not to be expected, because its daemon keeps failing.
func (p *planner) failing(d *api.Daemon) bool {
	// One that failed before and runs now may have much to copy.
	young := d.Status.Started == nil || p.now.Sub(d.Status.Started.Time) < p.waits.MonSteady
	bad := d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonBackOff || d.Status.Restarts >= manyRestarts && young
	return bad && p.hosts[d.Spec.Host].AgentHeard() && p.now.Sub(d.CreationTimestamp.Time) >= p.waits.MonJoin
}

// readAvoided reads from the mons' Daemons where a mon kept failing of late. It stands in all of them, because the one that failed
// is gone.
func (p *planner) readAvoided() {
	p.avoided = map[string]time.Time{}
	for _, d := range p.daemonsOf(TypeMon) {
		for pair := range strings.FieldsSeq(memory.Of(d, memory.MonAvoid)) {
			host, text, _ := strings.Cut(pair, "=")
			until, err := time.Parse(time.RFC3339, text)
			if err == nil && until.After(p.now) && until.After(p.avoided[host]) {
				p.avoided[host] = until
			}
		}
	}
}

// avoid notes that a mon kept failing on a host.
func (p *planner) avoid(host string) {
	p.avoided[host] = p.now.Add(p.waits.MonAvoid).UTC().Truncate(time.Second)
}

// avoidedText is what readAvoided reads.
func (p *planner) avoidedText() string {
	var pairs []string
	for _, host := range slices.Sorted(maps.Keys(p.avoided)) {
		pairs = append(pairs, host+"="+p.avoided[host].Format(time.RFC3339))
	}
	return strings.Join(pairs, " ")
}

// tellAvoided tells where no mon is made for a while.
func (p *planner) tellAvoided() {
	for _, host := range slices.Sorted(maps.Keys(p.avoided)) {
		p.decide(api.VerdictSkip, api.ReasonDaemonFailing, "mons",
			"no new mon on host %s until %s: a mon kept failing there", host, p.avoided[host].Format("15:04:05 MST"))
	}
}
