package placing

import (
	"slices"
	"strings"
)

// IsClean says whether a state of placement groups is a good one. A scrub does not make a clean one
// less so; what it found does.
func IsClean(state string) bool {
	words := strings.Split(state, "+")
	has := func(word string) bool { return slices.Contains(words, word) }
	return has("active") && has("clean") && !has("inconsistent") && !has("failed_repair") && !has("snaptrim_error")
}
