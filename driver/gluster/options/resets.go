package options

import (
	"fmt"
	"slices"
	"strings"
)

// shard is the option by which large files are kept in parts. Without it, clients read only the
// first part of such a file, and write into that.
const shard = "features.shard"

// Resets are those of the options to be reset that may be. None is reset while something is wrong
// with the options of the volume: what is refused, or a group that is not known, may stand for
// them. Sharding that is on is never reset; then kept says so.
func Resets(reset, have map[string]string, wrong error) (now map[string]string, kept string) {
	now = map[string]string{}
	if wrong != nil {
		return now, ""
	}
	for name, value := range reset {
		if name == shard && !off(have[name]) {
			kept = fmt.Sprintf("option %s stays %s: it is not declared any more, and files that are kept in parts "+
				"cannot be read without it; declare it as it is, or as \"off\" once no file of the volume needs it",
				name, have[name])
			continue
		}
		now[name] = value
	}
	return now, kept
}

// off says whether GlusterFS takes a value for no.
func off(value string) bool {
	return slices.Contains([]string{"", "0", "off", "no", "false", "disable"}, strings.ToLower(value))
}

// hold leaves wanted options as the volume has them: a group that is not known and comes after them
// may be why they are so.
func hold(want, have map[string]string) {
	for name := range have {
		for other := range want {
			if full, ok := long(other, have); other == name || ok && full == name {
				delete(want, other)
				want[name] = have[name]
				break
			}
		}
	}
}
