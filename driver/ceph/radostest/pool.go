package radostest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// pool is a pool that was made by command.
type pool struct {
	id            int
	erasure       bool
	profile, rule string
	size, minSize int
	quotas        map[string]int64
	options       map[string]any
	applications  map[string]any
	busy, bytes   int // operations and bytes a second
	stored        int // bytes
}

// poolPGs is the number of placement groups of a pool.
const poolPGs = 32

// Trickle has a client write to a pool less often than once a second.
func (c *Cluster) Trickle(pool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[pool].busy, c.pools[pool].bytes = 0, 400
}

// Busy has clients do so much with a pool, in operations a second.
func (c *Cluster) Busy(pool string, operations int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[pool].busy, c.pools[pool].bytes = operations, 0
}

// MakePool makes a replicated pool of three with a rule of its own, as a person does.
func (c *Cluster) MakePool(name, rule, domain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRule(rule, domain, "")
	_, _ = c.makePool(name, map[string]any{"rule": rule, "size": 3.0}) // a pool of three can always be made
	c.changed()
}

// RenamePool gives a pool another name, as a person does.
func (c *Cluster) RenamePool(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[to] = c.pools[from]
	delete(c.pools, from)
	c.changed()
}

// DropPool deletes a pool, as a person does.
func (c *Cluster) DropPool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, name)
	c.changed()
}

// PoolID is the number of a pool; zero where there is none.
func (c *Cluster) PoolID(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pools[name]; p != nil {
		return int64(p.id)
	}
	return 0
}

// MakeRule makes a rule, as a person does.
func (c *Cluster) MakeRule(rule, domain string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRule(rule, domain, "")
	c.changed()
}

// Mute has the mons and the manager not answer a command, or answer it again.
func (c *Cluster) Mute(prefix string, mute bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted[prefix] = mute
}

// Pools are the pools that were made, as "NAME: rule RULE, size SIZE/MIN, options".
func (c *Cluster) Pools() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		p := c.pools[name]
		all = append(all, fmt.Sprintf("%s: rule %s, size %d/%d, %v %v for %v", name, p.rule, p.size, p.minSize, p.quotas, p.options, slices.Sorted(maps.Keys(p.applications))))
	}
	return all
}

// Rules are the CRUSH rules that were made.
func (c *Cluster) Rules() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, r := range c.made {
		all = append(all, r.name)
	}
	return all
}

// madeRule is a CRUSH rule that was made by command.
type madeRule struct {
	id                  int
	name, domain, class string
}

// poolAnswer carries out the commands of pools, as OSDMonitor::prepare_command of Ceph 16 does.
func (c *Cluster) poolAnswer(prefix string, cmd map[string]any) (errno syscall.Errno, status string, known bool) {
	text := func(key string) string {
		s, _ := cmd[key].(string)
		return s
	}
	switch prefix {
	case "osd crush rule create-replicated":
		c.makeRule(text("name"), text("type"), text("class"))
	case "osd crush rule create-erasure":
		profile := c.profiles[text("profile")]
		if profile == nil {
			return syscall.ENOENT, "unknown erasure code profile", true
		}
		c.makeRule(text("name"), profile["crush-failure-domain"], profile["crush-device-class"])
	case "osd crush rule rm":
		c.made = slices.DeleteFunc(c.made, func(r madeRule) bool { return r.name == text("name") })
	case "osd erasure-code-profile set":
		c.profiles[text("name")] = map[string]string{}
		for _, pair := range cmd["profile"].([]any) {
			key, value, _ := strings.Cut(pair.(string), "=")
			c.profiles[text("name")][key] = value
		}
	case "osd erasure-code-profile rm":
		delete(c.profiles, text("name"))
	case "osd pool create":
		errno, status = c.makePool(text("pool"), cmd)
	default:
		errno, status, known = c.changePool(prefix, cmd)
		return errno, status, known
	}
	c.changed()
	return errno, status, true
}

func (c *Cluster) makeRule(name, domain, class string) {
	if !slices.ContainsFunc(c.made, func(r madeRule) bool { return r.name == name }) {
		c.lastRule++
		c.made = append(c.made, madeRule{c.lastRule, name, domain, class})
	}
}

