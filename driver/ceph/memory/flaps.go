package memory

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Flap is one time that an OSD went down and came back: the epoch of Ceph's map at which it went down,
// and when the leader saw it back. The time is zero where that was not its own doing and does not
// count: it was stopped or restarted on purpose, or OSDs of other hosts were down, too.
type Flap struct {
	Epoch int
	At    time.Time
}

// FlapsOf reads the flaps of an OSD: "41@2026-01-02T03:04:05Z 57@…".
func FlapsOf(d *api.Daemon) []Flap {
	var all []Flap
	for word := range strings.FieldsSeq(Of(d, Flaps)) {
		epoch, at, _ := strings.Cut(word, "@")
		number, err := strconv.Atoi(epoch)
		when, _ := time.Parse(time.RFC3339, at) // none is zero
		if err == nil {
			all = append(all, Flap{number, when})
		}
	}
	return all
}

// FlapsText is what FlapsOf reads.
func FlapsText(all []Flap) string {
	var texts []string
	for _, f := range all {
		if f.At.IsZero() {
			texts = append(texts, strconv.Itoa(f.Epoch))
			continue
		}
		texts = append(texts, fmt.Sprintf("%d@%s", f.Epoch, f.At.UTC().Format(time.RFC3339)))
	}
	return strings.Join(texts, " ")
}
