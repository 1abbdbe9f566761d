package linear

// Answers that operations share.
type (
	// Done is the answer of an operation that was done.
	Done struct{}
	// Refused is that of a write whose fence is lost.
	Refused struct{}
	// Overtaken is that of a write in the place of a version that is not there any more.
	Overtaken struct{}
	// Unknown is the answer of an operation of which nobody heard whether it was done. It may have its effect at any time later.
	Unknown struct{}
	// Moot is the answer of an operation that says nothing: a look without an answer, or a write that was certainly not done. It is
	// not recorded.
	Moot struct{}
)

// EffectOf returns what there may be after an operation that can be done or not in a state, and whose refusal says nothing.
func EffectOf[S any](was, is S, can bool, answer any) []S {
	switch {
	case answer == (Done{}) && can:
		return []S{is}
	case answer == (Done{}):
		return nil
	case answer == (Unknown{}) && can:
		return []S{was, is}
	default:
		return []S{was}
	}
}
