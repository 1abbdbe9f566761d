package convert

import "go.yaml.in/yaml/v3"

// mostAliased is how many nodes the aliases of a file may stand for: a few lines of aliases of
// aliases stand for billions.
const mostAliased = 100_000

// readable says whether a document can be read field by field: without keys that merge maps, which
// would change what a field means without a word, and without more than aliases may stand for.
func (r *reader) readable(n *yaml.Node) bool {
	was := len(r.faults)
	for _, key := range merges(n) {
		r.fault(key, "the key %s takes over the fields of another map, which 'holdfast convert' does not do: "+
			"write out the fields", key.Value)
	}
	return r.countAliased(n, nil) && len(r.faults) == was
}

// merges are the keys that merge maps.
func merges(n *yaml.Node) (all []*yaml.Node) {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.ShortTag() == "!!merge" {
			all = append(all, child)
		}
		all = append(all, merges(child)...)
	}
	return all
}

// countAliased adds up the nodes that aliases stand for; alias is the one outside of the others, of
// which n is a part. It ends with the first one too many, so that an alias of itself ends, too.
func (r *reader) countAliased(n, alias *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		if alias == nil {
			alias = n
		}
		n = n.Alias
	}
	if alias != nil {
		if r.aliased++; r.aliased > mostAliased {
			r.fault(alias, "the aliases of the file stand for more than %d values with *%s: write out what they mean",
				mostAliased, alias.Value)
			return false
		}
	}
	for _, child := range n.Content {
		if !r.countAliased(child, alias) {
			return false
		}
	}
	return true
}
