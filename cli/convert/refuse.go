package convert

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Refuse says of a document of a manifest that it is written for another program, and what to
// write; nil of any other document. data is the text of the whole file, for the line.
func Refuse(source string, data []byte, o map[string]any) error {
	file, _, _ := strings.Cut(source, ", document ")
	given := file
	if file == "standard input" {
		given = "-"
	}
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	spec, _ := o["spec"].(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	command := fmt.Sprintf("'holdfast convert -f %s' prints them", given)
	switch formFor(apiVersion, kind, o["clusters"] != nil, spec["storageNodes"] != nil) {
	case heketi:
		return fmt.Errorf("%s%s: this is a topology of heketi: write a StorageCluster, and a StorageNode for each "+
			"node; %s", source, line(data, heketi, ""), command)
	case quarterMastersFields:
		return fmt.Errorf("%s%s: spec.storageNodes is QuarterMaster's: write each node as a StorageNode of its own; %s",
			source, line(data, quarterMastersFields, name), command)
	case quarterMaster:
		return fmt.Errorf("%s%s: apiVersion %s is QuarterMaster's: write apiVersion: %s, and each node as a "+
			"StorageNode; %s", source, line(data, quarterMaster, name), apiVersion, api.GroupVersion, command)
	case other:
	}
	return nil
}

// line is where the first document of a form and name stands, or the field that tells the form.
func line(data []byte, wanted form, name string) string {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			return ""
		}
		root := plain(n.Content[0])
		if root == nil {
			continue
		}
		for _, member := range membersOf(root) {
			named := child(child(member, "metadata"), "name")
			if is, _ := formOf(member); is == wanted && (named == nil || named.Value == name) {
				if nodes := keyOf(child(member, "spec"), "storageNodes"); nodes != nil {
					member = nodes
				}
				return fmt.Sprintf(", line %d", member.Line)
			}
		}
	}
}

// keyOf is the name of a field, as it stands in the file.
func keyOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i]
		}
	}
	return nil
}
