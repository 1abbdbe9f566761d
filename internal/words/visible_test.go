package words

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"osd.3 läuft – 50 %\n\tok": "osd.3 läuft – 50 %\n\tok",
		"\x1b[2J\x1b]0;x\x07":      `\x1b[2J\x1b]0;x\x07`,
		"a\x00b\rc":                `a\x00b\x0dc`,
		"\u009b31m":                `\x9b31m`,
		"\x9b31m":                  `\x9b31m`,
		"gpj.\u202eexe":            `gpj.\u202eexe`,
		"a\u2028b":                 `a\u2028b`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, not %q", in, got, want)
		}
	}
}

// However a text is cut into writes, what comes out is what Visible makes of the whole.
func TestVisibleWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var b strings.Builder
		w := NewVisibleWriter(&b)
		for rest := []byte(text + "."); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if want := Visible(text + "."); b.String() != want {
			t.Fatalf("%q, not %q", b.String(), want)
		}
	})
}

func TestLineAndText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		line, many := Line(text, 20), Text(text, 20)
		if len(line) > 20 || len(many) > 20 || !utf8.ValidString(line) || !utf8.ValidString(many) {
			t.Fatalf("%q, %q", line, many)
		}
		if strings.ContainsAny(line, "\n\t") || strings.ContainsFunc(line+many, hidden) {
			t.Fatalf("%q, %q", line, many)
		}
	})
	if got := Text("first\nlast words", 13); got != "…last words" && got != "…\nlast words" {
		t.Errorf("%q", got)
	}
}

// TestJSON: a program reads the same values, and a terminal acts on none of it.
func TestJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a\u0085b", "/fotos/👩‍💻.jpg", "a\uf022b", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\x7f\x1b"})).Draw(t, "value")
		data, err := json.Marshal(map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		text := JSON(string(data))
		var back map[string]string
		if err := json.Unmarshal([]byte(text), &back); err != nil || back["x"] != value || Visible(text) != text {
			t.Fatalf("%q came to %s, %v", value, text, err)
		}
	})
}
