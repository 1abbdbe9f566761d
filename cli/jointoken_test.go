package cli

import (
	"strings"
	"testing"
)

func TestJoinToken(t *testing.T) {
	for _, test := range []struct{ arg, stdin, want string }{
		{"", "", ""},
		{"hf1.x", "not read", "hf1.x"},
		{"-", "hf1.x\n", "hf1.x"},
		{"-", " hf1.x", "hf1.x"},
	} {
		if got, err := joinToken(test.arg, strings.NewReader(test.stdin)); err != nil || got != test.want {
			t.Errorf("--join %q with %q: got %q, %v, want %q", test.arg, test.stdin, got, err, test.want)
		}
	}
	if got, err := joinToken("-", strings.NewReader("\n")); err == nil {
		t.Errorf("an empty line is taken for the token %q", got)
	}
}
