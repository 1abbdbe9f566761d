package ceph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// poolDefaults are what a pool gets of which nothing is said, and what Ceph's own pools are brought to.
type poolDefaults struct {
	// size is the number of copies; 0 where nobody can tell.
	size int
	// rule is the number of the CRUSH rule, or -1, and ruleName the name of the one that Holdfast has new pools use, if it
	// does. makes is set while that is not there.
	rule     int
	ruleName string
	makes    bool
	set, rm  map[string]string
}

// lineDefaults is what the commands of defaults depend on: on each other.
const lineDefaults = "defaults"

// planDefaults finds the defaults of new pools for the cluster as large as it is now. They are Ceph's own where there are
// three hosts. What a spec or an administrator has set is left alone.
func (p *planner) planDefaults() {
	p.defaults.rule = -1
	if !p.reachable() || p.seen.Defaults == nil {
		return
	}
	d := &p.defaults
	d.size = p.defaultSize()
	want := map[string]string{}
	if d.size != maxCopies {
		want[optionDefaultSize] = strconv.Itoa(d.size)
	}
	if d.size == 1 {
		// Someone who declares one OSD has decided to go without a second copy. Ceph would warn of it for ever, and the
		// cluster would never be well.
		want[optionAllowOne], want[optionWarnOne] = "true", "false"
	}
	p.chooseRule(want)
	if p.seen.Defaults.Stored != nil {
		p.compareDefaults(want)
	}
}

// compareDefaults finds what Ceph's own configuration lacks, and what it has too much.
func (p *planner) compareDefaults(want map[string]string) {
	d, facts := &p.defaults, p.seen.Defaults
	d.set, d.rm = map[string]string{}, map[string]string{}
	for name, value := range want {
		key := defaultKey(name)
		if p.chosenDefault(name) == "" && (facts.Owned[key].Is != value || facts.Stored[key] == "") {
			d.set[key] = value
		}
	}
	for key := range facts.Owned {
		_, name, _ := strings.Cut(key, " ")
		if _, wanted := want[name]; !wanted && p.chosenDefault(name) == "" {
			d.rm[key] = ""
		}
	}
}

// chosenDefault is what the spec, or an administrator, has set a default to; empty where nobody has.
func (p *planner) chosenDefault(name string) string {
	for _, section := range []string{"mon", "global"} {
		if value, is := p.options[section][name]; is {
			return value
		}
		key := configKey(section, name)
		stored, own := p.seen.Defaults.Stored[key], p.seen.Defaults.Owned[key]
		if stored != "" && stored != own.As && stored != own.Is {
			return stored
		}
	}
	return ""
}

// defaultSize is how many copies new pools keep: as many as there are OSDs, up to three. It grows with the OSDs that are
// there, and does not become less than any pool keeps.
func (p *planner) defaultSize() int {
	if n := number(p.chosenDefault(optionDefaultSize)); n > 0 {
		return n
	}
	was, want := maxCopies, p.confFacts().copies()
	if own := number(p.seen.Defaults.Owned[defaultKey(optionDefaultSize)].Is); own > 0 {
		was = own
	}
	switch {
	case want > was:
		return max(was, min(want, len(p.workingOSDs())))
	case slices.ContainsFunc(p.seen.Pools, func(x Pool) bool { return !x.Erasure && x.Size > want }):
		return was
	}
	return want
}

// workingOSDs are those that are up and in, and do not leave.
func (p *planner) workingOSDs() (ids []int) {
	for id, o := range p.seen.OSDs {
		if o.In && o.Up && !p.parting[daemonName(p.cluster.Name, "osd", strconv.Itoa(id))] {
			ids = append(ids, id)
		}
	}
	return ids
}

// hostsWanted is how many hosts it takes to have copies on distinct ones.
func (p *planner) hostsWanted() int {
	if n := number(p.chosenDefault(optionDefaultSize)); n > 1 {
		return n
	}
	return maxCopies
}

// chooseRule finds the CRUSH rule of new pools. Ceph changes no rule; so in a cluster that has outgrown the one of its
// birth, new pools get another one. It is never made less wide.
func (p *planner) chooseRule(want map[string]string) {
	d, chosen := &p.defaults, p.chosenDefault(optionDefaultRule)
	if !p.poolsKnown() {
		return
	}
	rules := p.seen.PoolFacts.Rules
	own, has := p.seen.Defaults.Owned[defaultKey(optionDefaultRule)]
	d.rule = firstRule(rules)
	switch _, there := rules[number(own.Is)]; {
	case chosen != "":
		d.rule = number(chosen)
		return
	case has && there:
		d.rule, d.ruleName = number(own.Is), rules[number(own.Is)].Name
		want[optionDefaultRule] = own.Is
	}
	if !birthRule(rules[d.rule]) || p.roomOver("host", maxCopies) < p.hostsWanted() {
		return
	}
	d.ruleName = rulePrefix + "host"
	switch id := p.ruleID(d.ruleName); {
	case id < 0:
		d.makes = true
	case hostRule(rules[id]):
		d.rule, want[optionDefaultRule] = id, strconv.Itoa(id)
	}
}

// hostRule says whether a CRUSH rule does what rulePrefix+"host" is made for.
func hostRule(r Rule) bool {
	return r.Domain() == "host" && r.Takes[0].Root == poolRoot && r.Takes[0].Class == ""
}

// roomOver is how many of so many copies find a place on distinct buckets of a level, with the OSDs that are up and in.
func (p *planner) roomOver(level string, copies int) int {
	rule := Rule{Takes: []Take{{Root: poolRoot, Steps: []Choose{{Type: level}}}}}
	return rule.Room(p.openPlaces(), copies)
}

// writeDefaults asks for what planDefaults found.
func (p *planner) writeDefaults() {
	d := &p.defaults
	text := fmt.Sprintf("new pools keep %s, on %s", words.Plural(d.size, "copy"), words.Plural(len(p.workingOSDs()), "OSD"))
	if d.makes {
		p.defaultCommand(verbRuleReplicated, map[string]string{optionRule: d.ruleName, paramDomain: "host"},
			fmt.Sprintf("new pools could keep each copy on another host, but the CRUSH rule %s does not exist", d.ruleName))
	}
	if len(d.set) > 0 {
		p.defaultCommand(verbDefaultSet, d.set, fmt.Sprintf("%s: %s", words.Few(optionNames(d.set)), text))
	}
	if len(d.rm) > 0 {
		p.defaultCommand(verbDefaultRm, d.rm, fmt.Sprintf("%s: %s", words.Few(optionNames(d.rm)), text))
	}
}

func (p *planner) defaultCommand(verb string, params map[string]string, why string) {
	p.command(api.ReasonScaling, verb, lineDefaults, params, why)
	p.plan.Commands[len(p.plan.Commands)-1].Line = lineDefaults
	p.moving = true
}

// defaultsStored says whether a cluster without pools has its defaults: the mgr makes its own pool by them as soon as an
// OSD is up.
func (p *planner) defaultsStored() bool {
	return p.seen.Defaults == nil || len(p.seen.Pools) > 0 || len(p.defaults.set)+len(p.defaults.rm) == 0
}
