package ceph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// The verbs of pools. The object of those of one pool is "pool/NAME", that of the others the rule or profile.
const (
	verbPoolCreate     = "osd pool create"
	verbPoolEnable     = "osd pool application enable"
	verbPoolSet        = "osd pool set"
	verbPoolQuota      = "osd pool set-quota"
	verbPoolDelete     = "osd pool delete"
	verbRuleReplicated = "osd crush rule create-replicated"
	verbRuleErasure    = "osd crush rule create-erasure"
	verbRuleRm         = "osd crush rule rm"
	verbProfileSet     = "osd erasure-code-profile set"
	verbProfileRm      = "osd erasure-code-profile rm"
)

// The parameters of those commands, beside the names of options.
const (
	paramProfile     = "profile"
	paramApplication = "application"
	paramOption      = "option"
	paramValue       = "value"
	paramDomain      = "domain"
	paramClass       = "class"
	// paramID is the number of the one pool, or filesystem, that a command is about: one that has its name by now is left alone.
	paramID = "id"
)

// pool is the name of the pool that a command is about.
func (r request) pool() string { return strings.TrimPrefix(r.Object, "pool/") }

// poolCreate makes a pool; one that is there already is left as it is.
func (c *conn) poolCreate(ctx context.Context, r request) error {
	cmd := command{"prefix": r.Verb, "pool": r.pool(), "rule": r.Params[optionRule]}
	if profile := r.Params[paramProfile]; profile != "" {
		cmd["pool_type"], cmd["erasure_code_profile"] = "erasure", profile
		return c.plain(ctx, r, cmd)
	}
	size, err := strconv.Atoi(r.Params[optionSize])
	if err != nil {
		return fmt.Errorf("making pool %s: %w", r.pool(), err)
	}
	cmd["pool_type"], cmd["size"] = "replicated", size
	return c.allowing(ctx, size == 1, "mon_allow_pool_size_one", func() error {
		cmd["yes_i_really_mean_it"] = size == 1
		return c.plain(ctx, r, cmd)
	})
}

func (c *conn) poolEnable(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "pool": r.pool(), "app": r.Params[paramApplication], "yes_i_really_mean_it": true})
}

func (c *conn) poolSet(ctx context.Context, r request) error {
	name, value := r.Params[paramOption], r.Params[paramValue]
	single := name == optionSize && value == "1"
	cmd := command{"prefix": r.Verb, "pool": r.pool(), "var": name, "val": value}
	return c.allowing(ctx, single, "mon_allow_pool_size_one", func() error {
		if single {
			cmd["yes_i_really_mean_it"] = true
		}
		return c.plain(ctx, r, cmd)
	})
}

func (c *conn) poolQuota(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "pool": r.pool(), "field": r.Params[paramOption], "val": r.Params[paramValue]})
}

// poolDelete deletes a pool with all that is in it. One that is gone already, or has another name by now, is no error.
func (c *conn) poolDelete(ctx context.Context, r request) error {
	var now osdMap
	if err := c.ask(ctx, "osd dump", &now); err != nil {
		return wrapped(err, r)
	}
	if !slices.ContainsFunc(now.Pools, func(p poolAnswer) bool { return p.Name == r.pool() && strconv.FormatInt(p.ID, 10) == r.Params[paramID] }) {
		return nil
	}
	return c.allowing(ctx, true, "mon_allow_pool_delete", func() error {
		return c.plain(ctx, r, command{"prefix": r.Verb, "pool": r.pool(), "pool2": r.pool(), "yes_i_really_really_mean_it": true})
	})
}

