package radostest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// mgrAnswer answers the commands that the manager knows.
func (c *Cluster) mgrAnswer(prefix string, cmd map[string]any) (answer any, errno syscall.Errno, status string) {
	switch prefix {
	case "osd ok-to-stop":
		return c.okToStop(numbers(cmd["ids"]))
	case "pg stat":
		return c.pgStat(), 0, ""
	case "osd safe-to-destroy":
		return c.safeToDestroy(numbers(cmd["ids"])), 0, ""
	case "osd destroy":
		return c.destroy(cmd)
	case "osd purge":
		return c.purge(cmd)
	case "pg dump":
		return c.pgsBrief(pgState(c.upAndIn())), 0, ""
	case "osd pool stats":
		return c.poolStats(), 0, ""
	case "fs subvolumegroup ls", "fs subvolumegroup info", "fs subvolumegroup create", "fs subvolumegroup resize":
		return c.groupAnswer(prefix, cmd)
	case "rbd mirror snapshot schedule list", "rbd mirror snapshot schedule add", "rbd mirror snapshot schedule remove":
		return c.schedule(prefix, strings.TrimSuffix(fmt.Sprint(cmd["level_spec"]), "/"), fmt.Sprint(cmd["interval"])), 0, ""
	}
	return nil, syscall.EINVAL, "command not known"
}

func (c *Cluster) pgStat() any {
	a := recorded("pg-stat")
	a["pg_ready"], a["pg_summary"].(map[string]any)["num_pgs"] = c.unseen == 0, 1+poolPGs*len(c.pools)
	return a
}

// numbers reads a list of OSDs.
func numbers(list any) map[int]bool {
	ids := map[int]bool{}
	texts, _ := list.([]any)
	for _, x := range texts {
		if id, err := strconv.Atoi(strings.TrimPrefix(fmt.Sprint(x), "osd.")); err == nil {
			ids[id] = true
		}
	}
	return ids
}

// okToStop goes by the mgr's own pool, and by those that were made to be spread more widely than over hosts. Each has placement groups on all combinations of them.
func (c *Cluster) okToStop(ids map[int]bool) (answer any, errno syscall.Errno, status string) {
	if !c.usableWithout(ids) {
		return nil, syscall.EBUSY, "unsafe to stop osd(s) at this time (1 PGs are or would become offline)"
	}
	return recorded("osd-ok-to-stop"), 0, ""
}

// monsAllow says whether a mon or an MDS may stop, as MonmapMonitor and MDSMonitor of Ceph 16 do.
func (c *Cluster) monsAllow(prefix, id string) (syscall.Errno, string) {
	if prefix == "mon ok-to-stop" {
		rest := slices.DeleteFunc(c.quorum(), func(m string) bool { return m == id })
		if 2*len(rest) <= len(c.mons) {
			return syscall.EBUSY, fmt.Sprintf("not enough monitors would be available (%s) after stopping mons [%s]", strings.Join(rest, ","), id)
		}
		return 0, ""
	}
	standbys := c.serveFilesystems()
	for _, fs := range c.filesystems {
		if len(fs.ranks) < fs.options["max_mds"] {
			return syscall.EBUSY, "one or more filesystems is currently degraded"
		}
	}
	if serves := slices.Contains(c.mds(), id) && !slices.Contains(standbys, id); serves && len(standbys) == 0 {
		return syscall.EBUSY, "insufficent standby MDS daemons to stop active gids 4711 and/or standby gids " //nolint:misspell // as Ceph writes it
	}
	return 0, ""
}

// usableWithout says whether all data can be used while these OSDs are down, beside those that are down already.
func (c *Cluster) usableWithout(ids map[int]bool) bool {
	if own := c.ownPool(); own != nil && c.domainsGone(c.levelOf(own.rule), ids) > own.size-own.minSize {
		return false
	}
	for _, p := range c.pools {
		if level := c.levelOf(p.rule); level != "osd" && level != "host" && c.domainsGone(level, ids) > p.size-p.minSize {
			return false
		}
	}
	return true
}

// domainsGone counts the buckets of a level of which not all would be up that holds data.
func (c *Cluster) domainsGone(level string, without map[int]bool) int {
	gone := map[string]bool{}
	for id, o := range c.osds {
		if o.holds() && (!o.up || without[id]) {
			gone[c.bucketOf(id, level)] = true
		}
	}
	return len(gone)
}

// Usable says whether all data can be used while these OSDs are down, beside those that are down already.
func (c *Cluster) Usable(without ...int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[int]bool{}
	for _, id := range without {
		ids[id] = true
	}
	return c.usableWithout(ids)
}

// Holds says whether data belongs on an OSD, up or not.
func (c *Cluster) Holds(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.osds[id] != nil && c.osds[id].holds()
}

// Serves says whether an OSD is up and holds data.
func (c *Cluster) Serves(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.osds[id]
	return o != nil && o.up && o.holds()
}

// setGroup changes the flag noout of single OSDs.
func (c *Cluster) setGroup(cmd map[string]any, set bool) syscall.Errno {
	if cmd["flags"] != "noout" {
		return syscall.EINVAL
	}
	for id := range numbers(cmd["who"]) {
		o := c.osds[id]
		if o == nil {
			return syscall.EINVAL
		}
		if o.noout != set {
			o.noout = set
			c.epoch++
		}
	}
	return 0
}

// Noout are the OSDs that have the flag.
func (c *Cluster) Noout() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []int
	for id, o := range c.osds {
		if o.noout {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// states are the words of the map for an OSD.
func (o *osd) states() []string {
	states := []string{"exists"}
	if o.destroyed {
		states = append(states, "destroyed")
	}
	if o.noout {
		states = append(states, "noout")
	}
	if o.up {
		states = append(states, "up")
	}
	return states
}

// activeMgr is the manager that is active: the one that was, as long as it runs.
func (c *Cluster) activeMgr() string {
	mgrs := c.mgrs()
	if len(mgrs) > 0 && !slices.Contains(mgrs, c.active) {
		c.active = mgrs[0]
	}
	return c.active
}

// failMgr has a standby take over from a manager, if it is active.
func (c *Cluster) failMgr(name string) {
	mgrs := c.mgrs()
	if c.activeMgr() != name || len(mgrs) < 2 {
		return
	}
	i := slices.Index(mgrs, name)
	c.active, c.unseen = mgrs[(i+1)%len(mgrs)], reportLag
}
