package ceph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/confoptions"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// sourceFile is what Ceph calls the origin of an option that a daemon has from its ceph.conf.
const sourceFile = "file"

// configs asks the manager which options each daemon has from the ceph.conf of its host. Of a
// daemon that has not told yet nothing is known.
func (x *adoptAsker) configs() error {
	for i := range x.facts.Daemons {
		d := &x.facts.Daemons[i]
		if !d.Up {
			continue
		}
		var shown []struct{ Name, Value, Source string }
		out, err := x.mgr(command{"prefix": "config show", "who": d.Label(), "format": "json"})
		if err != nil || json.Unmarshal(out, &shown) != nil {
			continue // as where no manager is active
		}
		d.Options = map[string]string{}
		for _, o := range shown {
			if o.Source == sourceFile {
				d.Options[o.Name] = o.Value
			}
		}
	}
	return nil
}

// crush asks where CRUSH has the OSDs.
func (x *adoptAsker) crush() error {
	var answer struct {
		Nodes []crushmap.Node `json:"nodes"`
	}
	if err := x.ask(command{"prefix": "osd tree"}, &answer); err != nil {
		return err
	}
	x.facts.Crush = crushmap.TreeOf(answer.Nodes).Buckets
	return nil
}

// taken says whether an option may be taken over from a ceph.conf.
func taken(section, name string) bool {
	return confoptions.Taken(section, name) && !slices.Contains(placeOptions, name)
}

// given are the options of the ceph.conf that was given that count for a daemon, by their sections,
// the most special last.
func (x *adopter) given(d *ClusterDaemon, name string) (value, section string) {
	for _, s := range sectionsOf(d.Type, d.ID) {
		if v, there := x.Conf[s][name]; there {
			value, section = v, s
		}
	}
	return value, section
}

// apart are the options that daemons of one kind do not all have alike from the ceph.conf of their
// hosts, by section and name: the one that was given says nothing of what the others have. Options
// that the given file has for single daemons are no difference.
func (x *adopter) apart() (differ options) {
	differ = options{}
	values := map[string]map[string]string{} // by section and name: the value, and the daemon that has it
	for i := range x.Facts.Daemons {
		d := &x.Facts.Daemons[i]
		if d.Options == nil {
			continue
		}
		for _, name := range x.namesOf(d) {
			_, section := x.given(d, name)
			if section == d.Label() {
				continue
			}
			if section == "" {
				section = kindOf(d.Type)
			}
			key := configKey(section, name)
			if values[key] == nil {
				values[key] = map[string]string{}
			}
			values[key][d.Options[name]] = d.Label()
			if len(values[key]) > 1 {
				differ.Set(section, name, "")
			}
		}
	}
	return differ
}

// namesOf are the options that any ceph.conf has for a daemon or for one of its kind.
func (x *adopter) namesOf(d *ClusterDaemon) []string {
	names := map[string]bool{}
	for i := range x.Facts.Daemons {
		if other := &x.Facts.Daemons[i]; other.Type == d.Type {
			for name := range other.Options {
				names[name] = true
			}
		}
	}
	for _, section := range []string{"global", kindOf(d.Type)} {
		for name := range x.Conf[section] {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ownEach sets, for each daemon by itself, the options that differ between hosts, and those that
// only other hosts' files have.
func (x *adopter) ownEach(set func(section, name, value string), differ options) {
	var told []string
	for i := range x.Facts.Daemons {
		d := &x.Facts.Daemons[i]
		for _, name := range slices.Sorted(maps.Keys(d.Options)) {
			value, section := x.given(d, name)
			_, differs := differ[section][name]
			if section == "" {
				_, differs = differ[kindOf(d.Type)][name]
			}
			if !taken(kindOf(d.Type), name) || section != "" && !differs {
				continue
			}
			if !differs || value != d.Options[name] || section != d.Label() {
				set(d.Label(), name, d.Options[name])
				told = append(told, fmt.Sprintf("%s %s = %s", d.Label(), name, d.Options[name]))
			}
		}
	}
	if len(told) > 0 {
		x.note("the ceph.conf files of the hosts differ: these options are set per daemon: %s", words.Few(told))
	}
}

// unknownFiles tells of daemons of which nobody knows what their ceph.conf says. Without it nobody
// knows whether hosts have different ones.
func (x *adopter) unknownFiles() {
	var labels []string
	for i := range x.Facts.Daemons {
		if d := &x.Facts.Daemons[i]; d.Up && d.Options == nil && x.own(d) == nil {
			labels = append(labels, d.Label())
		}
	}
	if len(labels) > 0 {
		x.problem("cannot compare the ceph.conf of the hosts: the mgr has no configuration of %s ('ceph config show "+
			"%s'); check that a mgr is active, wait some seconds after a daemon's start, and run the command again",
			words.Few(labels), labels[0])
	}
}

// places tells that OSDs stay where CRUSH has them, and of which the ceph.conf says otherwise.
func (x *adopter) tellPlaces() {
	var astray []string
	said := false
	for i := range x.Facts.Daemons {
		d := &x.Facts.Daemons[i]
		where := d.Options[optionLocation]
		said = said || where != "" || d.Options[optionLocationHook] != ""
		if d.Type == TypeOSD && where != "" && !crushAgrees(x.Facts.Crush[d.Label()], where) {
			astray = append(astray, fmt.Sprintf("%s (%s)", d.Label(), where))
		}
	}
	if len(astray) > 0 {
		x.note("CRUSH locations of OSDs differ from the ceph.conf of their hosts, and Holdfast keeps them: %s",
			words.Few(astray))
	}
	if said {
		x.note("crush_location and crush_location_hook of ceph.conf are ignored: each OSD keeps its CRUSH location, and " +
			"a new OSD gets that of its Host; set the location of a new host with 'holdfast host label --location'")
	}
}

// crushAgrees says whether an OSD is in all buckets that a crush_location names.
func crushAgrees(b Bucket, location string) bool {
	for _, pair := range strings.FieldsFunc(location, func(c rune) bool { return c == ' ' || c == ',' || c == ';' }) {
		level, name, _ := strings.Cut(pair, "=")
		if name = strings.Trim(name, `"'`); b.In[strings.TrimSpace(level)] != name {
			return false
		}
	}
	return true
}

// keepPlace has the OSD of a Daemon stay where CRUSH has it when it is handed over. Those that were
// adopted by an earlier version do not say so yet.
func keepPlace(d *api.Daemon) {
	if d.Spec.Type != TypeOSD || d.Spec.Parameters[ParamCrushPlaced] != "" {
		return
	}
	d.Spec.Parameters[ParamCrushPlaced] = "true"
	for i := range d.Spec.Files {
		if f := &d.Spec.Files[i]; f.Path == FileConf && len(f.Sources) > 0 && f.Sources[0].Text != nil {
			text := *f.Sources[0].Text + "\n[" + label(d) + "]\n" + optionUpdateOnStart + " = false\n"
			f.Sources[0].Text = &text
		}
	}
}