// allowing does something that the mons allow only while an option of theirs is set, and puts back what was there before.
func (c *conn) allowing(ctx context.Context, needed bool, option string, do func() error) error {
	if !needed {
		return do()
	}
	out, err := c.client.Mon(ctx, command{"prefix": "config get", "who": "mon", "key": option}, nil)
	if err != nil {
		return fmt.Errorf("asking whether %s is set: %w", option, err)
	}
	if strings.TrimSpace(string(out)) == "true" {
		return do()
	}
	before, err := c.monOption(ctx, option)
	if err != nil {
		return err
	}
	if _, err := c.client.Mon(ctx, command{"prefix": "config set", "who": "mon", "name": option, "value": "true"}, nil); err != nil {
		return fmt.Errorf("setting %s: %w", option, err)
	}
	err = do()
	// It is taken back also when the time for the command is over.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), laterAnswer)
	defer cancel()
	back := command{"prefix": "config rm", "who": "mon", "name": option}
	if before != "" {
		back = command{"prefix": "config set", "who": "mon", "name": option, "value": before}
	}
	if _, e := c.client.Mon(after, back, nil); e != nil {
		err = errors.Join(err, fmt.Errorf("restoring %s: %w", option, e))
	}
	return err
}

// monOption is what Ceph's own configuration says of an option for all mons; empty where it says nothing.
func (c *conn) monOption(ctx context.Context, option string) (string, error) {
	var dump []struct {
		Section string `json:"section"`
		Name    string `json:"name"`
		Value   string `json:"value"`
	}
	if err := c.ask(ctx, "config dump", &dump); err != nil {
		return "", fmt.Errorf("reading the settings of the mons: %w", err)
	}
	for _, o := range dump {
		if o.Section == "mon" && o.Name == option {
			return o.Value, nil
		}
	}
	return "", nil
}

func (c *conn) ruleReplicated(ctx context.Context, r request) error {
	cmd := command{"prefix": r.Verb, "name": r.Params[optionRule], "root": poolRoot, "type": r.Params[paramDomain]}
	if class := r.Params[paramClass]; class != "" {
		cmd["class"] = class
	}
	return c.plain(ctx, r, cmd)
}

func (c *conn) ruleErasure(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "name": r.Params[optionRule], "profile": r.Params[optionRule]})
}

func (c *conn) profileSet(ctx context.Context, r request) error {
	profile := []string{"k=" + r.Params["k"], "m=" + r.Params["m"], "crush-failure-domain=" + r.Params[paramDomain], "crush-root=" + poolRoot}
	if class := r.Params[paramClass]; class != "" {
		profile = append(profile, "crush-device-class="+class)
	}
	return c.plain(ctx, r, command{"prefix": r.Verb, "name": r.Params[paramProfile], "profile": profile})
}

// ruleRm removes a rule or profile. One that somebody uses by now stays, without an error.
func (c *conn) ruleRm(ctx context.Context, r request) error {
	err := c.plain(ctx, r, command{"prefix": r.Verb, "name": r.Object})
	var refused *rados.CommandError
	if errors.As(err, &refused) && refused.Errno == syscall.EBUSY {
		return nil
	}
	return err
}

// foreseePool changes a copy of the pool that a command is about.
func (f *foresight) foreseePool(r request, change func(*Pool)) {
	i := slices.IndexFunc(f.Pools, func(p Pool) bool { return p.Name == r.pool() })
	if i < 0 {
		return
	}
	pool := f.Pools[i]
	pool.Options, pool.Applications = maps.Clone(pool.Options), maps.Clone(pool.Applications)
	change(&pool)
	f.Pools = slices.Clone(f.Pools)
	f.Pools[i] = pool
}

func (f *foresight) rule(name string) int {
	if f.PoolFacts != nil {
		for id, r := range f.PoolFacts.Rules {
			if r.Name == name {
				return id
			}
		}
	}
	return -1
}

// newPoolPGs is osd_pool_default_pg_num.
const newPoolPGs = 32

func (f *foresight) poolCreate(r request) {
	if slices.ContainsFunc(f.Pools, func(p Pool) bool { return p.Name == r.pool() }) {
		return
	}
	pool := Pool{Name: r.pool(), Rule: f.rule(r.Params[optionRule]), PGs: newPoolPGs, Applications: map[string]bool{}, Options: map[string]string{}}
	for _, p := range f.Pools {
		pool.ID = max(pool.ID, p.ID)
	}
	pool.ID++
	if profile := r.Params[paramProfile]; profile != "" && f.PoolFacts != nil {
		k, _ := strconv.Atoi(f.PoolFacts.Profiles[profile]["k"])
		m, _ := strconv.Atoi(f.PoolFacts.Profiles[profile]["m"])
		pool.Erasure, pool.Profile, pool.Size, pool.MinSize = true, profile, k+m, k+min(1, m-1)
	} else {
		pool.Size, _ = strconv.Atoi(r.Params[optionSize])
		pool.MinSize = pool.Size - pool.Size/2
	}
	f.Pools = append(slices.Clone(f.Pools), pool)
	f.PGsWanted += pool.PGs
}

