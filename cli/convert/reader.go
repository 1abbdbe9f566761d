package convert

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader reads the nodes of one file, and collects what is wrong with them.
type reader struct {
	file string
	// keeps has fields that nobody knows kept as they are: the API checks those of its own
	// documents.
	keeps bool
	// name is that of heketi's clusters, and seen is where each object stands, of all files.
	name string
	seen map[string]string
	// aliased is how many nodes the aliases stand for that were read.
	aliased int
	faults  []error
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s, line %d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

func (r *reader) err() error { return errors.Join(r.faults...) }

// fields are the fields of a map, without those that are null, and those beside the known ones,
// which are a fault of a document of another program.
func (r *reader) fields(n *yaml.Node, what string, known ...string) (fields, rest map[string]*yaml.Node) {
	fields, rest = map[string]*yaml.Node{}, map[string]*yaml.Node{}
	if n = plain(n); n == nil {
		return fields, rest
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%s must be a map", what)
		return fields, rest
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], plain(n.Content[i+1])
		switch {
		case value == nil:
		case slices.Contains(known, key.Value):
			fields[key.Value] = value
		case r.keeps:
			rest[key.Value] = value
			r.detach(value)
		case len(known) == 0:
			r.fault(key, "%s has no fields: remove %s", what, key.Value)
		default:
			r.fault(key, "%s has no field %s: remove it, or use one of %s", what, key.Value, strings.Join(known, ", "))
		}
	}
	return fields, rest
}

// detach makes a node one that can be written elsewhere: it may name no other one.
func (r *reader) detach(n *yaml.Node) {
	n.Anchor = ""
	for _, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			r.fault(child, "the alias *%s stands in a field that is kept as it is: write out what it means",
				child.Value)
			continue
		}
		r.detach(child)
	}
}

// plain is a node without aliases; nil where nothing is given.
func plain(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Tag == "!!null" {
		return nil
	}
	return n
}

func (r *reader) text(n *yaml.Node, what string) string {
	if n = plain(n); n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		r.fault(n, "%s must be a text", what)
		return ""
	}
	return n.Value
}

func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if n = plain(n); n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "%s must be a list", what)
		return nil
	}
	return n.Content
}

func (r *reader) texts(n *yaml.Node, what string) (all []string) {
	for _, item := range r.list(n, what) {
		text := r.text(item, "each of "+what)
		switch {
		case text == "":
			r.fault(item, "%s has an empty entry: remove it", what)
		case slices.Contains(all, text):
			r.fault(item, "%s names %s twice: remove one of them", what, text)
		default:
			all = append(all, text)
		}
	}
	return all
}

func (r *reader) labels(n *yaml.Node, what string) map[string]string {
	if n = plain(n); n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%s must be a map of texts", what)
		return nil
	}
	all := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		all[n.Content[i].Value] = r.text(n.Content[i+1], what+"."+n.Content[i].Value)
	}
	return all
}

// zone is a failure domain; one that is missing is 1, as QuarterMaster and heketi have it.
func (r *reader) zone(n *yaml.Node) int {
	const most = 65535 // the API's
	text := r.text(n, "zone")
	if text == "" {
		return 1
	}
	zone, err := strconv.Atoi(text)
	if err != nil || zone < 1 || zone > most {
		r.fault(n, "zone %s must be a number from 1 to %d", text, most)
	}
	return zone
}
