package words

import (
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// JSONToYAML is what json.Marshal made as YAML, as the function YAML writes it.
func JSONToYAML(data []byte) ([]byte, error) {
	// JSON's escapes of what is hidden are not all YAML's; those that Visible writes are.
	data, err := sigsyaml.JSONToYAML([]byte(Visible(string(data))))
	if err != nil {
		return nil, err
	}
	return []byte(YAML(string(data))), nil
}

// YAML is text in YAML with the same values, in which what is hidden is written as YAML's own escapes.
// Text that is no YAML is written as Visible does.
func YAML(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	decoder, encoder := yaml.NewDecoder(strings.NewReader(s)), yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			quoteHidden(&n)
			err = encoder.Encode(&n)
		}
		if err != nil {
			return Visible(s)
		}
	}
	if encoder.Close() != nil {
		return Visible(s)
	}
	return Visible(b.String()) // whose escapes are those of a text in double quotes
}

// quoteHidden has texts with hidden characters written in double quotes, where escapes count.
func quoteHidden(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, hidden) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		quoteHidden(child)
	}
}
