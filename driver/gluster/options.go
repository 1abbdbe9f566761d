package gluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/drift"
	"github.com/holdfast-storage/holdfast/driver/gluster/options"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// optionAllow has who may mount a volume.
const optionAllow = "auth.allow"

// safeOptions are those that differ from GlusterFS's own defaults. With cluster.lookup-optimize, clients trust the layout of a
// directory as soon as one node has done its part of a rebalance or a drain, and do not find files that others have not come to
// yet (seen with 10.3; gluster/glusterfs#973). Without it, a file that is not where it belongs is looked for in all sets.
var safeOptions = map[string]string{"cluster.lookup-optimize": "off"}

// wantedOptions are the options that are declared for a volume: the safe ones, before them its cluster's, and its own before all.
// An error says what of them cannot be.
func (p *planner) wantedOptions(v *volume) (map[string]string, error) {
	layers := []api.VolumeOptions{v.declared.Spec.Options}
	if g := p.cluster.Spec.GlusterFS; g != nil {
		layers = []api.VolumeOptions{g.Options, v.declared.Spec.Options}
	}
	var have map[string]string
	if v.pool != nil {
		have = v.pool.Options
	}
	want, err := options.Wanted(have, safeOptions, p.speaker.report.Groups, layers...)
	if allow := v.declared.Spec.Auth.Allow; len(allow) > 0 {
		if p.nfs.At != nil && len(p.exportersOf(v.name)) > 0 && !slices.Contains(allow, p.nfs.At.Address) {
			allow = append(slices.Clone(allow), p.nfs.At.Address) // who may use an export is said in the NFSExport
		}
		want[optionAllow] = strings.Join(slices.Sorted(slices.Values(allow)), ",")
	}
	return want, err
}

// setOptions brings options to what is declared. Those that were set and are not declared any more
// go back to their default; what somebody set by hand is left alone, and so is all while an option
// or a group is wrong. They come last: one that GlusterFS does not take must not hold up anything
// else of its volume.
func (p *planner) setOptions() {
	for _, v := range p.volumes {
		if v.declared == nil || v.pool == nil || v.refusal != "" || v.declared.DeletionTimestamp != nil {
			continue
		}
		want, wrong := p.wantedOptions(v)
		noted := options.Noted(v.status.Options, v.pool.Options)
		want = options.Full(want, v.pool.Options, noted)
		set, reset, byHand, notes := drift.Options(noted, want, v.pool.Options)
		v.status.Options = notes
		v.narrowed = drift.Narrows(v.pool.Options[optionAllow], set[optionAllow])
		if v.unset = len(set) > 0; v.unset {
			why := "declared otherwise: " + words.Few(slices.Sorted(maps.Keys(set)))
			if byHand != "" {
				p.outside[glusterd.VerbSet+" "+v.name], why = true, byHand
			}
			p.command(glusterd.VerbSet, v.name, set, api.RiskNone, "%s", why)
		}
		wrong = cmp.Or(wrong, options.Refused(set, v.pool.Refused))
		reset, kept := options.Resets(reset, v.pool.Options, wrong)
		if kept != "" {
			p.decide(api.VerdictSkip, api.ReasonKeptAsIs, v.object(), "%s", kept)
		}
		if len(reset) > 0 {
			p.command(glusterd.VerbReset, v.name, reset, api.RiskNone, "%s", "not declared any more: "+words.Few(slices.Sorted(maps.Keys(reset))))
		}
		if wrong != nil {
			p.refuse(v, api.ReasonInvalidSpec, "%v", wrong)
		}
	}
}
