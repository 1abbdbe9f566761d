package kube

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// RefuseRepeatedKeys refuses a file in which a map has a key twice: the last one would count, without a
// word. Other faults are found when the file is read.
func RefuseRepeatedKeys(data []byte, file string) error {
	for above, rest := 0, data; len(rest) > 0; {
		document := rest[:endOfDocument(rest)]
		if key := repeatedKeyIn(document); key != nil {
			return fmt.Errorf("%s, line %d: the key %q occurs twice: remove one of them", file, above+key.Line, key.Value)
		}
		above += bytes.Count(document, []byte("\n"))
		rest = rest[len(document):]
	}
	return nil
}

// endOfDocument is where the next document begins, with its "---".
func endOfDocument(data []byte) int {
	const next = "\n---"
	for at := 0; ; {
		found := bytes.Index(data[at:], []byte(next))
		if found < 0 {
			return len(data)
		}
		at += found + len(next)
		if at == len(data) || bytes.IndexByte([]byte(" \t\r\n"), data[at]) >= 0 {
			return at - len(next) + 1
		}
	}
}

// repeatedKeyIn is the first key of a text that its map has already.
func repeatedKeyIn(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		if decoder.Decode(&n) != nil { // the end, or a fault that is found when the file is read
			return nil
		}
		if key := repeatedKey(&n); key != nil {
			return key
		}
	}
}

func repeatedKey(n *yaml.Node) *yaml.Node {
	seen := map[string]bool{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode && child.ShortTag() != "!!merge" {
			name := nameOf(child)
			if seen[name] {
				return child
			}
			seen[name] = true
		}
		if key := repeatedKey(child); key != nil {
			return key
		}
	}
	return nil
}

// nameOf is the name that a key has as JSON: 1, 0x1 and "1" are one.
func nameOf(key *yaml.Node) string {
	var value any
	if key.Decode(&value) != nil {
		return key.Value
	}
	return fmt.Sprint(value)
}
