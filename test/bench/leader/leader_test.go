package main

import (
	"strings"
	"testing"
)

func TestPercentile(t *testing.T) {
	n := []float64{3, 1, 2, 10, 4, 5, 6, 7, 8, 9}
	for p, want := range map[float64]float64{0: 1, .5: 5, .9: 9, 1: 10} {
		if got := percentile(n, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	good := result{FailOvers: []float64{5, 6.9}}
	if err := good.judge(); err != nil {
		t.Error(err)
	}
	slow := result{FailOvers: []float64{5, 7.1}}
	if err := slow.judge(); err == nil || !strings.Contains(err.Error(), "a fail-over took 7.10 s") {
		t.Errorf("%v does not name the slow fail-over", err)
	}
}

func TestPrint(t *testing.T) {
	r := result{FailOvers: []float64{5.1, 5.3}, Elected: []float64{4.9, 5}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	if want := "and has written 5.10 5.30 5.30 7.00"; !strings.Contains(words, want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
}
