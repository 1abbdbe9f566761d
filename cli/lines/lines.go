// Package lines finds the lines of a manifest that the server's errors are about. It is pure.
package lines

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Place is where an object stands: in a file that has no other one of its kind, namespace and name.
type Place struct {
	// Data is the whole file.
	Data                  []byte
	Kind, Namespace, Name string
}

// Text names the lines of the fields that an error is about, such as ", line 12"; it is empty where none is known.
func (p Place) Text(err error) string {
	var found []int
	for _, field := range fieldsOf(err) {
		if n := p.Line(field); n > 0 && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", line %d", found[0])
	}
	return fmt.Sprintf(", lines %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(found), " ", ", "), "[]"))
}

// undeclared finds the fields that a kind does not have, which the server names in its text alone.
var undeclared = regexp.MustCompile(`(?m)\.([A-Za-z][^\s:]*): field not declared in schema`)

func fieldsOf(err error) (fields []string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	for _, found := range undeclared.FindAllStringSubmatch(status.Status().Message, -1) {
		fields = append(fields, found[1])
	}
	return fields
}

// Line is the line of a field, or of the one that it would be in where it is missing; 0 where not even that is known.
func (p Place) Line(field string) int {
	node := p.node()
	if node == nil || field == "" {
		return 0
	}
	line := 0
	for _, step := range steps(field) {
		key, value := within(node, step)
		if value == nil {
			return line
		}
		line, node = key, value
	}
	return line
}

// node is the object in the file: a document, or an item of a list.
func (p Place) node() *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(p.Data))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return nil
		}
		if len(document.Content) == 0 {
			continue
		}
		objects := document.Content
		if _, items := within(objects[0], "items"); items != nil {
			objects = items.Content
		}
		for _, o := range objects {
			if p.is(o) {
				return o
			}
		}
	}
}

// is says whether a node is the object. A list may leave out of its items what kind they are, and a file the namespace.
func (p Place) is(node *yaml.Node) bool {
	_, metadata := within(node, "metadata")
	if metadata == nil || textOf(metadata, "name") != p.Name {
		return false
	}
	kind, namespace := textOf(node, "kind"), textOf(metadata, "namespace")
	return (kind == p.Kind || kind == "") && (namespace == p.Namespace || namespace == "")
}

func textOf(node *yaml.Node, key string) string {
	if _, value := within(node, key); value != nil {
		return value.Value
	}
	return ""
}

// steps are the keys of spec.devices[0] or metadata.labels[example.com/a], one after the other.
func steps(field string) (all []string) {
	for field != "" {
		if inner, ok := strings.CutPrefix(field, "["); ok {
			key, rest, _ := strings.Cut(inner, "]")
			all = append(all, strings.Trim(key, `"`))
			field = strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			return append(all, field)
		}
		all = append(all, field[:end])
		field = strings.TrimPrefix(field[end:], ".")
	}
	return all
}

// within is a field of a map, or a member of a list, and the line where it begins.
func within(node *yaml.Node, step string) (line int, value *yaml.Node) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind == yaml.SequenceNode {
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(node.Content) {
			return node.Content[n].Line, node.Content[n]
		}
		return 0, nil
	}
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		if node.Content[i].Value == step {
			return node.Content[i].Line, node.Content[i+1]
		}
	}
	return 0, nil
}
