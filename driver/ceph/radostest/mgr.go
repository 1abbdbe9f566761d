package radostest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/module"
)

// optionBackend is the option of the managers that names the module that answers 'ceph orch'.
const optionBackend = "mgr/orchestrator/orchestrator"

// managers is what a cluster knows of its managers and their modules.
type managers struct {
	epoch   int
	last    string
	enabled bool
	// loaded are the managers that found the module of Holdfast when they started, by the process.
	loaded map[string]string
}

// found enables the modules that the configuration of the first mon names.
func (m *managers) found(d *api.Daemon) {
	for _, f := range d.Spec.Files {
		for _, src := range f.Sources {
			if src.Text == nil {
				continue
			}
			for line := range strings.Lines(*src.Text) {
				name, list, _ := strings.Cut(line, " = ")
				m.enabled = m.enabled || name == "mgr_initial_modules" && slices.Contains(strings.Fields(list), module.Name)
			}
		}
	}
}

// start has a manager that was started load what it was given before.
func (m *managers) start(d *api.Daemon) {
	process := ""
	if d.Status.Started != nil {
		process = d.Status.Started.UTC().Format(time.RFC3339Nano)
	}
	if given := d.Spec.Parameters[api.ParameterOrch]; given != "" && given != process {
		m.loaded[d.Spec.ID] = process
	} else if m.loaded[d.Spec.ID] != process {
		delete(m.loaded, d.Spec.ID)
	}
}

// mgrDump is the map of the managers, as far as Holdfast reads it.
func mgrDump(c *Cluster) map[string]any {
	mgrs, active := c.mgrs(), c.activeMgr()
	modules := func(id string) []any {
		all := []any{map[string]any{"name": "iostat"}}
		if _, loaded := c.managers.loaded[id]; loaded {
			all = append(all, map[string]any{"name": module.Name})
		}
		return all
	}
	standbys := []any{}
	for _, id := range mgrs {
		if id != active {
			standbys = append(standbys, map[string]any{"name": id, "available_modules": modules(id)})
		}
	}
	enabled := []string{"iostat"}
	if c.managers.enabled {
		enabled = append(enabled, module.Name)
	}
	return map[string]any{
		"epoch": c.managers.epoch, "active_name": active, "available_modules": modules(active),
		"standbys": standbys, "modules": enabled,
	}
}

// mgrEpoch counts the changes of the map.
func mgrEpoch(c *Cluster) int {
	if now := fmt.Sprint(mgrDump(c)); now != c.managers.last {
		c.managers.epoch++
		c.managers.last = fmt.Sprint(mgrDump(c))
	}
	return c.managers.epoch
}
