package propose

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// Bounds of an answer; those of the schema are above them. With them an answer has some hundred
// kilobytes at most, whatever the size of the fleet: etcd takes 1.5 MiB in one request, and the
// Plan holds the manifest, too.
const (
	maxAnswer  = 900 << 10
	maxReport  = 192 << 10
	maxNotes   = 1024
	maxNote    = 4096
	maxDestroy = 96 << 10
)

// Answer is the proposal as a Plan keeps it.
func (p *Proposal) Answer() *api.PlanProposal {
	a := &api.PlanProposal{Notes: p.notes(), Report: p.text()}
	p.Basis.Store(a)
	plans.Store(p.Report.Changes, a)
	destroys := p.Destroys()
	a.Destroys, a.DestroysCount = plans.Stored(destroys, maxDestroy), int32(len(destroys))
	for _, less := range []func(){
		func() { a.Facts = "" },
		func() { a.Report = words.Cut(a.Report, maxReport/4) },
		func() { a.Changes = a.Changes[:len(a.Changes)/8] },
	} {
		if size(a) > maxAnswer {
			less()
		}
	}
	return a
}

// size is how many bytes an answer has in a Plan.
func size(a *api.PlanProposal) int {
	data, err := json.Marshal(a)
	if err != nil {
		panic(err) // our own types can be written
	}
	return len(data)
}

// text is what a person is shown, cut at a line.
func (p *Proposal) text() string {
	var b bytes.Buffer
	p.Report.Write(&b)
	text := b.String()
	if len(text) <= maxReport {
		return text
	}
	lines := strings.SplitAfter(text[:maxReport], "\n")
	last := text[strings.LastIndexByte(strings.TrimRight(text, "\n"), '\n')+1:]
	return strings.Join(lines[:len(lines)-1], "") + "  … and more than is shown here\n" + last
}

// notes are what whoever applies this has to know.
func (p *Proposal) notes() []api.PlanNote {
	var all []api.PlanNote
	add := func(reason api.PlanNoteReason, object string, messages ...string) {
		for _, m := range messages {
			all = append(all, api.PlanNote{Reason: reason, Object: object, Message: words.Cut(m, maxNote)})
		}
	}
	add(api.NoteHostAwaited, "", p.Early...)
	add(api.NoteRefused, "", p.unfit(p.Refused)...)
	add(api.NoteActionRefused, "", p.unfit(p.Foreseen)...)
	add(api.NoteNoHost, "", p.Hostless...)
	add(api.NoteNoCluster, "", p.Astray...)
	for _, cluster := range slices.Sorted(maps.Keys(p.Silent)) {
		add(api.NoteNoAnswer, cluster, p.Silent[cluster])
	}
	return all[:min(len(all), maxNotes)]
}

// unfit says of an action that puts one host in the place of another why that cannot be, in one
// sentence.
func (p *Proposal) unfit(reasons []string) []string {
	if p.Heir == nil || len(reasons) == 0 {
		return reasons
	}
	return []string{hosts.Unfit(p.Host, p.Heir, reasons).Error()}
}
