package writes

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// stopping are flags that keep copies from being made, and OSDs from coming up or in.
var stopping = []string{"noup", "noin", "norecover", "nobackfill", "norebalance"}

// missing says why placement groups lack copies, from what is worst to what passes by itself.
func missing(c *Cluster, p *Pool) Word {
	held := slices.IndexFunc(stopping, func(flag string) bool { return slices.Contains(c.Flags, flag) })
	switch {
	case p.has("inconsistent", "failed_repair", "snaptrim_error"):
		return Word{
			Reason: api.ReasonDataDamaged, Text: "copies differ from each other",
			Next: "'holdfast ceph health detail' names the placement groups; have Ceph repair one with 'holdfast ceph pg " +
				"repair PG', and check the disk that the errors come from",
		}
	case p.Room < p.Copies && len(c.Out) > 0:
		return Word{
			Reason: api.ReasonInsufficientNodes,
			Text:   fmt.Sprintf("%s, because OSDs are marked out (%s)", p.fewPlaces(), words.Few(c.Out)),
			Next:   "run " + quote("holdfast ceph osd in", strings.TrimPrefix(c.Out[0], "osd.")),
		}
	case p.Room < p.Copies:
		return Word{Reason: api.ReasonInsufficientNodes, Text: p.fewPlaces(), Next: p.fewer()}
	case len(c.Down) > 0 && slices.Contains(c.Flags, "noup"):
		return Word{
			Reason: api.ReasonChangedOutside,
			Text:   words.Few(c.Down) + areDown(len(c.Down)) + ", and the flag noup keeps OSDs from coming up",
			Next:   "when the reason is over, run " + quote(health.Unset("noup")),
		}
	case len(c.Down) > 0:
		return Word{
			Reason: api.ReasonDataUnavailable, Text: words.Few(c.Down) + areDown(len(c.Down)),
			Next: "run " + quote("holdfast why", c.Down[0]),
		}
	case p.has("backfill_toofull", "recovery_toofull"):
		return Word{
			Reason: api.ReasonFull, Text: "the OSDs where copies belong are too full",
			Next: "add disks or delete data; 'holdfast ceph osd df' shows how full each OSD is",
		}
	case held >= 0:
		return Word{
			Reason: api.ReasonChangedOutside, Text: fmt.Sprintf("the flag %s is set for the whole cluster", stopping[held]),
			Next: "when the reason is over, run " + quote(health.Unset(stopping[held])),
		}
	case p.has("incomplete", "down"):
		return Word{
			Reason: api.ReasonDataUnavailable, Text: "OSDs that had their newest copies are gone",
			Next: "bring back the disks that were removed last; 'holdfast ceph pg dump_stuck inactive' lists what waits",
		}
	}
	return Word{Reason: api.ReasonDataNotClean, Text: "Ceph makes or moves copies", Next: "wait; it ends by itself"}
}

func areDown(n int) string {
	if n == 1 {
		return " is down"
	}
	return " are down"
}

// fewPlaces says that there are more copies than places for them.
func (p *Pool) fewPlaces() string {
	kind := "copies"
	if p.Erasure {
		kind = "chunks"
	}
	domain := map[bool]string{true: "failure domain", false: p.Domain}[p.Domain == ""]
	if p.Room == 0 {
		return fmt.Sprintf("there is no %s with OSDs for its %d %s", domain, p.Copies, kind)
	}
	return fmt.Sprintf("it wants %d %s, each on a different %s, and OSDs for them are on %s only", p.Copies, kind, domain,
		words.Plural(p.Room, domain))
}

// fewer is what helps where there are too few places.
func (p *Pool) fewer() string {
	add := fmt.Sprintf("add disks on another %s", p.Domain)
	if p.Domain == "osd" || p.Domain == "" || p.Room == 0 {
		add = "add disks"
	}
	switch {
	case p.Erasure || p.Room == 0:
		return add
	case p.Declared:
		return fmt.Sprintf("%s, or set spec.replicated.size to %d or a smaller failureDomain, and apply it", add, p.Room)
	}
	return fmt.Sprintf("%s, or run 'holdfast ceph osd pool set %s size %d'", add, p.Name, p.Room) + yesReally(p.Room)
}

// yesReally explains what Ceph asks for one copy.
func yesReally(size int) string {
	if size > 1 {
		return ""
	}
	return " (a disk that fails then loses data: Ceph asks for --yes-i-really-mean-it)"
}

// Placing says why copies that Ceph misses are not made, by the first pool that tells, and what helps; empty where
// OSDs are down, or where Ceph is making them.
func Placing(c *Cluster, pools []*Pool) string {
	if len(c.Down) > 0 {
		return ""
	}
	for _, p := range pools {
		if p.Room >= p.Copies && len(p.Unclean) == 0 {
			continue
		}
		if w := missing(c, p); w.Reason != api.ReasonDataNotClean {
			return fmt.Sprintf("pool %s: %s; %s", p.Name, w.Text, w.Next)
		}
	}
	return ""
}