// firstRule is the CRUSH rule that a cluster begins with, and ownName the pool that the mgr makes for itself.
const (
	firstRule = "replicated_rule"
	ownName   = "device_health_metrics"
)

// birthOf is what a mon that makes a cluster has the first rule spread over: hosts, or OSDs if its ceph.conf says so.
func birthOf(d *api.Daemon) string {
	for _, f := range d.Spec.Files {
		for _, src := range f.Sources {
			if f.Path == "ceph.conf" && src.Text != nil && strings.Contains(*src.Text, "osd_crush_chooseleaf_type = 0\n") {
				return "osd"
			}
		}
	}
	return "host"
}

// ownPool is the mgr's own pool, which it makes when there are OSDs.
func (c *Cluster) ownPool() *pool {
	if c.own == nil && len(c.osds) > 0 {
		c.own = c.newPool(1)
	}
	return c.own
}

// newPool is a pool as Ceph makes it by its defaults.
func (c *Cluster) newPool(id int) *pool {
	p := &pool{id: id, rule: firstRule, quotas: map[string]int64{}, options: map[string]any{}, applications: map[string]any{}}
	p.size, _ = strconv.Atoi(cmp.Or(c.stored["mon osd_pool_default_size"], c.stored["global osd_pool_default_size"], "3"))
	p.minSize = p.size - p.size/2
	for _, r := range c.made {
		if strconv.Itoa(r.id) == c.stored["global osd_pool_default_crush_rule"] {
			p.rule = r.name
		}
	}
	return p
}

// CreatePool makes a pool of which nothing is said, as a person does: 'ceph osd pool create NAME'.
func (c *Cluster) CreatePool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastPool++
	c.pools[name] = c.newPool(c.lastPool)
	c.changed()
}

// Pool is a pool, or the mgr's own, as "size SIZE/MIN over LEVELs, rule RULE".
func (c *Cluster) Pool(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.poolNamed(name)
	return fmt.Sprintf("size %d/%d over %ss, rule %s", p.size, p.minSize, c.levelOf(p.rule), p.rule)
}

func (c *Cluster) poolNamed(name string) *pool {
	if name == ownName {
		return c.ownPool()
	}
	return c.pools[name]
}

func (c *Cluster) makePool(name string, cmd map[string]any) (syscall.Errno, string) {
	rule, _ := cmd["rule"].(string)
	if c.pools[name] != nil {
		return 0, fmt.Sprintf("pool '%s' already exists", name)
	}
	if c.ruleID(rule) < 0 {
		return syscall.ENOENT, fmt.Sprintf("specified rule %s doesn't exist", rule)
	}
	c.lastPool++
	p := &pool{id: c.lastPool, rule: rule, quotas: map[string]int64{}, options: map[string]any{}, applications: map[string]any{}}
	if cmd["pool_type"] == "erasure" {
		p.erasure, p.profile = true, fmt.Sprint(cmd["erasure_code_profile"])
		k, _ := strconv.Atoi(c.profiles[p.profile]["k"])
		m, _ := strconv.Atoi(c.profiles[p.profile]["m"])
		p.size, p.minSize = k+m, k+min(1, m-1)
	} else {
		p.size = int(cmd["size"].(float64))
		p.minSize = p.size - p.size/2
	}
	if p.size == 1 && (cmd["yes_i_really_mean_it"] != true || !c.config["mon_allow_pool_size_one"]) {
		return syscall.EPERM, "configuring pool size as 1 is disabled by default."
	}
	c.pools[name] = p
	return 0, ""
}

func (c *Cluster) changePool(prefix string, cmd map[string]any) (errno syscall.Errno, status string, known bool) {
	name := fmt.Sprint(cmd["pool"])
	p := c.poolNamed(name)
	if !strings.HasPrefix(prefix, "osd pool ") || prefix == "osd pool stats" {
		return 0, "", false
	}
	if p == nil {
		return syscall.ENOENT, fmt.Sprintf("unrecognized pool '%s'", name), true
	}
	switch prefix {
	case "osd pool application enable":
		p.applications[fmt.Sprint(cmd["app"])] = map[string]any{}
	case "osd pool set-quota":
		p.quotas[fmt.Sprint(cmd["field"])], _ = strconv.ParseInt(fmt.Sprint(cmd["val"]), 10, 64)
	case "osd pool set":
		errno, status = c.setPool(p, fmt.Sprint(cmd["var"]), fmt.Sprint(cmd["val"]))
	case "osd pool delete":
		if !c.config["mon_allow_pool_delete"] || cmd["yes_i_really_really_mean_it"] != true {
			return syscall.EPERM, "pool deletion is disabled", true
		}
		delete(c.pools, name)
	}
	c.changed()
	return errno, status, true
}

