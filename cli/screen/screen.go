// Package screen lays rows of text out for a terminal: what is broken first, wrapped instead of cut off, and in colour.
package screen

import (
	"fmt"
	"regexp"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
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
	red, green, yellow = "31", "32", "33"
	reset              = "\x1b[0m"
)

// coloured are words, and marks at the beginning of a row, by their colours.
var coloured = []struct {
	found  *regexp.Regexp
	colour string
}{
	{regexp.MustCompile(`^  ✗|\b(OFFLINE|HEALTH_ERR)\b`), red},
	{regexp.MustCompile(`^  [!?…]|\b(DEGRADED|HEALTH_WARN)\b`), yellow},
	{regexp.MustCompile(`^  ✓|\b(ONLINE|HEALTH_OK)\b`), green},
}

// Paint gives a row its colours. The row has no control characters.
func Paint(row string) string {
	for _, c := range coloured {
		row = c.found.ReplaceAllString(row, "\x1b["+c.colour+"m${0}"+reset)
	}
	return row
}

// Numbers are what a storage system has and holds, by its own word; empty where it said nothing.
func Numbers(s *api.StorageStatusStatus) string {
	var parts []string
	if s.Capacity != nil && !s.Capacity.IsZero() {
		parts = append(parts, "capacity "+size(s.Capacity.Value()))
	}
	if c := s.Ceph; c != nil && c.OSDs > 0 {
		parts = append(parts, fmt.Sprintf("OSDs: %d up and %d in of %d", c.OSDsUp, c.OSDsIn, c.OSDs))
	}
	if c := s.Ceph; c != nil && c.PGs > 0 {
		parts = append(parts, fmt.Sprintf("PGs: %d of %d active+clean", c.PGsClean, c.PGs))
	}
	return strings.Join(parts, "; ")
}

// size is a number of bytes as Ceph writes it.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, unit := float64(bytes), 0
	for n >= 1024 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%.3g %s", n, units[unit])
}
