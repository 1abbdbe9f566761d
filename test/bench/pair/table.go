package pair

import (
	"fmt"
	"io"
)

// Print writes the times and ratios, as lines of a tabwriter whose cells end with a tab.
func (t Times) Print(w io.Writer, bound float64) {
	script, holdfast, ratios := t[Script], t[Holdfast], t.Ratios()
	fmt.Fprintf(w, "round\tscript\tholdfast\tratio\t\n")
	for i := range max(len(script), len(holdfast)) {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t\n", i+1, at(script, i), at(holdfast, i), at(ratios, i))
	}
	for _, row := range []struct {
		name string
		pick func(Spread) float64
	}{
		{"median", func(s Spread) float64 { return s.Median }},
		{"least", func(s Spread) float64 { return s.Min }},
		{"most", func(s Spread) float64 { return s.Max }},
	} {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", row.name, summary(script, row.pick), summary(holdfast, row.pick), summary(ratios, row.pick))
	}
	if len(ratios) > 0 {
		fmt.Fprintf(w, "bound\t\t\t%.2f\t\n", bound)
	}
}

func at(numbers []float64, i int) string {
	if i >= len(numbers) {
		return ""
	}
	return fmt.Sprintf("%.2f", numbers[i])
}

func summary(numbers []float64, pick func(Spread) float64) string {
	if len(numbers) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", pick(SpreadOf(numbers)))
}
