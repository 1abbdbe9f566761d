// Package why answers why an object is as it is, in a sentence or two with the next step, from what the engine, the agents and
// the actions say of it. It is pure.
package why

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ErrUnknown is wrapped by the error of Explain for an object that there is not.
var ErrUnknown = errors.New("object not found")

// unknown wraps ErrUnknown, and says which object and what to do.
type unknown struct{ text string }

func (u *unknown) Error() string { return u.text }
func (u *unknown) Unwrap() error { return ErrUnknown }

// World is everything that answers are made from: the objects of one namespace, and all hosts.
type World struct {
	Clusters []api.StorageCluster
	Statuses []api.StorageStatus
	Nodes    []api.StorageNode
	Hosts    []api.Host
	Daemons  []api.Daemon
	Actions  []api.Action
	Plans    []api.Plan
	// Resources are of all kinds.
	Resources []api.Resource
}

// Answer says why something is as it is.
type Answer struct {
	// Reason is the cause as programs read it; empty where the object is as desired, or where nobody gave a reason.
	Reason api.Reason `json:"reason,omitempty"`
	// Text is a sentence or two.
	Text string `json:"text"`
	// Next is what to do, or empty when there is nothing to do.
	Next string `json:"next,omitempty"`
}

// answered is an answer without a reason.
func answered(text, next string) Answer { return Answer{Text: text, Next: next} }

// because gives an answer its reason.
func (a Answer) because(reason api.Reason) Answer {
	a.Reason = reason
	return a
}

// String is the answer as people read it.
func (a Answer) String() string {
	if a.Next == "" {
		return a.Text
	}
	return a.Text + "\nNext: " + a.Next
}

// subject is something that can be asked about.
type subject struct {
	// names are what people call it: daemon/ceph-osd-3, ceph-osd-3, osd.3.
	names  []string
	answer func() Answer
}

// Explain answers for an object: "cluster/NAME", "node/NAME", "host/NAME", "daemon/NAME", "action/NAME", "volume/NAME", or a daemon's short
// name such as osd.3, or a name alone where only one object has it. The error wraps ErrUnknown and names those that are near.
func (w *World) Explain(object string) (Answer, error) {
	subjects := w.subjects()
	var found []subject
	for _, s := range subjects {
		if slices.Contains(s.names, object) {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].answer(), nil
	case len(found) > 1:
		return Answer{}, &unknown{fmt.Sprintf("%s is ambiguous: %s", object, firstNames(found))}
	}
	if a, known := more(w, object); known {
		return a, nil
	}
	// The engine may have decided on something that was never made.
	if d, c := w.decisionOn(object); d != nil {
		return decided(fmt.Sprintf("%s does not exist: %s", object, sentence(d.Message)), d, c), nil
	}
	if near := nearest(object, subjects); near != "" {
		return Answer{}, &unknown{fmt.Sprintf("%s not found: did you mean %s?", object, near)}
	}
	return Answer{}, &unknown{fmt.Sprintf("%s not found: list objects with 'holdfast get daemons', hosts, storagenodes or storageclusters", object)}
}

func (w *World) subjects() []subject {
	var all []subject
	add := func(kind, name string, answer func() Answer, short ...string) {
		all = append(all, subject{append([]string{kind + "/" + name, name}, short...), answer})
	}
	for i := range w.Clusters {
		add("cluster", w.Clusters[i].Name, func() Answer {
			c := &w.Clusters[i]
			return w.withActions(w.cluster(c), OfCluster(c.Namespace, c.Name, w.hostsOf(c)))
		}, "storagecluster/"+w.Clusters[i].Name)
	}
	for i := range w.Nodes {
		add("node", w.Nodes[i].Name, func() Answer { return w.node(&w.Nodes[i]) }, "storagenode/"+w.Nodes[i].Name)
	}
	for _, r := range w.Resources {
		add(strings.ToLower(r.ResourceKind()), r.GetName(), func() Answer { return w.resource(r) })
	}
	for i := range w.Hosts {
		add("host", w.Hosts[i].Name, func() Answer { return w.withActions(w.host(&w.Hosts[i]), onHost(&w.Hosts[i])) })
	}
	for i := range w.Daemons {
		add("daemon", w.Daemons[i].Name, func() Answer {
			d := &w.Daemons[i]
			return w.withActions(withDevice(w, w.daemon(d), d), onDaemon(d))
		}, ShortName(&w.Daemons[i]))
	}
	for i := range w.Actions {
		add("action", w.Actions[i].Name, func() Answer { return action(&w.Actions[i]) })
	}
	return all
}

// ShortName is what the storage system's own people call the daemon: mon.a, osd.0.
func ShortName(d *api.Daemon) string {
	_, kind, found := strings.Cut(d.Spec.Type, "-")
	if !found {
		kind = d.Spec.Type
	}
	return kind + "." + d.Spec.ID
}

func firstNames(subjects []subject) string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.names[0]
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// decisionOn returns the most telling decision of the last reports on one of these names: a refusal before a wait before the
// rest. It may be nil.
func (w *World) decisionOn(names ...string) (*api.Decision, *api.StorageCluster) {
	order := []api.Verdict{api.VerdictRefuse, api.VerdictWait, api.VerdictSkip, api.VerdictDo}
	var best *api.Decision
	var of *api.StorageCluster
	for i := range w.Clusters {
		report := w.Clusters[i].Status.Report
		if report == nil {
			continue
		}
		for j := range report.Decisions {
			d := &report.Decisions[j]
			if slices.Contains(names, d.Object) && (best == nil || slices.Index(order, d.Verdict) < slices.Index(order, best.Verdict)) {
				best, of = d, &w.Clusters[i]
			}
		}
	}
	return best, of
}

// decided is an answer whose cause is a decision of the engine.
func decided(text string, d *api.Decision, c *api.StorageCluster) Answer {
	return answered(text, nextFor(d, c)).because(d.Reason)
}

func nextFor(d *api.Decision, c *api.StorageCluster) string {
	if d.Reason == api.ReasonHeldBack {
		return fmt.Sprintf("start it again with 'holdfast daemon start %s'.", strings.TrimPrefix(d.Object, "daemon/"))
	}
	switch d.Verdict {
	case api.VerdictRefuse:
		return "correct the cause named above, and apply it again; 'holdfast plan -f FILE' shows the effect."
	case api.VerdictWait:
		if d.Reason.NeedsPerson() {
			return fmt.Sprintf("do what is named above, unless it passes by itself; follow it with 'holdfast status %s --watch'.", c.Name)
		}
		return fmt.Sprintf("wait; follow it with 'holdfast status %s --watch'.", c.Name)
	default:
		return fmt.Sprintf("see 'holdfast status %s'.", c.Name)
	}
}

// sentence ends a text like a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// join makes sentences of the parts. A part that begins in lower case, such as a message, continues the sentence before.
func join(parts ...string) string {
	text, continued := "", false
	for _, p := range parts {
		if p = sentence(p); p == "" {
			continue
		}
		lower := unicode.IsLower([]rune(p)[0])
		switch {
		case text == "":
			text = p
		case lower && continued:
			text = strings.TrimSuffix(text, ".") + "; " + p
		case lower:
			text = strings.TrimSuffix(text, ".") + ": " + p
		default:
			text += " " + p
		}
		continued = lower && text != p
	}
	return text
}
