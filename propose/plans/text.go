package plans

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Report is what a person is shown of a plan.
type Report struct {
	Changes []Change
	// Notes are what is refused, waited for or left alone, and what cannot be foreseen, by cluster (NAMESPACE/NAME).
	Notes map[string][]string
	// Clusters are the clusters that the plan is about, NAMESPACE/NAME, in the order in which they are shown.
	Clusters []string
	// Unknown is set where a storage system that does not answer may decide otherwise.
	Unknown bool
}

// Write sums it up, and shows the objects' own fields, and what comes of them, cluster by cluster
// and step by step.
func (r *Report) Write(w io.Writer) {
	p := &page{}
	p.head(r)
	p.objects(r.Changes)
	for _, cluster := range r.Clusters {
		p.cluster(cluster, r.of(cluster), r.Notes[cluster])
	}
	io.WriteString(w, p.b.String()) //nolint:errcheck // whoever does not read it, does not want it
}

func (r *Report) of(cluster string) []Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return c.Cluster != cluster })
}

// page is the text in the making.
type page struct{ b strings.Builder }

func (p *page) line(indent, format string, args ...any) {
	p.b.WriteString(strings.TrimRight(indent+fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *page) objects(changes []Change) {
	width := 0
	var own []Change
	for _, c := range changes {
		if c.Cluster == "" {
			own = append(own, c)
			width = max(width, len(c.Object))
		}
	}
	if len(own) > 0 {
		p.line("", "objects:")
	}
	for _, c := range own {
		p.line("  ", "%-*s  %s%s", width, c.Object, c.Reason, riskText(c.Risk))
		paths := 0
		for _, f := range c.Fields {
			paths = max(paths, len(f.Path))
		}
		for _, f := range c.Fields {
			p.line("    ", "%-*s  %s", paths+1, f.Path+":", f.values())
		}
	}
}

// values of a field that was not there need no arrow.
func (c FieldChange) values() string {
	if c.Old == unset {
		return c.New
	}
	return c.Old + " -> " + c.New
}

func (p *page) cluster(name string, changes []Change, notes []string) {
	namespace, short, _ := strings.Cut(name, "/")
	p.line("", "cluster %s in namespace %s:", short, namespace)
	if len(changes) == 0 && len(notes) == 0 {
		p.line("  ", "nothing happens")
	}
	for steps, i := bySteps(changes), 0; i < len(steps); i++ {
		if again := restarts(steps[i:]); len(again) > 1 {
			p.restarts(i+1, again)
			i += 2*len(again) - 1
			continue
		}
		p.step(i+1, steps[i])
	}
	for _, n := range notes {
		p.line("  ", "- %s", n)
	}
}

func (p *page) step(number int, changes []Change) {
	for i, g := range groupsOf(changes) {
		head := "    "
		if i == 0 {
			head = fmt.Sprintf("%3d ", number)
		}
		p.line(head, "%s%s", g.headline(), riskText(g.risk))
		p.hosts(g)
	}
}

// restarts tells of daemons that are started again one after the other.
func (p *page) restarts(first int, stops []Change) {
	for _, g := range groupsOf(stops) {
		p.line("", "%3s change %s one at a time: %s%s", fmt.Sprintf("%d-%d", first, first+2*len(stops)-1), words.Plural(len(stops), "daemon"), g.reason, riskText(g.risk))
		p.hosts(g)
	}
}

// group are changes that are told together.
type group struct {
	verb, reason string
	state        api.WantedState
	risk         api.Risk
	changes      []Change
}

// groupsOf puts together what is done in the same way for the same reason, in the order in which it comes.
func groupsOf(changes []Change) []*group {
	var groups []*group
	for _, c := range changes {
		g := &group{verb: c.Verb, reason: c.Reason, state: c.State, risk: cmp.Or(c.Risk, api.RiskNone)}
		switch c.Verb {
		case VerbCreate:
			g.reason = "" // it says where, which is shown beside
		case VerbCommand:
			g.reason = c.Object + ": " + c.Reason
		}
		i := slices.IndexFunc(groups, func(x *group) bool {
			return x.verb == g.verb && x.reason == g.reason && x.state == g.state && x.risk == g.risk && c.Verb != VerbCommand
		})
		if i < 0 {
			groups = append(groups, g)
			i = len(groups) - 1
		}
		groups[i].changes = append(groups[i].changes, c)
	}
	return groups
}

func (g *group) headline() string {
	count := words.Plural(len(g.changes), "daemon")
	switch g.verb {
	case VerbCreate:
		if g.state == api.WantPrepared {
			return "prepare " + count
		}
		return "start " + count
	case VerbRemove:
		return "remove " + count + ": " + g.reason
	case VerbCommand:
		return "run " + g.reason
	}
	return "change " + count + ": " + g.reason
}

// hosts tells which daemons are meant, a line a host; where devices do not matter and there are many hosts, in one line.
func (p *page) hosts(g *group) {
	const indent, fewHosts = "        ", 8
	if g.verb == VerbCommand {
		p.line(indent, "%s", strings.Join(ranges(strings.Split(g.changes[0].Label, ", ")), " "))
		return
	}
	hosts, byHost := []string{}, map[string][]Change{}
	width := 0
	for _, c := range g.changes {
		if byHost[c.Host] == nil {
			hosts = append(hosts, c.Host)
			width = max(width, len(c.Host))
		}
		byHost[c.Host] = append(byHost[c.Host], c)
	}
	slices.Sort(hosts)
	withDevices := g.verb == VerbCreate || g.risk == api.RiskData
	if len(hosts) > fewHosts && !withDevices {
		p.line(indent, "%s on %d hosts (%s … %s)", strings.Join(ranges(labels(g.changes)), " "), len(hosts), hosts[0], hosts[len(hosts)-1])
		return
	}
	for _, h := range hosts {
		p.line(indent, "%-*s  %s", width, h, strings.Join(ranges(labels(byHost[h])), " "))
		if withDevices {
			p.devices(indent+"  ", byHost[h])
		}
	}
}

// devices tells the devices of one host; many that are alike in a line.
func (p *page) devices(indent string, changes []Change) {
	const few = 3
	type like struct{ model, size string }
	var order []like
	alike := map[like][]Device{}
	for _, c := range changes {
		for _, d := range c.Devices {
			k := like{d.Model, d.Size}
			if alike[k] == nil {
				order = append(order, k)
			}
			alike[k] = append(alike[k], d)
		}
	}
	for _, k := range order {
		if len(alike[k]) <= few {
			for _, d := range alike[k] {
				p.line(indent, "device %s", d)
			}
			continue
		}
		names := make([]string, len(alike[k]))
		for i, d := range alike[k] {
			names[i] = cmp.Or(d.Serial, d.ID)
		}
		p.line(indent, "%d devices %s: %s", len(names), strings.Join(strings.Fields(k.model+" "+k.size), " "), strings.Join(names, ", "))
	}
}

func labels(changes []Change) []string {
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.Label
	}
	return names
}

// ranges shortens osd.0, osd.1, osd.2 to osd.0-2. Names that do not end with a number stay.
func ranges(names []string) []string {
	var out []string
	var first, last int
	kind := ""
	flush := func() {
		switch {
		case kind == "":
		case first == last:
			out = append(out, fmt.Sprintf("%s.%d", kind, first))
		default:
			out = append(out, fmt.Sprintf("%s.%d-%d", kind, first, last))
		}
		kind = ""
	}
	names = slices.Clone(names)
	slices.SortFunc(names, compareNames)
	for _, name := range names {
		k, n, ok := numbered(name)
		if ok && k == kind && n == last+1 {
			last = n
			continue
		}
		flush()
		if !ok {
			out = append(out, name)
			continue
		}
		kind, first, last = k, n, n
	}
	flush()
	return out
}

func numbered(name string) (kind string, n int, ok bool) {
	kind, number, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	return kind, n, err == nil && n >= 0
}

func compareNames(a, b string) int {
	x, m, okA := numbered(a)
	y, n, okB := numbered(b)
	if okA && okB && x == y {
		return cmp.Compare(m, n)
	}
	return strings.Compare(a, b)
}

func riskText(r api.Risk) string {
	switch r {
	case api.RiskData:
		return "  [DATA IS DESTROYED]"
	case api.RiskRedundancy:
		return "  [less redundancy]"
	case api.RiskRestart:
		return "  [restart]"
	default:
		return ""
	}
}

// Summary counts the changes, and tells their highest risk.
func Summary(changes []Change) string {
	const writeNew = VerbApply + created // an object that is not there yet
	counts := map[string]int{}
	counted := map[string]bool{}
	for _, c := range changes {
		object := c.Cluster + c.Object
		switch {
		case c.Verb == VerbApply && c.Reason == unchanged, c.Verb == VerbChange && counted[object]:
			continue
		case c.Verb == VerbCreate || c.Verb == VerbChange:
			counted[object] = true
		}
		verb := c.Verb
		if verb == VerbApply && c.Reason == created {
			verb = writeNew
		}
		counts[verb]++
	}
	var parts []string
	for _, x := range []struct{ verb, text string }{
		{writeNew, "%s to create"},
		{VerbApply, "%s to change"},
		{VerbDelete, "%s to delete"},
		{VerbCreate, "%s to start"},
		{VerbChange, "%s to change"},
		{VerbRemove, "%s to remove"},
		{VerbCommand, "%s to the storage system"},
	} {
		noun := "daemon"
		switch x.verb {
		case writeNew, VerbApply, VerbDelete:
			noun = "object"
		case VerbCommand:
			noun = "request"
		}
		if n := counts[x.verb]; n > 0 {
			parts = append(parts, fmt.Sprintf(x.text, words.Plural(n, noun)))
		}
	}
	if len(parts) == 0 {
		return "nothing would change"
	}
	return strings.Join(parts, ", ") + "; highest risk: " + riskSentence(Risk(changes))
}

func riskSentence(r api.Risk) string {
	switch r {
	case api.RiskData:
		return "Data (data is destroyed)"
	case api.RiskRedundancy:
		return "Redundancy (reduced, or no service, for a while)"
	case api.RiskRestart:
		return "Restart (daemons restart, service continues)"
	default:
		return "None"
	}
}
