package ceph

import (
	"context"
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// DefaultFacts are what Ceph's own configuration says of the defaults of new pools. Keys are as in ConfigFacts.
type DefaultFacts struct {
	// Owned is what Holdfast has set.
	Owned map[string]OwnedOption
	// Stored is what is set; nil where it was not asked for.
	Stored map[string]string
}

// The defaults that depend on how large the cluster is (Ceph docs, "Pool, PG and CRUSH config reference").
const (
	optionDefaultSize = "osd_pool_default_size"
	optionDefaultRule = "osd_pool_default_crush_rule"
	optionAllowOne    = "mon_allow_pool_size_one"
	optionWarnOne     = "mon_warn_on_pool_no_redundancy"
)

// verbDefaultSet and verbDefaultRm store the defaults of new pools, and take those away that Holdfast has stored. They are
// verbConfigSet and verbConfigRm with a record of their own, because no spec asks for them.
const (
	verbDefaultSet = "config set default"
	verbDefaultRm  = "config rm default"
)

// defaultsRecord is where Holdfast writes down which defaults it has set.
const defaultsRecord = "holdfast/defaults"

// recordOf is where the options are written down that a command sets.
func recordOf(verb string) string {
	if verb == verbDefaultSet || verb == verbDefaultRm {
		return defaultsRecord
	}
	return configRecord
}

// fillDefaults asks how the defaults are stored where Holdfast has set some, or may have to, and where pools have fewer
// copies than Ceph's default: an administrator may want that. In an ordinary cluster it costs nothing.
func (c *conn) fillDefaults(ctx context.Context, view *engine.View, o *Observation) error {
	if c.defaults == nil {
		owned, err := c.readOwned(ctx, defaultsRecord)
		if err != nil {
			return err
		}
		c.defaults = owned
	}
	o.Defaults = &DefaultFacts{Owned: c.defaults}
	if len(c.defaults) == 0 && !beginsSmall(view.Daemons) && !birthRule(o.PoolFacts.Rules[firstRule(o.PoolFacts.Rules)]) &&
		!slices.ContainsFunc(o.Pools, func(x Pool) bool { return !x.Erasure && x.Size < maxCopies }) {
		return nil
	}
	if o.Config != nil && o.Config.Stored != nil {
		o.Defaults.Stored = o.Config.Stored
		return nil
	}
	var err error
	o.Defaults.Stored, err = c.readStored(ctx)
	return err
}

// beginsSmall says whether there are fewer OSDs than Ceph's default keeps copies.
func beginsSmall(daemons []api.Daemon) bool {
	osds := 0
	for i := range daemons {
		if daemons[i].Spec.Type == TypeOSD {
			osds++
		}
	}
	return osds < maxCopies
}

// birthRule says whether a CRUSH rule is the one of a cluster that began on fewer than three hosts: copies are on
// distinct OSDs, whatever hosts these are on.
func birthRule(r Rule) bool {
	return r.Domain() == "osd" && r.Takes[0].Root == poolRoot && r.Takes[0].Class == "" && !r.Erasure
}

// firstRule is the CRUSH rule that new pools get where no option says otherwise, or -1
// (CrushWrapper::get_osd_pool_default_crush_replicated_ruleset).
func firstRule(rules map[int]Rule) int {
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		if !rules[id].Erasure {
			return id
		}
	}
	return -1
}

// defaultFacts are those of before, to be changed by commands. A Ceph that was never there has none of them yet.
func (f *foresight) defaultFacts(fresh bool) *DefaultFacts {
	was := f.seen.Defaults
	switch {
	case was == nil && !fresh:
		return nil
	case was == nil:
		was = &DefaultFacts{Stored: map[string]string{}}
	}
	now := &DefaultFacts{Owned: maps.Clone(was.Owned), Stored: maps.Clone(was.Stored)}
	if now.Owned == nil {
		now.Owned = map[string]OwnedOption{}
	}
	if now.Stored == nil && beginsSmall(f.after.Daemons) {
		now.Stored = map[string]string{}
	}
	return now
}

// defaultSet takes it that Ceph stores values as they are written.
func (f *foresight) defaultSet(r request) {
	for key, value := range r.Params {
		f.Defaults.Owned[key], f.Defaults.Stored[key] = OwnedOption{Is: value, As: value}, value
	}
}

func (f *foresight) defaultRm(r request) {
	for key := range r.Params {
		delete(f.Defaults.Owned, key)
		delete(f.Defaults.Stored, key)
	}
}

// defaultKey is the key of a default: it is set for all daemons, since the mons make pools and the mgr goes by it.
func defaultKey(name string) string { return configKey("global", name) }

// number reads the value of an option; 0 where it is none.
func number(value string) int {
	n, _ := strconv.Atoi(value)
	return n
}
