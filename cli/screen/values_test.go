package screen

import (
	"bytes"
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// What is read back has the values that were written, also where a terminal would hide a part of one.
func TestEncode_hidden(t *testing.T) {
	for _, want := range []string{"a\u200db", "\u202egnp", "\x7f\x1b", "\U000e0001", "a\n\u200d: b", `\u200d`} {
		for _, asYAML := range []bool{false, true} {
			var out bytes.Buffer
			text := Encode(map[string]string{"a": want}, asYAML)
			if _, err := words.NewVisibleWriter(&out).Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			read := json.Unmarshal
			if asYAML {
				read = func(data []byte, v any) error { return yaml.Unmarshal(data, v) }
			}
			var got map[string]string
			if err := read(out.Bytes(), &got); err != nil || got["a"] != want {
				t.Errorf("%q is printed as %q: %v", want, out.String(), err)
			}
		}
	}
}
