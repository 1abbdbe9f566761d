package spec

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// HowToJoin says how a machine becomes a Host.
const HowToJoin = "create a token with 'holdfast token create', and run 'holdfast agent --join TOKEN' on it"

// placement is where daemons are, and how many.
type placement struct {
	api.HostSelection
	// count is zero where none is given.
	count int64
	// hosts are those that are selected now.
	hosts []*api.Host
	notes []string
}

// place reads the placement of a document.
func (c *call) place(d *document) placement {
	in := &document{service: d.service, fields: maps.Clone(d.placement)}
	if in.fields == nil {
		in.fields = map[string]any{}
	}
	p := placement{count: in.number("count", 1, 4096)}
	p.Hosts = in.hostNames()
	if label := in.text("label"); label != "" {
		p.Labels = in.labelsOf(label)
	}
	p.Pattern = in.pattern()
	if n := in.number("count_per_host", 1, 4096); n > 1 {
		in.refuse("count_per_host", "each daemon has a host of its own: leave the field out")
	}
	if len(p.Hosts) > 0 && len(p.Labels)+len(p.Pattern) > 0 {
		in.refuse("hosts", "Ceph takes names of hosts, or a label or pattern, and not both: keep one of them")
	}
	in.finish()
	c.find(in, &p)
	if d.problem == nil && in.problem != nil {
		d.problem = in.problem
		d.problem.Message = strings.Replace(in.problem.Message, d.service+": ", d.service+": placement.", 1)
	}
	return p
}

// find finds the hosts that are selected.
func (c *call) find(d *document, p *placement) {
	for _, name := range p.Hosts {
		if c.hostNamed(name) == nil {
			d.refuse("hosts", "host %s has not joined Holdfast: %s", name, HowToJoin)
		}
	}
	for i := range c.hosts {
		if h := &c.hosts[i]; p.Selects(h) && (len(p.Hosts) > 0 || h.ModeOf() != api.HostDrain) {
			p.hosts = append(p.hosts, h)
		}
	}
	field, what := "label", labelText(p.Labels)
	if p.Pattern != "" {
		field, what = "host_pattern", p.Pattern
	}
	if !p.IsEmpty() && len(p.Hosts) == 0 && len(p.hosts) == 0 {
		d.refuse(field, "%s selects no host: see 'ceph orch host ls'", what)
	}
	var others []string
	for _, h := range p.hosts {
		if len(p.Hosts) == 0 && !c.used[h.Name] && !c.coming[h.Name] {
			others = append(others, h.Name)
		}
	}
	if len(others) > 0 {
		p.note(d, "the placement also selects hosts that have nothing of the cluster yet: %s", words.Few(others))
	}
}

// number is how many daemons there are to be: so many as are asked for, or as hosts are selected,
// or else as there would be anyway.
func (p *placement) number(d *document, otherwise int64) int64 {
	switch {
	case p.count > 0:
		return p.count
	case p.IsEmpty():
		return otherwise
	case len(p.Hosts) == 0:
		p.note(d, "the placement selects %s now, and the number of daemons stays %d when that changes",
			words.Plural(len(p.hosts), "host"), len(p.hosts))
	}
	return int64(len(p.hosts))
}

// note adds a sentence for the user.
func (p *placement) note(d *document, format string, values ...any) {
	p.notes = append(p.notes, d.service+": "+fmt.Sprintf(format, values...))
}

// object is the selection as resources have it.
func (p *placement) object() map[string]any {
	o := fields{}
	o.put("hosts", listOf(p.Hosts))
	o.put("pattern", p.Pattern)
	o.put("labels", mapOf(p.Labels))
	return o
}

// hostNames takes out names of hosts: each a text "HOST:NETWORK=NAME", or an object of these.
func (d *document) hostNames() (names []string) {
	value := d.take("hosts")
	all, ok := value.([]any)
	if !ok && value != nil {
		d.refuse("hosts", "it must be a list")
	}
	for _, one := range all {
		name, rest := hostOf(one)
		if rest {
			d.refuse("hosts", "%v: Holdfast itself chooses the addresses and names of daemons: name hosts alone", one)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostOf is the name of a host; rest says whether more is asked for.
func hostOf(value any) (name string, rest bool) {
	switch v := value.(type) {
	case string:
		at := strings.IndexAny(v, ":=")
		if at < 0 {
			return v, false
		}
		return v[:at], true
	case map[string]any:
		name, _ = v["hostname"].(string)
		return name, !isEmpty(v["network"]) || !isEmpty(v["name"])
	}
	return "", true
}

// labelsOf are the labels of hosts that a label of Ceph stands for. One with "=" stands for labels
// of Kubernetes, as labelText writes them.
func (d *document) labelsOf(label string) map[string]string {
	if !strings.Contains(label, "=") {
		return map[string]string{wire.LabelPrefix + label: ""}
	}
	labels := map[string]string{}
	for _, one := range strings.Split(label, ",") {
		key, value, _ := strings.Cut(one, "=")
		labels[key] = value
	}
	return labels
}

// labelText is the reverse of labelsOf.
func labelText(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if name, is := strings.CutPrefix(key, wire.LabelPrefix); is && len(labels) == 1 && labels[key] == "" {
			return name
		}
		all = append(all, key+"="+labels[key])
	}
	return strings.Join(all, ",")
}

// pattern takes a pattern of Python's fnmatch out, and writes it as path.Match has it.
func (d *document) pattern() string {
	value := d.take("host_pattern")
	if o, is := value.(map[string]any); is {
		if kind := o["pattern_type"]; kind != "fnmatch" && !isEmpty(kind) {
			d.refuse("host_pattern", "Holdfast takes no regular expressions: write a pattern such as store-*")
		}
		value = o["pattern"]
	}
	pattern, ok := value.(string)
	if !ok && value != nil {
		d.refuse("host_pattern", "it must be a text")
	}
	if strings.HasPrefix(pattern, "regex:") {
		d.refuse("host_pattern", "Holdfast takes no regular expressions: write a pattern such as store-*")
	}
	pattern = strings.ReplaceAll(pattern, "[!", "[^")
	if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, `\`) {
		d.refuse("host_pattern", "%s is no pattern: write one such as store-* or h[1-3]", pattern)
	}
	return pattern
}

// hostNamed is the host of a name, or nil.
func (c *call) hostNamed(name string) *api.Host {
	i := slices.IndexFunc(c.hosts, func(h api.Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &c.hosts[i]
}

// selectionOf is a PlacementSpec without a count. Ceph takes hosts, or else a label and a pattern:
// where both select it is the hosts that all of it selects now.
func selectionOf(v *engine.View, s *api.HostSelection) fields {
	if len(s.Hosts) > 0 && len(s.Labels)+len(s.Pattern) > 0 {
		var names []string
		for i := range v.Hosts {
			if s.Selects(&v.Hosts[i]) {
				names = append(names, v.Hosts[i].Name)
			}
		}
		s = &api.HostSelection{Hosts: names}
	}
	o := fields{}
	o.put("hosts", listOf(s.Hosts))
	o.put("label", labelText(s.Labels))
	o.put("host_pattern", strings.ReplaceAll(s.Pattern, "[^", "[!"))
	return o
}
