// Package linear records what concurrent clients of the API ask and what they are answered, on a way that faults befall, and has
// porcupine look for an order of all operations, one after the other, that explains every answer (linearizability, Herlihy and
// Wing 1990). A model says what one operation may answer and leave behind.
package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Step says which states there may be after an operation in a state with an answer; none when the answer cannot be. Of an
// operation with an unknown answer (Unknown) it returns the states with and without its effect. States are compared with ==.
type Step[S comparable] func(state S, input, answer any) []S

// Recording is a history under way. It is safe for concurrent use.
type Recording struct {
	began time.Time

	mu         sync.Mutex
	operations []porcupine.Operation
}

// Record begins a history.
func Record() *Recording { return &Recording{began: time.Now()} }

// Do carries out one operation of a client and records it with its answer, which it returns. A moot one is not recorded.
func (r *Recording) Do(client int, input any, do func() any) any {
	call := time.Since(r.began)
	answer := do()
	if answer == (Moot{}) {
		return answer
	}
	o := porcupine.Operation{ClientId: client, Input: input, Call: int64(call), Output: answer, Return: int64(time.Since(r.began))}
	if answer == (Unknown{}) {
		o.Return = math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations = append(r.operations, o)
	return answer
}

// Beside begins another history by the same clock.
func (r *Recording) Beside() *Recording { return &Recording{began: r.began} }

// With is this history with all that is in another one, of the same clock.
func (r *Recording) With(other *Recording) *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	return &Recording{began: r.began, operations: slices.Concat(r.operations, other.operations)}
}

// Without is this history without the operations that are not wanted.
func (r *Recording) Without(unwanted func(input, answer any) bool) *Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(r.operations), func(o porcupine.Operation) bool { return unwanted(o.Input, o.Output) })
	return &Recording{began: r.began, operations: left}
}

// Any wants all operations.
func Any(_, _ any) bool { return true }

// Count is how many operations were recorded that are wanted.
func (r *Recording) Count(wanted func(input, answer any) bool) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.operations {
		if wanted(o.Input, o.Output) {
			n++
		}
	}
	return n
}

// checkTimeout bounds a check.
const checkTimeout = 30 * time.Second

// ErrUndecided is the error of a check that took too long. It has said nothing, and counts as failed.
var ErrUndecided = errors.New("nobody can say in time whether the history can be explained")

// Check returns an error unless there is an order that explains everything. Operations on different objects are independent;
// object, which may be nil, names that of an operation.
func Check[S comparable](r *Recording, initial S, step Step[S], object func(input any) string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(state, input, answer any) (next []any) {
			for _, s := range step(state.(S), input, answer) {
				next = append(next, s)
			}
			return next
		},
	}
	for name, operations := range split(r.operations, object) {
		result, info := porcupine.CheckOperationsVerbose(model.ToModel(), operations, checkTimeout)
		if result == porcupine.Unknown {
			return fmt.Errorf("%q with %d operations: %w", name, len(operations), ErrUndecided)
		}
		if result != porcupine.Ok {
			return fmt.Errorf("the history of %q with %d operations is %s; the longest part of it that can be explained ends with:\n%s",
				name, len(operations), result, lastOf(info, operations))
		}
	}
	return nil
}

func split(all []porcupine.Operation, object func(any) string) map[string][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, o := range all {
		name := ""
		if object != nil {
			name = object(o.Input)
		}
		parts[name] = append(parts[name], o)
	}
	return parts
}

// lastOf shows what was around the place where no order was found.
func lastOf(info porcupine.LinearizationInfo, operations []porcupine.Operation) string {
	longest := 0
	for _, partition := range info.PartialLinearizations() {
		for _, p := range partition {
			longest = max(longest, len(p))
		}
	}
	var b strings.Builder
	for i := max(0, longest-5); i < min(len(operations), longest+5); i++ {
		o := operations[i]
		fmt.Fprintf(&b, "  client %d, %s to %s: %T%+v -> %T%+v\n", o.ClientId, time.Duration(o.Call), time.Duration(o.Return), o.Input, o.Input, o.Output, o.Output)
	}
	return b.String()
}
