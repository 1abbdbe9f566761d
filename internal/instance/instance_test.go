package instance

import (
	"strings"
	"testing"
)

const boot = "8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11"

func TestParse(t *testing.T) {
	for _, i := range []Instance{
		{Machine: "0123456789abcdef0123456789abcdef", Boot: boot, Process: "0123456789abcdef", Address: "10.0.0.4"},
		{Boot: boot, Process: "0123456789abcdef", Address: "fe80::1"},
		{Boot: boot, Process: "0123456789abcdef"},
	} {
		if got, err := Parse(i.String()); err != nil || got != i {
			t.Errorf("%q is read as %+v: %v", i, got, err)
		}
	}
	good := Instance{Boot: boot, Process: "0123456789abcdef", Address: "10.0.0.4"}.String()
	for _, bad := range []string{
		"", good + "\n", good + " ", "\x1b[2J" + good, strings.Replace(good, "10.0.0.4", "1.2.3", 1), strings.Replace(good, boot, "", 1),
		strings.Replace(good, "machine=", "machine="+strings.Repeat("a", 33), 1), strings.Repeat("a", 1<<20),
	} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%.100q is taken for %+v", bad, got)
		}
	}
}

func TestNew(t *testing.T) {
	a, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	b, err := New("")
	if err != nil || a.Process == b.Process || a.Boot != b.Boot {
		t.Errorf("two runs are %v and %v: %v", a, b, err)
	}
	if got, err := Parse(a.String()); err != nil || got != a {
		t.Errorf("%q is read as %+v: %v", a, got, err)
	}
}
