package radostest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// makeMon has a mon start: the first of all makes the map, by what its Daemon lists. One that the map does not have joins as soon
// as it can reach a quorum, unless it was in the map once: such a mon ends itself.
func (c *Cluster) makeMon(d *api.Daemon) {
	if len(c.mons) == 0 {
		c.fsid = d.Spec.Parameters["fsid"]
		for pair := range strings.FieldsSeq(d.Spec.Parameters["monmap"]) {
			id, _, _ := strings.Cut(pair, "=")
			c.mons = append(c.mons, id)
		}
		c.monEpoch, c.birth = 1, birthOf(d)
		c.managers.found(d)
	}
	if c.seeds[d.Spec.ID] != nil {
		return
	}
	seed := []string{}
	for _, f := range d.Spec.Files {
		for _, s := range f.Sources {
			if s.Secret != nil {
				_, entity, _ := strings.Cut(s.Secret.Name, "-key-")
				seed = append(seed, entity)
			}
		}
	}
	c.seeds[d.Spec.ID] = seed
}

// joinMons lets the mons that run and are in no map join, if there are others to let them in.
func (c *Cluster) joinMons() {
	for _, name := range slices.Sorted(maps.Keys(c.running)) {
		id, isMon := strings.CutPrefix(name, "mon.")
		if isMon && !slices.Contains(c.mons, id) && !c.expelled[id] && len(c.quorum()) > 0 {
			c.mons = append(c.mons, id)
			slices.Sort(c.mons)
			c.monEpoch++
		}
	}
}

// versions are the releases of the mons. Those that do not say what they run, run what the rest of the recorded answer does.
func (c *Cluster) versions() map[string]any {
	a := recorded("versions")
	mons := map[string]any{}
	for _, id := range c.quorum() {
		if release := c.releases["mon."+id]; release != "" {
			mons["ceph version "+release+" (0) some (stable)"] = 1
		}
	}
	if len(mons) > 0 {
		a["mon"] = mons
	}
	return a
}

func (c *Cluster) monDump() map[string]any {
	a := recorded("mon-dump")
	pattern := a["mons"].([]any)[0].(map[string]any)
	mons := []any{}
	for rank, id := range c.mons {
		m := maps.Clone(pattern)
		m["name"], m["rank"] = id, rank
		mons = append(mons, m)
	}
	a["epoch"], a["fsid"], a["mons"] = c.monEpoch, c.fsid, mons
	return a
}

// monRemove follows MonmapMonitor::prepare_command of Ceph 16.
func (c *Cluster) monRemove(name string) (errno syscall.Errno, status string) {
	switch {
	case !slices.Contains(c.mons, name):
		return 0, fmt.Sprintf("mon.%s does not exist or has already been removed", name)
	case len(c.mons) == 1:
		return syscall.EINVAL, "cannot remove the last monitor"
	}
	c.mons = slices.DeleteFunc(slices.Clone(c.mons), func(id string) bool { return id == name })
	c.expelled[name] = true
	c.monEpoch++
	c.election += 2
	return 0, ""
}

// Monmap are the mons in Ceph's map.
func (c *Cluster) Monmap() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mons)
}

// Quorum are the mons in quorum.
func (c *Cluster) Quorum() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quorum()
}

// quorum are the mons in quorum; none while half of them or more are missing.
func (c *Cluster) quorum() []string {
	var in []string
	for _, m := range c.mons {
		if c.running["mon."+m] {
			in = append(in, m)
		}
	}
	if 2*len(in) <= len(c.mons) {
		return nil
	}
	return in
}

// SetMonmap rewrites Ceph's own map of the mons behind its back, as the tools for a lost quorum do.
func (c *Cluster) SetMonmap(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mons = ids
	c.monEpoch++
	c.election += 2
}
