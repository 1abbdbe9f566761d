package actiontest

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Handler stands for something that actions work on. It remembers what has taken effect, as the world does when a leader or
// an agent dies: share one between those that follow each other. Its functions may be set before use.
type Handler struct {
	K action.Kind
	// OnCheck, OnStep and OnUndo decide what a call says; nil means yes, and done. What a step that is done, or was undone,
	// did is noted before they are called.
	OnCheck func(a *api.Action) error
	OnStep  func(ctx context.Context, a *api.Action, step string) (action.Progress, error)
	OnUndo  func(ctx context.Context, a *api.Action, step string) (action.Progress, error)

	mu    sync.Mutex
	calls []string
	// there says which steps of which action have taken effect and were not taken back; effects counts how often they did.
	there   map[string]bool
	effects map[string]int
}

var _ action.Handler = (*Handler)(nil)

// Kind implements action.Handler.
func (h *Handler) Kind() action.Kind { return h.K }

// Check implements action.Handler.
func (h *Handler) Check(_ context.Context, a *api.Action) error {
	h.note("check " + a.Name)
	if h.OnCheck != nil {
		return h.OnCheck(a)
	}
	return nil
}

// Step implements action.Handler. What is so already is not done again.
func (h *Handler) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	h.note("step " + a.Name + " " + step)
	p := action.Progress{Done: true, Message: step + " is done"}
	var err error
	if h.OnStep != nil {
		p, err = h.OnStep(ctx, a, step)
	}
	if err == nil && p.Done {
		h.effect(a.Name+" "+step, true)
	}
	return p, err
}

// Undo implements action.Handler.
func (h *Handler) Undo(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	h.note("undo " + a.Name + " " + step)
	p := action.Progress{Done: true, Message: step + " is undone"}
	var err error
	if h.OnUndo != nil {
		p, err = h.OnUndo(ctx, a, step)
	}
	if err == nil && p.Done {
		h.effect(a.Name+" "+step, false)
	}
	return p, err
}

func (h *Handler) note(call string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
}

func (h *Handler) effect(what string, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there == nil {
		h.there, h.effects = map[string]bool{}, map[string]int{}
	}
	if there && !h.there[what] {
		h.effects[what]++
	}
	h.there[what] = there
}

// Calls returns all calls so far, such as "step restart-1 stop".
func (h *Handler) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// There says whether a step of an action has taken effect and was not taken back.
func (h *Handler) There(name, step string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.there[name+" "+step]
}

// Effects counts how often a step of an action took effect.
func (h *Handler) Effects(name, step string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.effects[name+" "+step]
}
