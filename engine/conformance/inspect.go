package conformance

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-storage/holdfast/api/reasons"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// plan plans, and inspects what all plans must be like: made of the view alone, which stays as it is, and well formed.
func (b *bench) plan(v *engine.View) *engine.Plan {
	b.Helper()
	before := dump(v)
	p := b.driver.Plan(v, b.Now)
	if p == nil {
		b.Fatal("there is no plan")
	}
	first := dump(p)
	if dump(v) != before {
		b.Fatalf("Plan changed its view: %s", difference(before, dump(v)))
	}
	for range 2 {
		if again := dump(b.driver.Plan(v, b.Now)); again != first {
			b.Fatalf("two plans of one view differ: %s", difference(first, again))
		}
	}
	if x, y := unordered(p), unordered(b.driver.Plan(backwards(v), b.Now)); x != y {
		b.Errorf("what is planned depends on the order of the view's lists: %s", difference(x, y))
	}
	b.inspectForm(v, p)
	b.inspectWords(p)
	b.inspectSecrets(p)
	return p
}

// backwards is the view with its lists in the other order.
func backwards(v *engine.View) *engine.View {
	x := *v
	x.Nodes, x.Hosts, x.Daemons, x.Resources = slices.Clone(v.Nodes), slices.Clone(v.Hosts), slices.Clone(v.Daemons), slices.Clone(v.Resources)
	x.Secrets, x.Others, x.Claims = slices.Clone(v.Secrets), slices.Clone(v.Others), slices.Clone(v.Claims)
	slices.Reverse(x.Nodes)
	slices.Reverse(x.Hosts)
	slices.Reverse(x.Daemons)
	slices.Reverse(x.Resources)
	slices.Reverse(x.Secrets)
	slices.Reverse(x.Others)
	slices.Reverse(x.Claims)
	return &x
}

// unordered is what a plan does, in whatever order it lists it. The words of its status are left out: which reason comes first is a
// matter of order.
func unordered(p *engine.Plan) string {
	all := slices.Concat(dumps(p.Daemons), dumps(p.Nodes), dumps(p.Resources), dumps(p.Decisions), dumps(p.Remove), dumps(p.Secrets), dumps(p.Commands))
	all = append(all, dump([]any{p.Refused, p.Done, p.Finished, p.Recheck, p.Pause, p.Status.Status}))
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func dumps[E any](list []E) []string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = dump(list[i])
	}
	return all
}

// difference is where two dumps begin to differ.
func difference(a, b string) string {
	const around = 150
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	part := func(s string) string { return strings.ToValidUTF8(s[max(0, i-around):min(len(s), i+around)], "") }
	return "\n\t" + part(a) + "\nand\n\t" + part(b)
}

// inspectForm checks what a plan may hold.
func (b *bench) inspectForm(v *engine.View, p *engine.Plan) {
	b.Helper()
	have, seen := v.DaemonsByName(), map[string]bool{}
	for i := range p.Daemons {
		d := &p.Daemons[i].Daemon
		if seen[d.Name] {
			b.Errorf("daemon %s is planned twice", d.Name)
		}
		seen[d.Name] = true
		if was := have[d.Name]; was != nil && was.DeletionTimestamp != nil {
			b.Errorf("daemon %s is being deleted, and is written", d.Name)
		}
		if d.Spec.Cluster != v.Cluster.Name || !strings.HasPrefix(d.Name, v.Cluster.Name) {
			b.Errorf("daemon %s of cluster %q does not carry the name of its cluster, %s: two clusters would want it", d.Name, d.Spec.Cluster, v.Cluster.Name)
		}
	}
	for _, d := range p.Decisions {
		if strings.HasPrefix(d.Object, engine.RestartObject("")) && d.Object != engine.RestartObject(v.Restart) {
			b.Errorf("a restart is judged that was not requested: %s", d.Object)
		}
	}
	for _, r := range p.Remove {
		switch d := have[r.Name]; {
		case d == nil:
			b.Errorf("daemon %s is removed, and is not there", r.Name)
		case seen[r.Name]:
			b.Errorf("daemon %s is removed and written, or removed twice", r.Name)
		case d.DeletionTimestamp != nil:
			b.Errorf("daemon %s is removed again", r.Name)
		}
		seen[r.Name] = true
	}
	for _, c := range p.Commands {
		if c.Daemon != "" && have[c.Daemon] == nil {
			b.Errorf("%q of %s is for the agent of daemon %s, which is not there", c.Verb, c.Object, c.Daemon)
		}
	}
	switch {
	case p.Refused && (!p.Empty() || p.Done || p.Finished):
		b.Errorf("a refused plan has more in it than words: %s", describe(p))
	case p.Done && (!p.Empty() || p.Status.Status != api.StorageOnline):
		b.Errorf("a plan is Done, and something is left to do: %s", describe(p))
	case p.Finished && (v.Cluster.DeletionTimestamp == nil || len(v.Daemons) > 0 || !p.Empty()):
		b.Errorf("a plan is Finished of a cluster that is not: %s", describe(p))
	}
	if p.Status.Type != v.Cluster.Spec.Type {
		b.Errorf("the status is of type %q, and the cluster of type %q", p.Status.Type, v.Cluster.Spec.Type)
	}
}

