// Package words makes text for people.
package words

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plural is a number with its noun: "1 host", "3 hosts", "2 entries", "2 days", "2 chassis".
func Plural(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	isY = isY && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeiou")
	switch {
	case n == 1 || strings.HasSuffix(noun, "s"):
		return fmt.Sprintf("%d %s", n, noun)
	case isY:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Few joins names, and not more of them than people read.
func Few(names []string) string {
	const most = 5
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// Counts says how many there are of each, sorted: "2 up+replaying, 1 up+stopped".
func Counts(of map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(all, ", ")
}

// Cut cuts text to at most n bytes, at a character's end. What was cut ends with an ellipsis of three bytes, so n is no less.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

// Colon is text after a colon; nothing where there is no text.
func Colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
