package cli

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// addHostless refuses StorageNodes whose selector selects no host, which is nearly always a slip. One that selected none before is no fault
// of this request, and is only told of.
func (p *proposal) addHostless(hosts []api.Host) {
	for _, t := range p.targets {
		if t.GetKind() != engine.KindNode || t.after == nil || engine.SelectsHost(selectorOf(t.after), hosts) {
			continue
		}
		text := t.String() + ": " + hostlessText(selectorOf(t.after), hosts)
		if t.live != nil && maps.Equal(selectorOf(t.live), selectorOf(t.after)) {
			p.hostless = append(p.hostless, text)
			continue
		}
		p.refused, p.early = append(p.refused, text), true
	}
}

func selectorOf(node *unstructured.Unstructured) map[string]string {
	selector, _, _ := unstructured.NestedStringMap(node.Object, "spec", "nodeSelector")
	return selector
}

func hostlessText(selector map[string]string, hosts []api.Host) string {
	text := "spec.nodeSelector selects no host with the labels " + engine.SelectorText(selector)
	if near := engine.NearLabels(selector, hosts); len(near) > 0 {
		return text + ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return text + ": 'holdfast host list' shows the hosts, 'holdfast host show NAME' the labels of one"
}

// whenPossibleUsage is of 'apply' and 'plan'.
const whenPossibleUsage = "declare objects although they are refused now, such as a StorageNode whose host has not joined: they are carried out as soon as possible"

func refusalsFor(whenPossible bool) api.PlanRefusals {
	if whenPossible {
		return api.RefusalsDeclare
	}
	return api.RefusalsRefuse
}

// judge refuses what is refused, unless it is to be declared all the same, and tells of what has no host.
func (p *proposal) judge(w *writer, out io.Writer) error {
	err := p.refusal()
	switch {
	case err != nil && w.refusals == api.RefusalsDeclare:
		for _, text := range p.refused {
			fmt.Fprintf(out, "warning: refused for now: %s\n", printable(text))
		}
	case err != nil && p.early:
		return fmt.Errorf("%w\nIf the machine will join later, use '--when-possible': it is carried out as soon as possible", err)
	case err != nil:
		return err
	}
	for _, text := range p.hostless {
		fmt.Fprintf(out, "warning: %s\n", printable(text))
	}
	return nil
}
