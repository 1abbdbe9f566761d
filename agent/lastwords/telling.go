package lastwords

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// stamp begins a line of Ceph's logs: time, thread and level.
	stamp = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(?:[+-]\d{4}|Z)?\s+` +
		`(?:[0-9a-f]{8,}\s+)?(-?\d+\s+)?`)
	// noise tells nothing: frames of a stack, what Ceph dumps at its end, and rules between.
	noise = regexp.MustCompile(`^\s*(?:\d+: |-\d+> |-{3,}|={3,}|NOTE: a copy of the executable|\(end |max_|log_file |` +
		`\*\*\* |.*F_SET_FILE_RW_HINT|\S*$)`)
	// bad are words of lines that tell of a failure.
	bad = regexp.MustCompile(`(?i)\b(?:errors?|failed|failure|cannot|can't|unable|refused|denied|invalid|` +
		`fatal|panic|missing)\b`)
)

// Telling is the last line that tells of a failure, without its time; the last line at all where none does.
func Telling(lines []string) string {
	last := ""
	for _, line := range slices.Backward(lines) {
		head := stamp.FindStringSubmatch(line)
		if head != nil {
			line = line[len(head[0]):]
		}
		if line = strings.TrimSpace(line); line == "" || noise.MatchString(line) {
			continue
		}
		if head != nil && strings.TrimSpace(head[1]) == "-1" || bad.MatchString(line) {
			return line
		}
		if last == "" {
			last = line
		}
	}
	return last
}
