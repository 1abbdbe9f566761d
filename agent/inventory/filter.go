package inventory

import (
	"fmt"
	"path"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// FilterVariable is the environment variable that holds the patterns for Filter. Test hosts that share one kernel set it to
// something like "file-/tmp/lab/h1/disks/*", so that each sees its own disks alone.
const FilterVariable = "HOLDFAST_DEVICE_FILTER"

// Filter makes a function for Scanner.Only from patterns as in path.Match, separated by commas. It keeps the devices whose
// ID or path matches one of them; a "*" does not match a "/". No pattern at all keeps everything.
func Filter(patterns string) (func(api.Device) bool, error) {
	if strings.TrimSpace(patterns) == "" {
		return nil, nil
	}
	globs := strings.Split(patterns, ",")
	for i, g := range globs {
		globs[i] = strings.TrimSpace(g)
		if _, err := path.Match(globs[i], ""); err != nil || globs[i] == "" {
			return nil, fmt.Errorf("device filter %q is not a pattern (see path.Match)", g)
		}
	}
	return func(d api.Device) bool {
		for _, g := range globs {
			if ok, _ := path.Match(g, d.ID); ok {
				return true
			}
			if ok, _ := path.Match(g, d.Path); ok {
				return true
			}
		}
		return false
	}, nil
}