// sentences are all texts of a plan that people read.
func sentences(p *engine.Plan) []string {
	var all []string
	for _, d := range p.Decisions {
		all = append(all, d.Message)
	}
	for i := range p.Daemons {
		all = append(all, p.Daemons[i].Reason)
	}
	for _, r := range p.Remove {
		all = append(all, r.Reason)
	}
	for _, c := range p.Commands {
		all = append(all, c.Reason)
	}
	all = append(all, p.Status.Reasons...)
	if p.Status.Status != api.StorageOnline && !p.Refused {
		all = append(all, p.Status.Message)
	}
	return all
}

// inspectWords checks that each text is a sentence on one line, and none is one that was made by mistake.
func (b *bench) inspectWords(p *engine.Plan) {
	b.Helper()
	for _, d := range p.Decisions {
		if d.Object == "" || strings.ContainsFunc(d.Object, unicode.IsControl) {
			b.Errorf("a decision is about %q: %s", d.Object, d.Message)
		}
		if reasons.All[d.Reason] == "" {
			b.Errorf("the decision on %s has the reason %q, which reasons.All does not explain: %s", d.Object, d.Reason, d.Message)
		}
	}
	for _, text := range sentences(p) {
		fault := ""
		switch {
		case !strings.Contains(strings.TrimSpace(text), " "):
			fault = "is no sentence"
		case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
			fault = "has characters in it that no line has"
		case strings.Contains(text, "%!") || strings.Contains(text, "<nil>") || strings.Contains(text, "0x"):
			fault = "was printed in the wrong way"
		}
		if fault != "" {
			b.Errorf("%q %s: %s", text, fault, describe(p))
		}
	}
}

// inspectSecrets checks that nothing that Secrets hold is in a plan: what is in it is shown, logged and stored in the open.
func (b *bench) inspectSecrets(p *engine.Plan) {
	b.Helper()
	text := dump(p)
	for name, s := range b.secrets {
		for key, value := range s.data {
			if len(value) > 0 && strings.Contains(text, string(value)) {
				b.Errorf("what secret %s holds under %s is in a plan", name, key)
			}
		}
	}
}

// harm lists what in a plan could cost data or service.
func harm(v *engine.View, p *engine.Plan) []string {
	var all []string
	have := v.DaemonsByName()
	for _, r := range p.Remove {
		all = append(all, "daemon "+r.Name+" is removed: "+r.Reason)
	}
	for i := range p.Daemons {
		d := &p.Daemons[i].Daemon
		switch was := have[d.Name]; {
		case was == nil:
		case was.Spec.State == api.WantRunning && d.Spec.State != api.WantRunning:
			all = append(all, "daemon "+d.Name+" is told to stop")
		case was.Spec.Host != d.Spec.Host || was.Spec.OnRemoval != d.Spec.OnRemoval && d.Spec.OnRemoval == api.DeletionWipe:
			all = append(all, "daemon "+d.Name+" loses its data: "+p.Daemons[i].Reason)
		}
	}
	for _, c := range p.Commands {
		if engine.HigherRisk(c.Risk, api.RiskRestart) != api.RiskRestart {
			all = append(all, c.Verb+" "+c.Object+": "+c.Reason)
		}
	}
	return all
}
