package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/optionset"
	"github.com/holdfast-storage/holdfast/driver/ceph/policy"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// options are what spec.ceph asks for, or a part of it.
type options = optionset.Options

// declared are the options of spec.ceph.config, and those that its policies come to.
func declared(spec *api.CephSpec, release string) options {
	o := options{}
	for section, of := range spec.Config {
		for name, value := range of {
			o.Set(section, name, string(value))
		}
	}
	for name, value := range policyOptions(spec, release) {
		o.Set("osd", name, value)
	}
	return o
}

// sectionsOf are the sections that count for a daemon.
func sectionsOf(daemonType, id string) []string {
	entity := entityFor(daemonType, id)
	kind, _, _ := strings.Cut(entity, ".")
	return []string{"global", kind, entity}
}

// wholeConf begins what a Daemon remembers of its options when it was started with all of them in its ceph.conf: before Ceph could be asked for
// them.
const wholeConf = "# all\n"

// startedWith is what a daemon that starts now has in its ceph.conf: as long as Ceph's own configuration does not have all that is declared,
// everything; else only what it cannot get from there in time.
func (p *planner) startedWith(daemonType, id string) string {
	mine := p.options.Of(sectionsOf(daemonType, id))
	if !p.configStored {
		if len(mine) == 0 {
			return ""
		}
		return wholeConf + mine.Text()
	}
	return p.pinned(daemonType, mine).Text()
}

// pinned are those of a daemon's options that count from its start: those that Ceph says so of, and those that Holdfast would write into
// ceph.conf otherwise, where they win over Ceph's own configuration.
func (p *planner) pinned(daemonType string, mine options) options {
	if len(mine) == 0 {
		return nil
	}
	part := options{}
	mine.Each(func(section, name, value string) {
		info := p.seen.Config.Options[name]
		if _, is := globalNames()[name]; info.Startup || info.FileOnly || is && (daemonType == TypeMon || !monsOwn(name)) {
			part.Set(section, name, value)
		}
	})
	return part
}

// globalNames has each option that confFacts.global may write.
var globalNames = sync.OnceValue((&confFacts{osds: 1}).global)

// monsOwn says whether an option concerns the mons alone.
func monsOwn(name string) bool {
	return strings.HasPrefix(name, "mon_") || strings.HasPrefix(name, "osd_pool_") || strings.HasPrefix(name, "osd_crush_")
}

// confOf is what a daemon has of the user's options in its ceph.conf: what it was started with, until it is started again.
func (p *planner) confOf(daemonType, id string) string {
	have := p.have[daemonName(p.cluster.Name, kindOf(daemonType), id)]
	if have == nil || have.Spec.State == api.WantPrepared || ended(have) {
		return p.startedWith(daemonType, id)
	}
	return have.Spec.Parameters[ParamConfig]
}

// startedWithout says which options a daemon was started with otherwise than it should be; empty where it need not be started again. What only counts
// for OSDs that are made from now on is no reason.
func (p *planner) startedWithout(d *api.Daemon) []string {
	text := d.Spec.Parameters[ParamConfig]
	have, want := optionset.Parse(text), p.options.Of(sectionsOf(d.Spec.Type, d.Spec.ID))
	if !strings.HasPrefix(text, wholeConf) {
		want = p.pinned(d.Spec.Type, want)
	}
	if len(have) == 0 && len(want) == 0 {
		return nil
	}
	names := map[string]bool{}
	differ := func(a, b options) {
		a.Each(func(section, name, value string) {
			if is, ok := b[section][name]; (!ok || is != value) && !p.seen.Config.Options[name].Create {
				names[name] = true
			}
		})
	}
	differ(have, want)
	differ(want, have)
	return slices.Sorted(maps.Keys(names))
}

