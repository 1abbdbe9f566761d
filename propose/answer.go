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

// Bounds of the parts of an answer, whatever the size of the fleet.
const (
	maxReport  = 192 << 10
	maxNotes   = 64 << 10
	maxNote    = 4096
	maxDestroy = 96 << 10
)

// Room is how many bytes a Plan has at most: etcd takes 1.5 MiB in one request.
const Room = 1400 << 10

// Answer is the proposal as a Plan keeps it that has room for so many bytes. What does not fit is left out, first what is
// worth least; the digest and the numbers are always of everything.
func (p *Proposal) Answer(room int) *api.PlanProposal {
	a := &api.PlanProposal{Notes: p.notes(), Report: p.text()}
	p.Basis.Store(a)
	plans.Store(p.Report.Changes, a)
	destroys := p.Destroys()
	a.Destroys, a.DestroysCount = plans.Stored(destroys, maxDestroy), int32(len(destroys))
	for _, less := range []func(){
		func() { a.Facts = "" },
		func() { a.Report = cut(a.Report, maxReport/4) },
		func() { a.Changes = a.Changes[:len(a.Changes)/8] },
		func() { plans.Condense(a) },
		func() { a.Destroys = a.Destroys[:(len(a.Destroys)+7)/8] },
		func() { a.Report = cut(a.Report, maxReport/16) },
	} {
		if size(a) > room {
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

// text is what a person is shown.
func (p *Proposal) text() string {
	var b bytes.Buffer
	p.Report.Write(&b)
	return cut(b.String(), maxReport)
}

// cut leaves the beginning and the last line of a text of more than so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	lines := strings.SplitAfter(text[:most], "\n")
	last := text[strings.LastIndexByte(strings.TrimRight(text, "\n"), '\n')+1:]
	return strings.Join(lines[:len(lines)-1], "") + "  … and more\n" + last
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
	left := maxNotes
	return slices.DeleteFunc(all, func(n api.PlanNote) bool {
		left -= len(n.Message)
		return left < 0
	})
}

// unfit says of an action that puts one host in the place of another why that cannot be, in one
// sentence.
func (p *Proposal) unfit(reasons []string) []string {
	if p.Heir == nil || len(reasons) == 0 {
		return reasons
	}
	return []string{hosts.Unfit(p.Host, p.Heir, reasons).Error()}
}
