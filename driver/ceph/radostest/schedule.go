package radostest

import (
	"fmt"
	"slices"
	"strings"
)

// schedule answers for the schedules of pools whose images are mirrored by snapshots, as the manager's module rbd_support does.
func (c *Cluster) schedule(prefix, pool, interval string) any {
	have := slices.DeleteFunc(c.schedules[pool], func(s string) bool { return s == interval })
	switch {
	case strings.HasSuffix(prefix, "add"):
		have = append(have, interval)
	case strings.HasSuffix(prefix, "list"):
		levels := map[string]any{}
		for _, s := range c.schedules[pool] {
			level, _ := levels["1"].(map[string]any)
			all, _ := level["schedule"].([]any)
			levels["1"] = map[string]any{"name": pool + "/", "schedule": append(all, map[string]any{"interval": s, "start_time": nil})}
		}
		return levels
	}
	c.schedules[pool] = have
	return ""
}

// Schedule has somebody set a schedule for a pool.
func (c *Cluster) Schedule(pool, interval string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedule("add", pool, interval)
}

// Schedules are those of a pool.
func (c *Cluster) Schedules(pool string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.schedules[pool])
}
