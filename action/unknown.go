package action

import (
	"context"
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// unknown refuses actions of a kind.
type unknown struct {
	kind string
	why  error
}

// Unknown refuses an action of a kind that a newer leader gave to an older agent, which knows
// others.
func Unknown(kind, version string, known []Kind) Handler {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.Name
	}
	return unknown{kind, fmt.Errorf("%w: this agent (version %s) knows no kind %q, only %s: "+
		"upgrade Holdfast on this host", ErrRefused, version, kind, strings.Join(names, ", "))}
}

// Kind implements Handler.
func (u unknown) Kind() Kind { return Kind{Name: u.kind} }

// Check implements Handler.
func (u unknown) Check(context.Context, *api.Action) error { return u.why }

// Step implements Handler.
func (u unknown) Step(context.Context, *api.Action, string) (Progress, error) {
	return Progress{}, u.why
}

// Undo implements Handler.
func (u unknown) Undo(context.Context, *api.Action, string) (Progress, error) {
	return Progress{}, u.why
}
