package gluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/drift"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// optionAllow has who may mount a volume; allowAll is everybody, as without the option.
const (
	optionAllow = "auth.allow"
	allowAll    = "*"
)

// safeOptions are those that differ from GlusterFS's own defaults. With cluster.lookup-optimize, clients trust the layout of a
// directory as soon as one node has done its part of a rebalance or a drain, and do not find files that others have not come to
// yet (seen with 10.3; gluster/glusterfs#973). Without it, a file that is not where it belongs is looked for in all sets.
var safeOptions = map[string]string{"cluster.lookup-optimize": "off"}

// wantedOptions are the options that a volume shall have: the safe ones, before them its cluster's, and its own before all.
func (p *planner) wantedOptions(v *volume) map[string]string {
	want := maps.Clone(safeOptions)
	if g := p.cluster.Spec.GlusterFS; g != nil {
		for name, value := range g.Options {
			want[name] = string(value)
		}
	}
	for name, value := range v.declared.Spec.Options {
		want[name] = string(value)
	}
	if allow := v.declared.Spec.Auth.Allow; len(allow) > 0 {
		if p.nfs.At != nil && len(p.exportersOf(v.name)) > 0 && !slices.Contains(allow, p.nfs.At.Address) {
			allow = append(slices.Clone(allow), p.nfs.At.Address) // who may use an export is said in the NFSExport
		}
		want[optionAllow] = strings.Join(slices.Sorted(slices.Values(allow)), ",")
	}
	return want
}

// setOptions brings options to what is declared. Those that were set and are not declared any more go back to their default;
// what somebody set by hand is left alone. They come last: one that GlusterFS does not take must not hold up anything else of its volume.
func (p *planner) setOptions() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.refusal != "" || v.declared.DeletionTimestamp != nil {
			continue
		}
		want, set, reset := p.wantedOptions(v), map[string]string{}, map[string]string{}
		for name, value := range want {
			if have, ok := v.pool.Options[name]; !ok || have != value {
				set[name] = value
			}
		}
		names := slices.Collect(maps.Keys(want))
		for _, name := range v.status.Options {
			if _, ok := v.pool.Options[name]; ok && !slices.Contains(names, name) {
				reset[name] = ""
				names = append(names, name)
			}
		}
		slices.Sort(names)
		v.status.Options = names
		v.narrowed = narrows(v.pool.Options, set)
		if v.unset = len(set) > 0; v.unset {
			why := "declared otherwise: " + words.Few(slices.Sorted(maps.Keys(set)))
			if v.status.OptionsSum == drift.Sum(want) { // all of them were set before
				p.outside[glusterd.VerbSet+" "+v.name], why = true, drift.Options(set, v.pool.Options)
			}
			p.command(glusterd.VerbSet, v.name, set, api.RiskNone, "%s", why)
		} else {
			v.status.OptionsSum = drift.Sum(want)
		}
		if len(reset) > 0 {
			p.command(glusterd.VerbReset, v.name, reset, api.RiskNone, "%s", "not declared any more: "+words.Few(slices.Sorted(maps.Keys(reset))))
		}
	}
}

// narrows says whether one of the options to be set takes from somebody what the volume gives them now.
func narrows(have, set map[string]string) bool {
	want, ok := set[optionAllow]
	if !ok || want == allowAll {
		return false
	}
	may := strings.Split(want, ",")
	return slices.ContainsFunc(strings.Split(cmp.Or(have[optionAllow], allowAll), ","), func(who string) bool {
		return !slices.Contains(may, strings.TrimSpace(who))
	})
}