func (c *Cluster) setPool(p *pool, name, value string) (syscall.Errno, string) {
	number, _ := strconv.Atoi(value)
	switch {
	case name == "size":
		p.size, p.minSize = number, min(p.minSize, number)
	case name == "min_size" && number > p.size:
		return syscall.EINVAL, fmt.Sprintf("pool min_size must be between 1 and size, which is set to %d", p.size)
	case name == "min_size":
		p.minSize = number
	case name == "crush_rule" && c.ruleID(value) < 0:
		return syscall.ENOENT, fmt.Sprintf("crush rule %s does not exist", value)
	case name == "crush_rule":
		p.rule = value
	case value == "unset":
		delete(p.options, name)
	default:
		p.options[name] = value
	}
	return 0, ""
}

func (c *Cluster) ruleID(name string) int {
	if name == firstRule {
		return 0
	}
	for _, r := range c.made {
		if r.name == name {
			return r.id
		}
	}
	return -1
}

// madePools are the pools that were made, in the shape of pattern, a recorded one.
func (c *Cluster) madePools(pattern map[string]any) (all []any) {
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		p, a := c.pools[name], maps.Clone(pattern)
		a["pool"], a["pool_name"], a["size"], a["min_size"], a["pg_num"] = p.id, name, p.size, p.minSize, poolPGs
		a["crush_rule"], a["options"], a["application_metadata"] = c.ruleID(p.rule), p.options, p.applications
		a["quota_max_bytes"], a["quota_max_objects"] = p.quotas["max_bytes"], p.quotas["max_objects"]
		if p.erasure {
			a["type"], a["erasure_code_profile"] = 3, p.profile
			if p.options["allow_ec_overwrites"] == "true" {
				a["flags_names"] = "hashpspool,ec_overwrites"
			}
		}
		all = append(all, a)
	}
	return all
}

// madeRules are the rules that were made, in the shape of pattern, a recorded one.
func (c *Cluster) madeRules(pattern map[string]any) (all []any) {
	for _, r := range c.made {
		a, root := maps.Clone(pattern), "default"
		if r.class != "" {
			root += "~" + r.class
		}
		a["rule_id"], a["rule_name"] = r.id, r.name
		a["steps"] = []any{
			map[string]any{"op": "take", "item_name": root},
			map[string]any{"op": "chooseleaf_firstn", "num": 0, "type": r.domain},
			map[string]any{"op": "emit"},
		}
		all = append(all, a)
	}
	return all
}

// Store has clients write so many bytes into a pool, in objects of 4 MiB.
func (c *Cluster) Store(pool string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[pool].stored = bytes
}

// poolDf is 'df' as far as pools are concerned.
func (c *Cluster) poolDf() any {
	pools := []any{}
	for name, p := range c.pools {
		stats := map[string]any{"stored": p.stored, "objects": p.stored >> 22, "max_avail": 4 << 30}
		pools = append(pools, map[string]any{"name": name, "stats": stats})
	}
	return map[string]any{"pools": pools}
}

func (c *Cluster) poolStats() any {
	all := []any{}
	for name, p := range c.pools {
		all = append(all, map[string]any{"pool_name": name, "client_io_rate": map[string]any{"write_op_per_sec": p.busy, "write_bytes_sec": p.bytes}})
	}
	return all
}

// pgsBrief are the states of all placement groups.
func (c *Cluster) pgsBrief(state string) any {
	stats := []any{map[string]any{"pgid": "1.0", "state": state}}
	for _, p := range c.pools {
		for i := range poolPGs {
			stats = append(stats, map[string]any{"pgid": fmt.Sprintf("%d.%x", p.id, i), "state": state})
		}
	}
	return map[string]any{"pg_ready": true, "pg_stats": stats}
}