// planConfig finds out what is declared, and brings Ceph's own configuration to it: all of it, or nothing while something of it is wrong. What
// an administrator has set there and nobody declared is left alone.
func (p *planner) planConfig() {
	release := ""
	if p.seen != nil {
		release = p.seen.Version
	}
	p.options = declared(&p.spec, release)
	p.refusePlaces()
	p.checkNames()
	if problems := p.configProblems(); len(problems) > 0 {
		for _, text := range problems {
			p.decide(api.VerdictRefuse, api.ReasonInvalidSpec, "config", "%s", text)
		}
		return
	}
	if !p.reachable() || p.seen.Config == nil {
		return
	}
	facts := p.seen.Config
	if awaitsOptions(p, facts) {
		return
	}
	set, gone := map[string]string{}, map[string]string{}
	p.options.Each(func(section, name, value string) {
		key := configKey(section, name)
		if facts.Options[name].FileOnly {
			return
		}
		if was := facts.Owned[key]; was.Is != value || was.As == "" && value != "" || facts.Stored[key] != was.As {
			set[key] = value
		}
	})
	for key := range facts.Owned {
		section, name, _ := strings.Cut(key, " ")
		if _, wanted := p.options[section][name]; !wanted {
			gone[key] = ""
		}
	}
	p.configStored = len(set)+len(gone) == 0
	p.configSet, p.configGone = set, gone
}

// awaitsOptions says whether options are declared that Ceph has yet to be asked for: a run that
// places daemons reads the spec once more after it has asked.
func awaitsOptions(p *planner, facts *ConfigFacts) bool {
	var unasked []string
	p.options.Each(func(_, name, _ string) {
		if !facts.hasAsked(name) {
			unasked = append(unasked, name)
		}
	})
	if len(unasked) > 0 {
		p.decide(api.VerdictWait, api.ReasonConfiguring, "config",
			"not set yet: %s; the next orchestration asks Ceph for them", words.Few(unasked))
	}
	return len(unasked) > 0
}

// writeConfig asks for what planConfig found.
func (p *planner) writeConfig() {
	if len(p.configSet) > 0 {
		p.configCommand(api.ReasonDeclared, verbConfigSet, p.configSet,
			"set by spec.ceph: "+words.Few(optionNames(p.configSet)))
	}
	if len(p.configGone) > 0 {
		p.configCommand(api.ReasonRemoving, verbConfigRm, p.configGone,
			"removed from spec.ceph: "+words.Few(optionNames(p.configGone)))
	}
}

func (p *planner) configCommand(reason api.Reason, verb string, params map[string]string, why string) {
	p.command(reason, verb, "config", params, why)
	p.plan.Commands[len(p.plan.Commands)-1].Line = verb
	p.moving = true
}

func configKey(section, name string) string { return section + " " + name }

func optionNames(keys map[string]string) []string {
	names := map[string]bool{}
	for key := range keys {
		_, name, _ := strings.Cut(key, " ")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// configProblems are what is wrong with the options that are declared, as sentences.
func (p *planner) configProblems() []string {
	var problems []string
	for name := range policyOptions(&p.spec, "") {
		for _, section := range []string{"global", "osd"} {
			if _, twice := p.spec.Config[section][name]; twice {
				problems = append(problems, fmt.Sprintf("spec.ceph.config.%s has %s, which spec.ceph.recovery or "+
					"spec.ceph.scrub also sets: remove one of them", section, name))
			}
		}
	}
	slices.Sort(problems)
	if !p.reachable() || p.seen.Config == nil {
		return problems
	}
	facts := p.seen.Config
	p.options.Each(func(section, name, value string) {
		info, known := facts.Options[name]
		switch {
		case known:
			if why := info.Wrong(value); why != "" {
				problems = append(problems, fmt.Sprintf("spec.ceph.config.%s: %s cannot be %q: %s; the configuration stays "+
					"unchanged. See 'holdfast ceph config help %s'", section, name, value, why, name))
			}
		case strings.HasPrefix(name, "mgr/") && !p.seen.MgrAvailable:
			// only a manager knows the options of its modules
		case !facts.hasAsked(name): // it was declared meanwhile
		default:
			meant := ""
			if near := facts.Near[name]; len(near) > 0 {
				meant = ": did you mean " + strings.Join(near, " or ") + "?"
			}
			problems = append(problems, fmt.Sprintf("spec.ceph.config.%s: Ceph %s has no option %s%s The configuration "+
				"stays unchanged. All options: 'holdfast ceph config ls'",
				section, p.seen.Version, name, cmp.Or(meant, ".")))
		}
	})
	return problems
}

// policyOptions are what the policies in the spec come to in a release; without one, all that they may come to.
func policyOptions(spec *api.CephSpec, release string) map[string]string {
	return policy.Options(spec, release != "" && !olderRelease(release, policy.MclockSince))
}
