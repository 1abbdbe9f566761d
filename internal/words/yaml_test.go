package words

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// TestYAML: what is read back has the same values, and nothing in the text is hidden.
func TestYAML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		likely := []rune("ab \n\t\"'\\:#-\u200d\u202e\x07\ufeff\u0085\u2028\U000e0001")
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom(likely)))
		want := map[string]any{
			"yes":               text.Draw(t, "value"),
			text.Draw(t, "key"): []any{"y", "1", 1e6, nil, map[string]any{}, text.Draw(t, "item")},
		}
		data, err := JSONToYAML([]byte(asJSON(t, want)))
		if err != nil {
			t.Fatal(err)
		}
		out := string(data)
		if strings.ContainsFunc(out, hidden) {
			t.Errorf("hidden characters in %q", out)
		}
		var got map[string]any
		if err := yaml.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("%q: %s", out, diff)
		}
	})
	const plain = "---\na: 1 # b\n"
	if got := YAML(plain); got != plain {
		t.Errorf("%q became %q", plain, got)
	}
	if got := YAML("a:\n- b\u200dc\n---\nd: e\n"); got != "a:\n- \"b\\u200dc\"\n---\nd: e\n" {
		t.Errorf("%q", got)
	}
	if got := YAML("a: [\u200d"); got != `a: [\u200d` {
		t.Errorf("no YAML: %q", got)
	}
}

func asJSON(t *rapid.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
