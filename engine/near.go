package engine

import (
	"cmp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

// SelectsHost says whether a nodeSelector selects one of the hosts.
func SelectsHost(selector map[string]string, hosts []api.Host) bool {
	return slices.ContainsFunc(hosts, func(h api.Host) bool { return hasLabels(h.Labels, selector) })
}

// SelectorText is a selector as people write it.
func SelectorText(selector map[string]string) string { return labelText(selector) }

// mostNear is how many labels are suggested.
const mostNear = 3

// NearLabels are those labels of hosts that may have been meant by the labels that no host has: the nearest ones, such as rack=r1 for
// rack=r11, and topology.holdfast.io/rack=r1 for rack=r1.
func NearLabels(selector map[string]string, hosts []api.Host) []string {
	var near []nearLabel
	for key, value := range selector {
		if !SelectsHost(map[string]string{key: value}, hosts) {
			near = append(near, nearestLabels(key, value, hosts)...)
		}
	}
	slices.SortFunc(near, func(a, b nearLabel) int { return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.text, b.text)) })
	near = slices.CompactFunc(near, func(a, b nearLabel) bool { return a.text == b.text })
	var texts []string
	for _, n := range near[:min(mostNear, len(near))] {
		if n.far == near[0].far {
			texts = append(texts, n.text)
		}
	}
	return texts
}

// nearLabel is a label of a host, and how far it is from what was written.
type nearLabel struct {
	text string
	far  int
}

func nearestLabels(key, value string, hosts []api.Host) (near []nearLabel) {
	for i := range hosts {
		for k, v := range hosts[i].Labels {
			keyFar, valueFar := spell.Distance(ownPart(key), ownPart(k)), spell.Distance(value, v)
			if maybe(ownPart(key), keyFar) && maybe(value, valueFar) {
				near = append(near, nearLabel{labelText(map[string]string{k: v}), keyFar + valueFar})
			}
		}
	}
	return near
}

// maybe leaves out what has no letter in common with what was written.
func maybe(written string, far int) bool {
	return far == 0 || far < len(written) && spell.Alike(written, far)
}

// ownPart is a label's key without the domain, which people leave out.
func ownPart(key string) string { return key[strings.LastIndex(key, "/")+1:] }

// mostSuggested is for how many nodes that wait for their host at the same time others are suggested. More are no slip, but a fleet whose
// machines have yet to join: what is near would change with each that does.
const mostSuggested = 16

// awaitHosts says of each node whose selector selects no host what it waits for, and which hosts that no node means it may mean.
func awaitHosts(resolved []ResolvedNode, hosts []api.Host) {
	var waiting []*ResolvedNode
	meant := map[string]bool{}
	for i := range resolved {
		switch r := &resolved[i]; {
		case r.Host != nil:
			meant[r.Host.Name] = true
		case len(r.Problems) == 0:
			waiting = append(waiting, r)
		}
	}
	var free []api.Host
	if n := len(waiting); n > 0 && n <= mostSuggested {
		free = slices.DeleteFunc(slices.Clone(hosts), func(h api.Host) bool { return meant[h.Name] })
	}
	for _, r := range waiting {
		r.Waits = append(r.Waits, noHostText(r.Node.Spec.NodeSelector, free))
	}
}

func noHostText(selector map[string]string, near []api.Host) string {
	text := "no host has the labels " + labelText(selector) + ": check that the host has joined"
	if labels := NearLabels(selector, near); len(labels) > 0 {
		text += "; did you mean " + strings.Join(labels, " or ") + "?"
	}
	return text
}
