package glusterd

import (
	"regexp"
	"strings"
)

// ofOption are GlusterFS's words (10.3) against the name or the value of an option.
var ofOption = regexp.MustCompile(`(?i)option.* does not ?exist|option .* is not recogni[sz]ed|unknown option|` +
	`reserved option|invalid (option|value|key|number format|time format|percent format|hostname|command)|` +
	`is invalid command|(is|are) not (a )?valid|not a valid option|out of range|smaller than minimum|` +
	`greater than maximum|fractional value|not an absolute path|can not parse .* address|expects an? |` +
	`value cannot be|option .* cannot be set`)

// OfOption says whether a failed 'volume set' was refused for the name or the value of an option:
// it will be refused again. All else may pass, such as a node that is away, clients that are too
// old, and a volume that has to be stopped.
func (f *Failure) OfOption() bool {
	return ofOption.MatchString(strings.Join(strings.Fields(f.Text), " "))
}
