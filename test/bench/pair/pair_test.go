package pair

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTurns(t *testing.T) {
	for _, tt := range []struct{ only, want string }{
		{"", "0 holdfast, 0 script, 1 script, 1 holdfast, 2 holdfast, 2 script, "},
		{Script, "0 script, 1 script, 2 script, "},
	} {
		var got strings.Builder
		for n, side := range Turns(2, tt.only) {
			fmt.Fprintf(&got, "%d %s, ", n, side)
		}
		if got.String() != tt.want {
			t.Errorf("only %q: %s, want %s", tt.only, got.String(), tt.want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, tt := range []struct {
		numbers []float64
		want    Spread
	}{
		{[]float64{3, 1, 2}, Spread{2, 1, 3}},
		{[]float64{4, 1, 2, 3}, Spread{2.5, 1, 4}},
		{[]float64{7}, Spread{7, 7, 7}},
	} {
		if diff := cmp.Diff(tt.want, SpreadOf(tt.numbers)); diff != "" {
			t.Errorf("%v: %s", tt.numbers, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	times := Times{Script: {1, 2, 4}, Holdfast: {2, 3}} // 2 and 1.5
	if err := times.Judge(1.8); err != nil {
		t.Error(err)
	}
	if err := times.Judge(1.7); err == nil || !strings.Contains(err.Error(), "1.75 times") {
		t.Errorf("a ratio above the bound: %v", err)
	}
	if err := (Times{Script: {1}}).Judge(0); err != nil {
		t.Errorf("one side alone: %v", err)
	}
}

func TestPrint(t *testing.T) {
	var out strings.Builder
	Times{Script: {4, 8, 2}, Holdfast: {5, 12}}.Print(&out, 1.3)
	const want = "round script holdfast ratio 1 4.00 5.00 1.25 2 8.00 12.00 1.50 3 2.00 median 4.00 8.50 1.38 " +
		"least 2.00 5.00 1.25 most 8.00 12.00 1.50 bound 1.30"
	if got := strings.Join(strings.Fields(out.String()), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