func (f *foresight) poolEnable(r request) {
	f.foreseePool(r, func(p *Pool) { p.Applications[r.Params[paramApplication]] = true })
}

func (f *foresight) poolSet(r request) {
	value := r.Params[paramValue]
	number, _ := strconv.Atoi(value)
	f.foreseePool(r, func(p *Pool) {
		switch name := r.Params[paramOption]; name {
		case optionSize:
			p.Size = number
		case optionMinSize:
			p.MinSize = number
		case optionRule:
			p.Rule = f.rule(value)
		case optionOverwrites:
			p.Overwrites = value == "true"
		default:
			p.Options[name] = value
			if value == optionUnset {
				delete(p.Options, name)
			}
		}
	})
}

func (f *foresight) poolQuota(r request) {
	n, _ := strconv.ParseInt(r.Params[paramValue], 10, 64)
	f.foreseePool(r, func(p *Pool) {
		if r.Params[paramOption] == "max_bytes" {
			p.MaxBytes = n
		} else {
			p.MaxObjects = n
		}
	})
}

func (f *foresight) poolDelete(r request) {
	f.Pools = slices.DeleteFunc(slices.Clone(f.Pools), func(p Pool) bool {
		meant := p.Name == r.pool() && strconv.FormatInt(p.ID, 10) == r.Params[paramID]
		if meant {
			f.PGsWanted -= p.PGs
		}
		return meant
	})
}

func (f *foresight) ruleMade(r request) {
	if f.PoolFacts == nil || f.rule(r.Params[optionRule]) >= 0 {
		return
	}
	id := 0
	for used := range f.PoolFacts.Rules {
		id = max(id, used+1)
	}
	f.PoolFacts.Rules[id] = Rule{Name: r.Params[optionRule], Erasure: r.Verb == verbRuleErasure, Takes: []Take{{
		Root: poolRoot, Class: r.Params[paramClass], Steps: []Choose{{Type: r.Params[paramDomain]}},
	}}}
}

func (f *foresight) ruleRm(r request) {
	if f.PoolFacts != nil {
		delete(f.PoolFacts.Rules, f.rule(r.Object))
	}
}

func (f *foresight) profileSet(r request) {
	if f.PoolFacts != nil {
		f.PoolFacts.Profiles[r.Params[paramProfile]] = map[string]string{"k": r.Params["k"], "m": r.Params["m"]}
	}
}

func (f *foresight) profileRm(r request) {
	if f.PoolFacts != nil {
		delete(f.PoolFacts.Profiles, r.Object)
	}
}

// poolPlaces gives OSDs that are new their places in CRUSH.
func (f *foresight) poolPlaces() {
	if f.PoolFacts == nil {
		return
	}
	for _, d := range f.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		if _, placed := f.PoolFacts.Places[id]; err == nil && !placed && f.OSDs[id].In {
			f.PoolFacts.Places[id] = f.placeAmong(f.PoolFacts.Places, id, crushHostOf(d))
		}
	}
}

// poolFacts are what Ceph says of pools, to be changed by commands. A Ceph that was never there has none of them yet.
func (f *foresight) poolFacts() *PoolFacts {
	x := f.seen.PoolFacts
	switch {
	case x != nil:
	case f.seen.Reachable || !hasPools(f.after.Resources):
		return nil
	default:
		x = &PoolFacts{Rules: map[int]Rule{}, Places: map[int]Place{}, Profiles: map[string]map[string]string{}}
	}
	return &PoolFacts{Rules: maps.Clone(x.Rules), Places: maps.Clone(x.Places), Profiles: maps.Clone(x.Profiles), Usage: x.Usage, Busy: x.Busy}
}
