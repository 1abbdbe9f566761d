package health

import (
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// placeholders are the words of next steps that stand for a name, with how Ceph's own text has that name.
var placeholders = []struct {
	word string
	name *regexp.Regexp
}{
	{"osd.N", regexp.MustCompile(`\b(osd\.\d+)\b`)},
	{"mon.NAME", regexp.MustCompile(`\b(mon\.[a-z0-9-]+)`)},
	{"mds.NAME", regexp.MustCompile(`\b(mds\.[A-Za-z][A-Za-z0-9._-]*)`)},
	{"POOL", regexp.MustCompile(`pool '([^']+)'`)},
}

// WithNames is the next step of a check, with the first of the names that Ceph's text has.
func WithNames(c api.HealthCheck) string {
	if next := named(c); next != "" {
		return next
	}
	next, text := c.Next, strings.Join(append(slices.Clone(c.Detail), c.Message), "\n")
	for _, x := range placeholders {
		if found := x.name.FindStringSubmatch(text); found != nil {
			next = strings.ReplaceAll(next, x.word, found[1])
		}
	}
	return next
}
