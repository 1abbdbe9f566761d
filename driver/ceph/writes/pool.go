package writes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Cluster is what a cluster has that concerns all of its pools.
type Cluster struct {
	// Flags are those that are set for the whole cluster, as Ceph names them.
	Flags []string
	// Full and NearFull are the OSDs that are full, or nearly: osd.3.
	Full, NearFull []string
	// Down are the OSDs that hold data and are down, and Out those that are up and get no data, because somebody
	// marked them out.
	Down, Out []string
}

// Fullness is the word of an OSD's state in Ceph's map that says how full it is; empty where there is room.
func Fullness(state []string) string {
	for _, word := range []string{"full", "backfillfull", "nearfull"} {
		if slices.Contains(state, word) {
			return word
		}
	}
	return ""
}

// Fill notes how full an OSD is.
func (c *Cluster) Fill(osd, fullness string) {
	switch fullness {
	case "full":
		c.Full = append(c.Full, osd)
	case "backfillfull", "nearfull":
		c.NearFull = append(c.NearFull, osd)
	}
}

// Pool is what Ceph says of a pool.
type Pool struct {
	Name string
	// Declared is set for one of a Pool, Filesystem or ObjectStore, whose spec has its size and its quota.
	Declared bool
	// Flags are its own.
	Flags []string
	// Stored and Objects are what is in it, MaxBytes and MaxObjects its quota; zero for none.
	Stored, Objects, MaxBytes, MaxObjects int64
	// Copies are how many copies or chunks of an object there are, and MinSize how many of them clients need.
	Copies, MinSize int
	Erasure         bool
	// Domain holds at most one of them, and Room is how many find one with an OSD that is in, be it up or down.
	Domain string
	Room   int
	// PGs is the number of its placement groups, Unclean those that are not active+clean by their state.
	PGs     int
	Unclean map[string]int
	// Fresh is set as long as nobody could use it yet.
	Fresh bool
}

// nearQuota is how much of a quota is used when it is near, in percent. Ceph warns by
// mon_pool_quota_warn_threshold, which is 0, never, if nobody sets it.
const nearQuota = 80

// JudgePool says how a pool stands.
func JudgePool(c *Cluster, p *Pool) Word {
	total, inactive, states := p.unclean()
	if total > 0 && p.Fresh && inactive > 0 {
		return Word{State: api.ResourceCreating, Text: states}
	}
	var all []Word
	for _, judge := range []func(*Cluster, *Pool) Word{paused, full, quota} {
		if w := judge(c, p); w.Reason != "" {
			all = append(all, w)
		}
	}
	if total > 0 {
		w := missing(c, p)
		w.State, w.Text = api.ResourceDegraded, states+": "+w.Text
		if inactive > 0 {
			w.State = api.ResourceOffline
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return near(c, p)
	}
	slices.SortStableFunc(all, func(a, b Word) int { return rank(b.State) - rank(a.State) })
	for _, more := range all[1:] {
		all[0] = all[0].Also(more.Text)
	}
	return all[0]
}

// unclean counts the placement groups that are not active+clean, and those that serve nobody.
func (p *Pool) unclean() (total, inactive int, text string) {
	var texts []string
	for _, state := range slices.Sorted(maps.Keys(p.Unclean)) {
		total += p.Unclean[state]
		if !slices.Contains(strings.Split(state, "+"), "active") {
			inactive += p.Unclean[state]
		}
		texts = append(texts, fmt.Sprintf("%d %s", p.Unclean[state], state))
	}
	text = fmt.Sprintf("%d of %d placement groups are not active+clean (%s)", total, p.PGs, words.Few(texts))
	return total, inactive, text
}

// has says whether a placement group is in a state with one of these words.
func (p *Pool) has(state ...string) bool {
	for s := range p.Unclean {
		if slices.ContainsFunc(strings.Split(s, "+"), func(word string) bool { return slices.Contains(state, word) }) {
			return true
		}
	}
	return false
}

// paused is for the flags that keep all clients of the cluster from reading or writing.
func paused(c *Cluster, _ *Pool) Word {
	read, write := slices.Contains(c.Flags, "pauserd"), slices.Contains(c.Flags, "pausewr")
	next := "when the reason is over, run " + quote(health.Unset("pausewr"))
	switch {
	case read:
		return Word{api.ResourceOffline, api.ReasonClientsPaused, "clients can neither read nor write: the cluster " +
			"is paused ('ceph osd pause')", next}
	case write:
		return Word{api.ResourceDegraded, api.ReasonClientsPaused, "clients cannot write: the flag pausewr is set " +
			"for the whole cluster", next}
	}
	return well
}

// full is for OSDs that take nothing more.
func full(c *Cluster, p *Pool) Word {
	switch {
	case slices.Contains(c.Flags, "full"):
		return Word{api.ResourceDegraded, api.ReasonFull, "it takes no writes: the flag full is set for the " +
			"whole cluster", "add disks or delete data, or, if a user set the flag, run " + quote(health.Unset("full"))}
	case slices.Contains(p.Flags, "full_quota"):
		return well // Ceph sets both
	case slices.Contains(p.Flags, "full"):
		return Word{
			api.ResourceDegraded, api.ReasonFull,
			"it takes no writes: " + areFull(c.Full, "full"),
			"add disks or delete data; to be able to delete, run 'holdfast ceph osd set-full-ratio 0.97', and set it " +
				"back to 0.95 afterwards; 'holdfast ceph osd df' shows how full each OSD is",
		}
	}
	return well
}

func areFull(osds []string, how string) string {
	if len(osds) == 0 {
		return "OSDs that it uses are " + how
	}
	return words.Few(osds) + map[bool]string{true: " is ", false: " are "}[len(osds) == 1] + how
}

// quota is for a pool that has as much in it as it may have.
func quota(_ *Cluster, p *Pool) Word {
	if !slices.Contains(p.Flags, "full_quota") {
		return well
	}
	return Word{
		api.ResourceDegraded, api.ReasonQuotaReached, "its quota is reached: writes fail until something is deleted " +
			"or the quota is raised", "delete data, or " + p.raiseQuota(),
	}
}

func (p *Pool) raiseQuota() string {
	if p.Declared {
		return "raise spec.quota and apply it"
	}
	return "raise its quota: 'holdfast ceph osd pool set-quota " + p.Name + " max_bytes 0' sets none"
}

// near warns of what takes writes today and soon does not.
func near(c *Cluster, p *Pool) Word {
	used := max(percent(p.Stored, p.MaxBytes), percent(p.Objects, p.MaxObjects))
	switch {
	case used >= nearQuota:
		return Word{
			api.ResourceOnline, api.ReasonQuotaNear, fmt.Sprintf("more than %d %% of its quota is used: writes fail when it "+
				"is reached", used/10*10), "delete data, or " + p.raiseQuota(),
		}
	case slices.Contains(p.Flags, "nearfull"), slices.Contains(p.Flags, "backfillfull"):
		return Word{
			api.ResourceOnline, api.ReasonNearFull, "it takes no writes soon: " + areFull(c.NearFull, "almost full"),
			"add disks or delete data; 'holdfast ceph osd df' shows how full each OSD is",
		}
	}
	return well
}

func percent(used, most int64) int64 {
	if most <= 0 {
		return 0
	}
	return int64(float64(used) / float64(most) * 100)
}
