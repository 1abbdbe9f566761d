package screen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Row is what a screen says of one object. Daemons have a host.
type Row struct{ Mark, Object, Host, State, Detail string }

// well is the mark of what is as desired.
const well = "✓"

// Rows are the rows of objects, what is broken first. With few set a row for each type of daemon
// stands for those that run and serve.
func Rows(all []Row, few bool) (rows []string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Row) int { return Rank(a.Mark, a.State) - Rank(b.Mark, b.State) })
	var types []string
	if few {
		types = byType(all)
		all = slices.DeleteFunc(all, func(r Row) bool { return r.Host != "" && r.Mark == well })
	}
	var wo, wh int
	for _, r := range all {
		wo, wh = max(wo, len(r.Object)), max(wh, len(r.Host))
	}
	for _, r := range all {
		row := fmt.Sprintf("  %s %-*s  %-*s  %-9s  %s", r.Mark, wo, r.Object, wh, r.Host, r.State, r.Detail)
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return append(rows, types...)
}

// byType are rows that say of each type of daemon how many run and serve.
func byType(all []Row) (rows []string) {
	var types []string
	count, served := map[string]int{}, map[string]int{}
	for _, r := range all {
		kind, _, daemon := strings.Cut(r.Object, ".")
		if r.Host == "" || !daemon || strings.Contains(kind, "/") {
			continue
		}
		if count[kind]++; count[kind] == 1 {
			types = append(types, kind)
		}
		if r.Mark == well {
			served[kind]++
		}
	}
	slices.Sort(types)
	for _, kind := range types {
		mark := well
		if served[kind] < count[kind] {
			mark = "!"
		}
		rows = append(rows, fmt.Sprintf("  %s %s: %d of %d run and serve", mark, kind, served[kind], count[kind]))
	}
	return rows
}

// aDuration is how long something lasts, as Ceph and Holdfast write it: 83s, 1m23s, 10 s. Days,
// which may be hexadecimal digits, change nothing that often.
var aDuration = regexp.MustCompile(`\b(\d+(\.\d+)? ?(ms|s|sec|m|min|h))+\b`)

// WithoutDurations makes texts alike that differ only in for how long something has lasted, such as
// that a PG is stuck.
func WithoutDurations(text string) string { return aDuration.ReplaceAllString(text, "…") }

// Shorten leaves out the middle of a line that nobody would read to its end: what is wrong comes
// first, and what to do last.
func Shorten(text string) string {
	const head, tail = 240, 160
	runes := []rune(text)
	if len(runes) <= head+tail {
		return text
	}
	return string(runes[:head]) + " … " + string(runes[len(runes)-tail:])
}
