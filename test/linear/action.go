package linear

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// What persons and leaders do with an action.
type (
	// Wish is what a person writes into the spec: that it is granted, rejected or cancelled.
	Wish struct {
		Name     string
		Approval api.Approval
		Want     api.ActionWant
	}
	// Move is a status that a leader writes in the place of one in state From.
	Move struct {
		Name     string
		From, To api.ActionState
	}
	// See reads an action; its answer is the Action.
	See struct{ Name string }
	// Denied is the API's word that a wish comes too late.
	Denied struct{}
)

// Action is what counts of an action.
type Action struct {
	State    api.ActionState
	Approval api.Approval
	Want     api.ActionWant
}

// ActionOf is the action that an operation is about.
func ActionOf(input any) string {
	switch in := input.(type) {
	case Wish:
		return in.Name
	case Move:
		return in.Name
	default:
		return in.(See).Name
	}
}

// Wishes are what a person may want of an action: that it is granted, rejected, or cancelled.
func Wishes(name string) []Wish {
	return []Wish{{Name: name, Approval: api.ApprovalGranted}, {Name: name, Approval: api.ApprovalRejected}, {Name: name, Want: api.WantCancelled}}
}

// StepAction is the model of an action: the rules of docs/how-to/actions.md.
func StepAction(s Action, input, answer any) []Action {
	switch in := input.(type) {
	case Wish:
		can, next := s.grants(in)
		if answer == (Denied{}) && can {
			return nil
		}
		return EffectOf(s, next, can, answer)
	case Move:
		next := s
		next.State = in.To
		return EffectOf(s, next, s.State == in.From && s.may(in.To), answer)
	case See:
		if answer == s {
			return []Action{s}
		}
	}
	return nil
}

// StepWatched is StepAction of an action that leaders move unseen: before each operation they may have done what they may.
func StepWatched(s Action, input, answer any) (next []Action) {
	told := map[Action]bool{}
	for _, from := range s.reach() {
		for _, to := range StepAction(from, input, answer) {
			if !told[to] {
				told[to] = true
				next = append(next, to)
			}
		}
	}
	return next
}

// reach are the states that leaders may take an action to, itself first.
func (s Action) reach() []Action {
	all, known := []Action{s}, map[api.ActionState]bool{s.State: true}
	for i := 0; i < len(all); i++ {
		for _, to := range []api.ActionState{
			api.ActionPendingApproval, api.ActionPendingSchedule, api.ActionNew, api.ActionRunning, api.ActionDone, api.ActionCancelled, api.ActionFailed,
		} {
			if next := all[i]; (next.may(to) || next.fails(to)) && !known[to] {
				known[to] = true
				next.State = to
				all = append(all, next)
			}
		}
	}
	return all
}

// fails says whether the next state may be that a step failed.
func (s Action) fails(to api.ActionState) bool {
	return to == api.ActionFailed && (s.State == api.ActionNew || s.State == api.ActionRunning)
}

// grants says whether a wish can be granted now, and what is so then.
func (s Action) grants(w Wish) (can bool, next Action) {
	next = s
	if w.Want != "" {
		next.Want = w.Want
		return !s.State.Final() || s.Want == w.Want, next
	}
	next.Approval = w.Approval
	waits := s.State == "" || s.State == api.ActionPendingApproval
	return s.Approval == w.Approval || waits && s.Approval != api.ApprovalRejected, next
}

// may says whether the next state may be this one. What is not granted never gets its turn, what nobody cancelled or rejected is not
// cancelled, and what has ended stays as it is.
func (s Action) may(to api.ActionState) bool {
	unwanted := s.Want == api.WantCancelled || s.Approval == api.ApprovalRejected
	switch {
	case s.State.Final():
		return false
	case to == s.State:
		return true
	case s.State == "" || s.State == api.ActionPendingApproval:
		granted := s.Approval == api.ApprovalGranted && (to == api.ActionPendingSchedule || to == api.ActionNew)
		return to == api.ActionPendingApproval || granted || to == api.ActionCancelled && unwanted
	case s.State == api.ActionPendingSchedule:
		return to == api.ActionNew && s.Approval == api.ApprovalGranted || to == api.ActionCancelled && unwanted
	case s.State == api.ActionNew:
		return to == api.ActionRunning || to == api.ActionCancelled && unwanted
	default:
		return to == api.ActionDone || to == api.ActionCancelled && unwanted
	}
}
