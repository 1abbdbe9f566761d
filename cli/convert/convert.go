package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Conversion is that of several files, which hold each object once.
type Conversion struct {
	// Name is that of heketi's clusters, which have none in their file.
	Name string

	seen map[string]string
}

// Documents are the documents of Holdfast's kinds that say what a file says.
func (c *Conversion) Documents(file string, data []byte) ([]byte, error) {
	if c.seen == nil {
		c.seen = map[string]string{}
	}
	r := &reader{file: file, name: c.Name, seen: c.seen}
	var all []document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s, %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if root := plain(n.Content[0]); root != nil && r.readable(root) {
			for _, member := range membersOf(root) {
				made := r.document(member)
				r.refuseTwins(made)
				all = append(all, made...)
			}
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it contains no object", file)
	}
	return text(all)
}

// membersOf are the objects of a List, such as 'kubectl get -o yaml' prints, or else the one that it is.
func membersOf(n *yaml.Node) (all []*yaml.Node) {
	kind, items := child(n, "kind"), child(n, "items")
	if kind == nil || kind.Value != "List" || items == nil || items.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	for _, item := range items.Content {
		if item = plain(item); item != nil {
			all = append(all, item)
		}
	}
	return all
}

func (r *reader) document(n *yaml.Node) []document {
	switch form, kind := formOf(n); form {
	case heketi:
		return r.topology(n)
	case quarterMaster:
		r.keeps = false
		if kind == "StorageNode" {
			return r.storageNode(n)
		}
		return r.cluster(n)
	case quarterMastersFields:
		r.keeps = true
		return r.cluster(n)
	default:
		what := kind
		if what == "" {
			what = "no object"
		}
		r.fault(n, "this is %s: 'holdfast convert' reads QuarterMaster's StorageClusters and StorageNodes, "+
			"and heketi's topology", what)
		return nil
	}
}

// form says whose document it is.
type form int

const (
	other form = iota
	heketi
	quarterMaster
	quarterMastersFields // Holdfast's apiVersion, with nodes inside of the cluster
)

func formOf(n *yaml.Node) (form, string) {
	word := func(key string) string {
		if value := child(n, key); value != nil {
			return value.Value
		}
		return ""
	}
	nodes := child(child(n, "spec"), "storageNodes") != nil
	return formFor(word("apiVersion"), word("kind"), child(n, "clusters") != nil, nodes), word("kind")
}

// child is a field of a map; nil where there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n = plain(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return plain(n.Content[i+1])
		}
	}
	return nil
}

// formFor says whose document it is, by what it begins with.
func formFor(apiVersion, kind string, clusters, nodes bool) form {
	group, _, _ := strings.Cut(apiVersion, "/")
	isOurs := kind == "StorageCluster" || kind == "StorageNode"
	switch {
	case kind == "" && clusters:
		return heketi
	case isOurs && (group == "coreos.com" || group == "storage.coreos.com"):
		return quarterMaster
	case kind == "StorageCluster" && group == api.GroupVersion.Group && nodes:
		return quarterMastersFields
	}
	return other
}
