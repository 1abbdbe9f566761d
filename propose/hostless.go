package propose

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// addHostless refuses StorageNodes whose selector selects no host, which is nearly always a slip.
// One that selected none before is no fault of this request, and is only told of.
func (p *Proposal) addHostless(hosts []api.Host) {
	for _, t := range p.Targets {
		if t.kind() != engine.KindNode || t.After == nil || engine.SelectsHost(selectorOf(t.After), hosts) {
			continue
		}
		text := t.String() + ": " + hostlessText(selectorOf(t.After), hosts)
		if t.Live != nil && maps.Equal(selectorOf(t.Live), selectorOf(t.After)) {
			p.Hostless = append(p.Hostless, text)
			continue
		}
		p.Early = append(p.Early, text)
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
	return text + ": see the hosts with 'holdfast host list', the labels of one with 'holdfast host show NAME'"
}
