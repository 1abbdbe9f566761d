package words

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"1 host": Plural(1, "host"), "0 hosts": Plural(0, "host"), "2 entries": Plural(2, "entry"), "1 entry": Plural(1, "entry"),
		"2 copies": Plural(2, "copy"), "2 days": Plural(2, "day"), "3 chassis": Plural(3, "chassis"), "2 other peers": Plural(2, "other peer"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFew(t *testing.T) {
	for names, want := range map[string]string{"": "", "a": "a", "a b c d e": "a, b, c, d, e", "a b c d e f g": "a, b, c, d, e and 2 more"} {
		if got := Few(strings.Fields(names)); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	long := strings.Repeat("ä", 100)
	for n := 3; n < 201; n++ {
		if got := Cut(long, n); len(got) > n || len(got) < n-1 || !utf8.ValidString(got) || n < 200 && !strings.HasSuffix(got, "…") {
			t.Fatalf("%d: %q", n, got)
		}
	}
	if Cut("short", 5) != "short" || Colon("") != "" || Colon("x") != ": x" {
		t.Error("what fits is changed")
	}
}
