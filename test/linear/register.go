package linear

// The operations on a register that only the leader of the moment may write.
type (
	// Lead makes a term that of the leader.
	Lead struct{ Term string }
	// Put writes under a term.
	Put struct{ Term, Value string }
	// Get reads; its answer is the value.
	Get struct{}
)

// Register is a register that only the leader of the moment may write: who leads, and what was written last.
type Register struct{ Term, Value string }

// StepRegister is the model: a write is done if and only if its term is that of the leader.
func StepRegister(s Register, input, answer any) []Register {
	switch in := input.(type) {
	case Lead:
		return EffectOf(s, Register{in.Term, s.Value}, true, answer)
	case Put:
		if answer == (Refused{}) && s.Term == in.Term {
			return nil
		}
		return EffectOf(s, Register{s.Term, in.Value}, s.Term == in.Term, answer)
	case Get:
		if answer == s.Value {
			return []Register{s}
		}
	}
	return nil
}

// Heard is this history of a register without the writes of which nobody heard whether they were done, and whose values, each of them
// written once, nobody read. It can be explained if and only if this one can: a write that nobody saw may as well not have been done.
// Each of them that is left would double what has to be looked at.
func Heard(r *Recording) *Recording {
	read := map[string]bool{}
	r.Count(func(in, answer any) bool {
		if value, ok := answer.(string); ok && in == (Get{}) {
			read[value] = true
		}
		return false
	})
	return r.Without(func(in, answer any) bool {
		p, ok := in.(Put)
		return ok && answer == (Unknown{}) && !read[p.Value]
	})
}
