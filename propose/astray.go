package propose

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/spell"
)

// addAstray tells of what names a cluster that there is not: nobody acts on it. It may be declared
// later, so this is not refused.
func (p *Proposal) addAstray(after *engine.Objects) {
	astray := map[types.NamespacedName][]string{}
	var keys []types.NamespacedName
	for _, t := range p.Targets {
		key := types.NamespacedName{Namespace: t.GetNamespace(), Name: clusterNamed(t.After)}
		there := slices.ContainsFunc(after.Clusters, func(c api.StorageCluster) bool { return c.Namespace == key.Namespace && c.Name == key.Name })
		if key.Name == "" || there {
			continue
		}
		if astray[key] == nil {
			keys = append(keys, key)
		}
		astray[key] = append(astray[key], t.String())
	}
	for _, key := range keys {
		text := astrayText(key, after.Clusters)
		p.Astray = append(p.Astray, strings.Join(astray[key], ", ")+": "+text)
		p.Report.Clusters = append(p.Report.Clusters, key.String())
		p.Report.Notes = mergeNotes(p.Report.Notes, key.String(), []string{text})
	}
}

// clusterNamed is the cluster that a node or a resource names; empty for anything else, and for
// what is deleted.
func clusterNamed(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	if kindOf(u) == engine.KindNode {
		var node api.StorageNode
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &node) != nil {
			return ""
		}
		return node.ClusterName()
	}
	if api.NewResource(kindOf(u)) == nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(u.Object, "spec", "cluster")
	return name
}

func astrayText(key types.NamespacedName, clusters []api.StorageCluster) string {
	var names []string
	for i := range clusters {
		if clusters[i].Namespace == key.Namespace {
			names = append(names, clusters[i].Name)
		}
	}
	text := fmt.Sprintf("storagecluster/%s does not exist in namespace %s (yet); nothing happens until it is declared", key.Name, key.Namespace)
	if like := spell.Nearest(key.Name, names); like != "" {
		text += fmt.Sprintf(": did you mean %s?", like)
	}
	return text
}
