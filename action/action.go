package action

import (
	"context"
	"errors"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ErrRefused is wrapped by the error of a Check that found the action impossible: it fails, and is not tried again.
var ErrRefused = errors.New("refused")

// whyRefused is the sentence for people alone: that the action was refused stands in its reason.
func whyRefused(err error) string { return strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ") }

// Mode says what may run beside an action of a kind. It is a property of the kind, never of a call. But for those that run
// beside anything, actions of one host never run side by side, whatever their modes.
type Mode string

// The modes.
const (
	// Shared: anything but an exclusive action may run beside it.
	Shared Mode = "Shared"
	// Rolling: no other rolling action of the same cluster may run beside it; for what takes redundancy away for a while.
	// An action on a host counts for all clusters that use the host; one that names neither cluster nor host counts for all.
	Rolling Mode = "Rolling"
	// Exclusive: nothing else of the same cluster runs beside it. Once one waits for its turn nothing that came later is
	// started before it, so it cannot starve.
	Exclusive Mode = "Exclusive"
	// Beside: it runs beside anything, also on the same host, and nothing waits for it. It is for the small steps of what is
	// under way anyway, such as the draining of a host.
	Beside Mode = "Beside"
)

// Kind describes one sort of operation.
type Kind struct {
	// Name is such as "host.drain".
	Name string
	// Summary says in a line what it does, for 'holdfast action kinds' and the docs.
	Summary  string
	Executor api.ActionExecutor
	Mode     Mode
	// Steps are the names of the steps, in order.
	Steps []string
	// Timeout and ExpiresAfter count where an Action says nothing; zero means 24 h.
	Timeout, ExpiresAfter time.Duration
	// Asks is set for a kind of which others are asked, when its turn has come, whether it may begin (Runner.Ask).
	Asks bool
	// Final is set for a kind of which nothing can be taken back: when a step is refused, or the action is cancelled or timed
	// out, it ends as it is.
	Final bool
	// KeepFor is how long an action is kept after its end. Zero: 7 days, and no more than 200 of all kinds.
	KeepFor time.Duration
}

// Progress is how far a step is.
type Progress struct {
	// Done is set when the step is complete, by the word of what it works on.
	Done bool
	// Message says in a sentence what goes on or what came of it; it must not change while nothing does.
	Message string
	// WaitsFor says in a sentence what has to happen first.
	WaitsFor string
	// Count of Total, in Unit, measures the step; Total zero means it cannot be measured.
	Count, Total int64
	Unit         string
	// Uneven is set where the pace so far says nothing of the rest, as where each part waits for somebody of its own: no end is estimated.
	Uneven bool
	// Output is what a step that reads something found, at most MaxOutput bytes, and Next where
	// that ends.
	Output, Next string
	// Recheck is when to look again; zero means one second, and up to half a minute in a step that takes long.
	Recheck time.Duration
}

// MaxOutput bounds the output of an action, in bytes.
const MaxOutput = 64 << 10

// Handler carries out one kind. Its methods may be called by several goroutines, for different actions.
//
// Every step may be called again after it was done in part or in whole: the record of its end may have been lost. A step
// that is not done yet returns how far it is and is called again; it does not block for what takes longer than seconds.
type Handler interface {
	Kind() Kind
	// Check looks whether the action can be carried out now. It is called when the action is accepted, and again directly
	// before the first step. An error that wraps ErrRefused says why not, in a sentence for people; any other is tried again.
	Check(ctx context.Context, a *api.Action) error
	// Step carries one step on. An error is tried again, with back-off, until the action times out; one that wraps
	// ErrRefused ends the action, and what was done is undone.
	Step(ctx context.Context, a *api.Action, step string) (Progress, error)
	// Undo takes back what a step did, or finishes it where stopping half-way would break something. It is called for each
	// step that was begun, the last one first, when the action is cancelled, timed out or was refused on its way.
	Undo(ctx context.Context, a *api.Action, step string) (Progress, error)
}
