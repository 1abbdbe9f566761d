package radostest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// setIn marks OSDs in or out. Here as with weights data moves at once, but for that of OSDs that are stuck.
func (c *Cluster) setIn(ids map[int]bool, in bool) {
	for id := range ids {
		if o := c.osds[id]; o != nil && o.in != in {
			o.in = in
			c.changed()
		}
	}
}

// osdSize is how much an OSD has, in KiB, and osdWeight its weight, as the mons keep it.
const (
	osdSize   = 4 << 20
	osdWeight = 255.0 / 65536
)

// holds says whether data belongs on an OSD. One that was never up has none.
func (o *osd) holds() bool { return o.in && o.weight > 0 && o.booted && o.host != "" }

// reweight changes a weight.
func (c *Cluster) reweight(cmd map[string]any) syscall.Errno {
	weight, ok := cmd["weight"].(float64)
	id, err := strconv.Atoi(strings.TrimPrefix(fmt.Sprint(cmd["name"]), "osd."))
	o := c.osds[id]
	switch {
	case !ok:
		return syscall.EINVAL
	case err != nil || o == nil:
		return syscall.ENOENT
	case o.weight != weight:
		o.weight = weight
		c.changed()
	}
	return 0
}

// Weight is an OSD's weight in CRUSH.
func (c *Cluster) Weight(id int) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.osds[id].weight
}

// Stick keeps the data of an OSD from moving, or not any more.
func (c *Cluster) Stick(id int, stuck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck[id] = stuck
}

// Use sets how much of an OSD is used, in KiB; each has 4 GiB.
func (c *Cluster) Use(id int, kib int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.space[id] = kib
}

// Used is how much of an OSD is used, in KiB.
func (c *Cluster) Used(id int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.space[id]
}

// Size is how much an OSD has, in KiB.
func (c *Cluster) Size() int64 { return osdSize }

// Up says whether an OSD is up.
func (c *Cluster) Up(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.osds[id] != nil && c.osds[id].up
}

// Safe says whether an OSD may be destroyed.
func (c *Cluster) Safe(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.safe(id)
}

func (c *Cluster) safe(id int) bool { return c.osds[id] == nil || !c.osds[id].holds() && !c.stuck[id] }

func (c *Cluster) safeToDestroy(ids map[int]bool) any {
	a := recorded("osd-safe-to-destroy")
	safe, active := []int{}, []int{}
	for id := range ids {
		if c.safe(id) {
			safe = append(safe, id)
		} else {
			active = append(active, id)
		}
	}
	a["safe_to_destroy"], a["active"] = safe, active
	return a
}

// purge refuses an OSD that is up, or not safe to destroy, as the real mgr and mons do.
func (c *Cluster) purge(cmd map[string]any) (answer any, errno syscall.Errno, status string) {
	number, ok := cmd["id"].(float64)
	id := int(number)
	switch o := c.osds[id]; {
	case !ok || cmd["yes_i_really_mean_it"] != true:
		return nil, syscall.EPERM, "you must pass --yes-i-really-mean-it"
	case o == nil:
		return nil, 0, ""
	case !c.safe(id):
		return nil, syscall.EAGAIN, fmt.Sprintf("OSD(s) %d are not safe to destroy", id)
	case o.up:
		return nil, syscall.EBUSY, fmt.Sprintf("osd.%d is not `down`.", id)
	}
	delete(c.osds, id)
	delete(c.auth, "osd."+strconv.Itoa(id))
	c.changed()
	return nil, 0, ""
}

// Forget has the cluster forget an OSD, as a person who purges it does.
func (c *Cluster) Forget(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.osds, id)
	delete(c.auth, "osd."+strconv.Itoa(id))
	c.changed()
}

// destroy keeps the number of an OSD, and its place; where data is safe without it the caller has looked.
func (c *Cluster) destroy(cmd map[string]any) (answer any, errno syscall.Errno, status string) {
	number, ok := cmd["id"].(float64)
	id := int(number)
	switch o := c.osds[id]; {
	case !ok || cmd["yes_i_really_mean_it"] != true:
		return nil, syscall.EPERM, "you must pass --yes-i-really-mean-it"
	case o == nil:
		return nil, 0, ""
	case o.up:
		return nil, syscall.EBUSY, fmt.Sprintf("osd.%d is not `down`.", id)
	default:
		o.destroyed, o.booted, o.uuid = true, false, "00000000-0000-0000-0000-000000000000"
	}
	delete(c.auth, "osd."+strconv.Itoa(id))
	c.changed()
	return nil, 0, ""
}

// rules are the one that the first pools use, and those that were made.
func (c *Cluster) rules() any {
	rules := recordedAs[[]any]("osd-crush-rule-dump")
	if domain := c.levelOf(firstRule); domain != "" {
		for _, step := range rules[0].(map[string]any)["steps"].([]any) {
			if s := step.(map[string]any); s["type"] != nil {
				s["type"] = domain
			}
		}
	}
	return append(rules, c.madeRules(rules[0].(map[string]any))...)
}

func (c *Cluster) df() any {
	a := recorded("osd-df")
	pattern := a["nodes"].([]any)[0].(map[string]any)
	nodes, stray := []any{}, []any{}
	for _, id := range slices.Sorted(maps.Keys(c.osds)) {
		n := maps.Clone(pattern)
		n["id"], n["kb"] = id, osdSize
		if used, ok := c.space[id]; ok {
			n["kb_used"] = used
		}
		if c.osds[id].host == "" && c.osds[id].booted {
			stray = append(stray, n)
			continue
		}
		nodes = append(nodes, n)
	}
	a["nodes"], a["stray"] = nodes, stray
	return a
}
