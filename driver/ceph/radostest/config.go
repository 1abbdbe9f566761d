package radostest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// optionTypes are the options that the cluster knows, with their types as Ceph 16 has them; those of startup and create count from the start of a
// daemon, and for what is made from now on.
var (
	optionTypes = map[string]string{
		"osd_max_backfills": "uint", "osd_recovery_max_active_hdd": "uint", "osd_recovery_max_active_ssd": "uint", "osd_recovery_op_priority": "uint",
		"osd_recovery_sleep_hdd": "float", "osd_recovery_sleep_hybrid": "float", "osd_recovery_sleep_ssd": "float",
		"osd_scrub_begin_hour": "int", "osd_scrub_end_hour": "int", "osd_scrub_begin_week_day": "int", "osd_scrub_end_week_day": "int",
		"osd_scrub_min_interval": "float", "osd_scrub_max_interval": "float", "osd_deep_scrub_interval": "float",
		"osd_memory_target": "size", "osd_pool_default_size": "uint", "mon_lease": "float", "mon_max_pg_per_osd": "uint", "mon_allow_pool_delete": "bool",
		"mon_allow_pool_size_one": "bool", "mon_warn_on_pool_no_redundancy": "bool", "osd_pool_default_crush_rule": "int", "osd_op_queue": "str", "osd_mclock_profile": "str", "bluestore_min_alloc_size": "uint", "debug_osd": "str",
	}
	startupOptions = map[string]bool{"osd_op_queue": true}
	createOptions  = map[string]bool{"bluestore_min_alloc_size": true}
)

// configAnswer answers the commands on the cluster's own configuration.
func (c *Cluster) configAnswer(prefix string, cmd map[string]any) (answer any, errno syscall.Errno, status string, known bool) {
	text := func(name string) string { s, _ := cmd[name].(string); return s }
	key := text("who") + " " + text("name")
	switch prefix {
	case "config dump":
		return c.configDump(), 0, "", true
	case "config ls":
		return slices.Sorted(maps.Keys(optionTypes)), 0, "", true
	case "config help":
		answer, errno = optionHelp(text("key"))
	case "config set":
		answer, errno, status = nil, 0, ""
		if optionTypes[text("name")] == "" && text("name") != optionBackend {
			return nil, syscall.EINVAL, "unrecognized config option '" + text("name") + "'", true
		}
		c.stored[key], c.config[text("name")] = normal(optionTypes[text("name")], text("value")), true
	case "config rm":
		delete(c.stored, key)
		c.config[text("name")] = false
	case "config get":
	case "config-key get":
		value, there := c.keys[text("key")]
		if !there {
			return nil, syscall.ENOENT, "error obtaining '" + text("key") + "'", true
		}
		return raw(value), 0, "", true
	case "config-key set":
		c.keys[text("key")] = text("val")
	case "config-key rm":
		delete(c.keys, text("key"))
	default:
		return nil, 0, "", false
	}
	return answer, errno, status, true
}

// raw is an answer that is sent as it is.
type raw string

// MarshalJSON returns the text.
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func (c *Cluster) configDump() []any {
	dump := []any{}
	for _, key := range slices.Sorted(maps.Keys(c.stored)) {
		section, name, _ := strings.Cut(key, " ")
		dump = append(dump, map[string]any{"section": section, "name": name, "value": c.stored[key], "level": "advanced", "mask": ""})
	}
	return dump
}

func optionHelp(name string) (answer any, errno syscall.Errno) {
	kind := optionTypes[name]
	if kind == "" {
		return nil, syscall.ENOENT
	}
	help := map[string]any{"name": name, "type": kind, "min": "", "max": "", "can_update_at_runtime": !startupOptions[name] && !createOptions[name], "flags": []string{}}
	if name == "osd_scrub_begin_hour" {
		help["min"], help["max"] = 0, 23
	}
	if name == "osd_memory_target" {
		help["min"] = "939524096"
	}
	if createOptions[name] {
		help["flags"] = []string{"create"}
	}
	return help, 0
}

// normal is a value as Ceph stores it.
func normal(kind, value string) string {
	switch kind {
	case "float":
		f, _ := strconv.ParseFloat(value, 64)
		return fmt.Sprintf("%.6f", f)
	case "size":
		if n, err := strconv.Atoi(strings.TrimSuffix(value, "G")); err == nil && strings.HasSuffix(value, "G") {
			return strconv.Itoa(n << 30)
		}
	}
	return value
}

// SetOption stores an option, as an administrator does by 'ceph config set'.
func (c *Cluster) SetOption(section, name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[section+" "+name] = value
}

// Stored are the options that are stored, as "section name", but for the one that names the back end of 'ceph orch'.
func (c *Cluster) Stored() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := maps.Clone(c.stored)
	delete(stored, "mgr "+optionBackend)
	return stored
}

// Keys are the entries of Ceph's store of keys.
func (c *Cluster) Keys() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.keys)
}

// CutAfter calls a function when so many more commands were answered.
func (c *Cluster) CutAfter(commands int, cut func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutAfter, c.cut = commands, cut
}

// answered counts a command that was answered.
func (c *Cluster) answered() {
	if c.cut != nil {
		if c.cutAfter--; c.cutAfter < 0 {
			c.cut()
			c.cut = nil
		}
	}
}
