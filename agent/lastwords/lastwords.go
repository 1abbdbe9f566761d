// Package lastwords finds in what a daemon wrote last why it ended, by rules for each type: a reason, a sentence and
// the next step. What no rule knows is left to the reader, who gets the last telling line.
package lastwords

import (
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Cause is why a daemon ended. All of it but Message may be empty.
type Cause struct {
	Reason api.Reason
	// Message is one sentence without a full stop, or the last telling line of the log.
	Message string
	// Next is what a user does about it.
	Next string
	// Port is the TCP port that the daemon wanted; empty where it is about none.
	Port string
}

// Of says why a daemon ended, by how it ended ("exit code 1", "signal: killed") and the end of its log, which may begin
// in an earlier run.
func Of(d *api.Daemon, reason, log string) Cause {
	written := lastRun(strings.Split(log, "\n"))
	lines := make([]string, len(written))
	for i, line := range written {
		lines[i] = line[len(stamp.FindString(line)):]
	}
	for _, r := range rules {
		if len(r.types) > 0 && !slices.Contains(r.types, d.Spec.Type) {
			continue
		}
		for i, line := range slices.Backward(lines) {
			if found := r.line.FindStringSubmatchIndex(line); found != nil {
				return r.cause(d, line, found, written[:i])
			}
		}
	}
	if reason == "signal: killed" {
		return Cause{api.ReasonKilled, "it was killed by somebody, or by the kernel for want of memory",
			fill("look for 'Out of memory' in 'dmesg' on host {host}", d), ""}
	}
	return Cause{Message: Telling(written)}
}

var (
	// banner is what a daemon of Ceph writes first.
	banner = regexp.MustCompile(`^\d{4}-\d\d-\d\dT.* ceph version .*, process ceph-`)
	// dumped begins the lines of what Ceph dumps when it crashes: all that it wrote before, and more.
	dumped = regexp.MustCompile(`^\s*-\d+> `)
)

// lastRun are the lines of the process that ended last, without what it dumped.
func lastRun(lines []string) []string {
	for i, line := range slices.Backward(lines) {
		if banner.MatchString(line) {
			lines = lines[i:]
			break
		}
	}
	return slices.DeleteFunc(lines, dumped.MatchString)
}

func (r *rule) cause(d *api.Daemon, line string, found []int, before []string) Cause {
	expand := func(text string) string { return fill(string(r.line.ExpandString(nil, text, line, found)), d) }
	c := Cause{Reason: r.reason, Message: expand(r.say), Next: expand(r.next)}
	if before := Telling(before); r.reason == api.ReasonCrashed && before != "" {
		c.Message += "; it wrote before: " + before
	}
	if r.reason == api.ReasonPortInUse {
		c.Port = expand("$1")
	}
	return c
}

func fill(text string, d *api.Daemon) string {
	kind := strings.TrimPrefix(d.Spec.Type, "ceph-")
	entity := kind + "." + d.Spec.ID
	if kind == "rgw" || kind == "rbd-mirror" {
		entity = "client." + entity
	}
	return strings.NewReplacer("{host}", d.Spec.Host, "{name}", kind+"."+d.Spec.ID, "{entity}", entity).Replace(text)
}
