// Package lastwords finds in what a daemon wrote last why it ended, by rules for each type: a reason, a sentence and
// the next step. What no rule knows is left to the reader, who gets the last telling line.
package lastwords

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
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

// Of says why a daemon ended, by how and when it ended ("exit code 1", "signal: killed") and the end of its log, which
// may begin in an earlier run and go on in a later one. Nobody is blamed for the end of a process by what it wrote long
// before, and a process that was killed by others did not write why.
func Of(d *api.Daemon, reason string, at time.Time, log string) Cause {
	if reason == "signal: killed" {
		return Cause{
			api.ReasonKilled, "it was killed by a user, or by the kernel when memory ran out",
			fill("look for 'Out of memory' in 'dmesg' on host {host}", d), "",
		}
	}
	if reason == runtime.OutOfMemory {
		return Cause{
			api.ReasonKilled, "the kernel killed it because memory ran out",
			fill("give it more memory, or move other programs from host {host}", d), "",
		}
	}
	if strings.HasPrefix(reason, runtime.NotStarted) {
		return ofStart(d, reason)
	}
	written := lastRun(strings.Split(log, "\n"), at)
	if reason == "exit code 0" || reason == "signal: terminated" {
		return Cause{Message: Telling(written)}
	}
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
	return Cause{Message: Telling(written)}
}

var (
	// banner is what a daemon of Ceph writes first.
	banner = regexp.MustCompile(` ceph version .*, process ceph-`)
	// dumped begins the lines of what Ceph dumps when it crashes: all that it wrote before, and more.
	dumped = regexp.MustCompile(`^\s*-\d+> `)
)

// telling is how long before its end a process may write why: a mon tries its port for 15 s.
const telling = time.Minute

// endOfDump is the last line of what Ceph dumps.
const endOfDump = "--- end dump of recent events ---"

// lastRun are the lines that the process wrote which ended at a time, of those with a time the ones
// of its last minute, without what it dumped. A process that ends before it writes times, such as
// at its ceph.conf, has the lines after the last one with a time.
func lastRun(lines []string, end time.Time) (last []string) {
	in := true // lines without a time are of the same moment as the one before
	early, late := []string(nil), false
	for _, line := range lines {
		if dumped.MatchString(line) {
			continue
		}
		if early = append(early, line); line == endOfDump {
			early = nil
		}
		if at, err := time.Parse("2006-01-02T15:04:05.999999-0700", firstWord(line)); err == nil {
			in, early, late = !at.After(end) && end.Sub(at) <= telling, nil, at.After(end)
			if in && banner.MatchString(line) {
				last = nil
			}
		}
		if in {
			last = append(last, line)
		}
	}
	if len(last) == 0 && !late {
		return early
	}
	return last
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
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
