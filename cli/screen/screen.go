// Package screen lays rows of text out for a terminal: what is broken first, wrapped instead of cut off, and in colour.
package screen

import (
	"regexp"
	"strings"
)

// Many is how many daemons a cluster has when only those that are not as desired get a row of their own.
const Many = 30

// marks are what rows begin with, the most urgent first.
var marks = []string{"✗", "!", "?", "…", "✓"}

// Rank orders rows by their marks and states: what is broken comes first.
func Rank(mark, state string) int {
	switch state {
	case "HEALTH_ERR":
		mark = "✗"
	case "HEALTH_WARN":
		mark = "!"
	}
	for i, m := range marks {
		if m == mark {
			return i
		}
	}
	return len(marks)
}

// Wrap makes rows of one that is too wide, between words where that is possible; the later ones are indented.
func Wrap(row string, width, indent int) (rows []string) {
	if width <= 0 {
		return []string{row}
	}
	indent = min(indent, width/2)
	rest := []rune(row)
	for len(rest) > width {
		at := width
		for i := width; i > width/2; i-- {
			if rest[i] == ' ' {
				at = i
				break
			}
		}
		rows = append(rows, strings.TrimRight(string(rest[:at]), " "))
		rest = []rune(strings.Repeat(" ", indent) + strings.TrimLeft(string(rest[at:]), " "))
	}
	return append(rows, string(rest))
}

const (
	red, green, yellow, bold = "31", "32", "33", "1"
	reset                    = "\x1b[0m"
)

// rule gives what is found in a row a colour.
type rule struct {
	found  *regexp.Regexp
	colour string
}

// coloured are words, and marks at the beginning of a row, by their colours.
var coloured = []rule{
	{regexp.MustCompile(`^  ✗|\b(OFFLINE|HEALTH_ERR)\b`), red},
	{regexp.MustCompile(`^  [!?…]|\b(DEGRADED|HEALTH_WARN)\b`), yellow},
	{regexp.MustCompile(`^  ✓|\b(ONLINE|HEALTH_OK)\b`), green},
}

// planned are the same for the rows of a plan.
var planned = []rule{
	{regexp.MustCompile(`^plan: .*`), bold},
	{regexp.MustCompile(`^DATA IS DESTROYED.*|\[DATA IS DESTROYED\]|^ *[-\d]+ remove\b|  deleted\b`), red},
	{regexp.MustCompile(`\[less redundancy\]|\[restart\]|^ *[-\d]+ change\b|  changed\b`), yellow},
	{regexp.MustCompile(`^ *[-\d]+ (start|prepare)\b|  new\b`), green},
}

// Paint gives a row of a status its colours. The row has no control characters.
func Paint(row string) string { return paint(row, coloured) }

// PaintPlan gives a row of a plan its colours. The row has no control characters.
func PaintPlan(row string) string { return paint(row, planned) }

func paint(row string, rules []rule) string {
	for _, c := range rules {
		row = c.found.ReplaceAllString(row, "\x1b["+c.colour+"m${0}"+reset)
	}
	return row
}
