package plans

import (
	"cmp"
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// mostLost is how many losses of data the head of a report lists.
const mostLost = 20

// head says first what data is destroyed, and then how much changes.
func (p *page) head(r *Report) {
	var lost []string
	for _, c := range r.Changes {
		if c.Risk == api.RiskData {
			lost = append(lost, c.lost())
		}
	}
	if len(lost) > 0 {
		p.line("", "DATA IS DESTROYED:")
	}
	for _, text := range lost[:min(len(lost), mostLost)] {
		p.line("  ", "%s", text)
	}
	if more := len(lost) - mostLost; more > 0 {
		p.line("  ", "and %d more, see below", more)
	}
	p.line("", "plan: %s%s", Summary(r.Changes), map[bool]string{true: ", as far as known"}[r.Unknown])
}

// lost says of what data is destroyed.
func (c Change) lost() string {
	text := cmp.Or(c.Label, c.Object)
	if c.Verb == VerbCommand {
		text = c.Object
	}
	if c.Host != "" {
		text += " on " + c.Host
	}
	var devices []string
	for _, d := range c.Devices {
		devices = append(devices, d.String())
	}
	if len(devices) > 0 {
		text += ", device " + strings.Join(devices, ", ")
	}
	if c.Reason != "" {
		text += fmt.Sprintf(": %s", c.Reason)
	}
	return text
}
