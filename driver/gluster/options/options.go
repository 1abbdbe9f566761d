// Package options brings the options of volumes, as users write them, to the form in which
// GlusterFS keeps them: the options of a group, and short names in full. It is pure.
package options

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Group is the option that names a group of options: GlusterFS sets those, and keeps no note of the
// group.
const Group = "group"

// Groups are the options of the groups that a release of GlusterFS has, by the name of the group.
type Groups map[string]map[string]string

// Expand puts the options of a group in its place. Options beside it win over those of the group.
func (g Groups) Expand(options map[string]string) (map[string]string, error) {
	name, has := options[Group]
	if !has {
		return maps.Clone(options), nil
	}
	all := maps.Clone(g[name])
	if all == nil {
		all = map[string]string{}
	}
	rest := maps.Clone(options)
	delete(rest, Group)
	if Lay(all, rest); g[name] != nil {
		return all, nil
	}
	if len(g) == 0 {
		return all, fmt.Errorf("GlusterFS has no group of options %q: the node that reports has no files in "+
			"/var/lib/glusterd/groups; install GlusterFS's package there anew, or write the options themselves", name)
	}
	return all, fmt.Errorf("GlusterFS has no group of options %q; name one of these: %s", name,
		words.Few(slices.Sorted(maps.Keys(g))))
}

// Wanted are the options that are declared for a volume: each layer over those before it, and all over
// the defaults. An error says what of them cannot be; the others are wanted nevertheless, but what
// stands before a group that is not known stays as it is in have, the options of the volume.
func Wanted(have, defaults map[string]string, groups Groups, layers ...api.VolumeOptions) (map[string]string, error) {
	want := map[string]string{}
	maps.Copy(want, defaults)
	var errs []error
	for _, layer := range layers {
		plain := map[string]string{}
		for name, value := range layer {
			plain[name] = string(value)
		}
		all, err := groups.Expand(plain)
		if errs = append(errs, err); err != nil {
			hold(want, have)
		}
		for name := range all {
			if Same(name, allow) {
				errs = append(errs, fmt.Errorf("option %s: spec.auth.allow of the Volume says who may use it: "+
					"write its addresses there, and remove the option", name))
				delete(all, name)
			}
		}
		Lay(want, all)
	}
	return want, joined(errs)
}

// allow is the option that has who may mount a volume.
const allow = "auth.allow"

// Refused says which options that are to be set GlusterFS did not take with these values the last
// time.
func Refused(set map[string]string, refused []glusterd.RefusedOption) error {
	var errs []error
	for _, r := range refused {
		if value, wanted := set[r.Name]; wanted && value == r.Value {
			errs = append(errs, fmt.Errorf("GlusterFS refuses option %s with value %q: %s", r.Name, r.Value, r.Text))
		}
	}
	return joined(errs)
}

// Lay puts options over others. An option takes the place of the same one with a short or full
// name.
func Lay(under, over map[string]string) {
	for name := range over {
		maps.DeleteFunc(under, func(other, _ string) bool { return Same(name, other) })
	}
	maps.Copy(under, over)
}

// Same says whether two names mean one option: GlusterFS takes a name without the part before its
// first dot, where no other option has the same rest.
func Same(a, b string) bool { return a == b || rest(a) == b || rest(b) == a }

// joined is errors on one line.
func joined(errs []error) error {
	var texts []string
	for _, err := range errs {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

func rest(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// Full writes short names of wanted options in full, as GlusterFS keeps them, if they are set
// already, or were: have are the options of the volume, noted those that Holdfast set before.
// GlusterFS alone knows what an option that is not set means, and refuses a short name that means
// two.
func Full(want, have map[string]string, noted []string) map[string]string {
	full := map[string]string{}
	for name, value := range want {
		if long, ok := long(name, have); ok && (have[long] == value || has(noted, long)) {
			name = long
		} else if was := within(name, noted); was != "" && !ok {
			name = was
		}
		full[name] = value
	}
	return full
}

// Noted writes short names of options that were noted in full, if one option of the volume is
// meant.
func Noted(noted []string, have map[string]string) (all []string) {
	for _, note := range noted {
		name, value, valued := strings.Cut(note, "=")
		if long, ok := long(name, have); ok {
			name = long
		}
		if valued {
			name += "=" + value
		}
		all = append(all, name)
	}
	return all
}

// long is the one option of a volume that a short name means.
func long(name string, have map[string]string) (found string, ok bool) {
	if _, is := have[name]; is {
		return "", false
	}
	for other := range have {
		if rest(other) != name {
			continue
		}
		if ok {
			return "", false
		}
		found, ok = other, true
	}
	return found, ok
}

// within is the noted option that a short name means.
func within(name string, noted []string) string {
	for _, note := range noted {
		if long, _, _ := strings.Cut(note, "="); rest(long) == name {
			return long
		}
	}
	return ""
}

func has(noted []string, name string) bool {
	return slices.ContainsFunc(noted, func(note string) bool {
		long, _, _ := strings.Cut(note, "=")
		return long == name
	})
}
