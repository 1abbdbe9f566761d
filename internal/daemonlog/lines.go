package daemonlog

import (
	"strings"
	"time"
)

// Young leaves out the lines before the first one that is at least as young as since. A line
// without a time is of the moment of the one before.
func Young(text string, since time.Time) string {
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		if t, ok := TimeOf(line); ok && !t.Before(since) {
			return text[at:]
		}
		at += len(line) + 1
	}
	return ""
}

// Last are the last lines of a text; all of them if n is negative.
func Last(text string, n int) string {
	if n < 0 {
		return text
	}
	end := len(strings.TrimSuffix(text, "\n"))
	for ; n > 0 && end >= 0; n-- {
		end = strings.LastIndexByte(text[:end], '\n')
	}
	switch {
	case end < 0:
		return text
	case end == len(strings.TrimSuffix(text, "\n")):
		return ""
	}
	return text[end+1:]
}

// TimeOf is the time that a line begins with, as daemons of Ceph, GlusterFS and NFS-Ganesha write
// it.
func TimeOf(line string) (time.Time, bool) {
	words := strings.Fields(line[:min(len(line), 64)])
	for n, layout := range []string{
		"", "2006-01-02T15:04:05.999999-0700", "02/01/2006 15:04:05",
		"[2006-01-02 15:04:05.999999 -0700]",
	} {
		if n > 0 && len(words) >= n {
			if at, err := time.Parse(layout, strings.Join(words[:n], " ")); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}
