package linear

// The operations on a lock, which is a Lease with a fence of the same name.
type (
	// Write puts the Lease with this mark and holder in the place of the one with the mark Over.
	Write struct{ Over, Mark, Holder string }
	// Act writes something else under the fence of a holder.
	Act struct{ Holder string }
	// Look reads the Lease; its answer is the Lock.
	Look struct{}
)

// Lock is what counts of the Lease: a mark that each write of it changes, and the holder.
type Lock struct{ Mark, Holder string }

// StepLock is the model: a Lease is written in the place of the version that was read or not at all, and at each moment its holder
// alone can act.
func StepLock(s Lock, input, answer any) []Lock {
	can, next := true, s
	switch in := input.(type) {
	case Look:
		if can = answer == any(s); can {
			answer = Done{}
		}
	case Write:
		can, next = s.Mark == in.Over, Lock{in.Mark, in.Holder}
	case Act:
		can = s.Holder == in.Holder
	}
	switch answer.(type) {
	case Done:
		if !can {
			return nil
		}
		return []Lock{next}
	case Unknown:
		if can {
			return []Lock{s, next}
		}
	default: // refused: only where it was not allowed
		if can {
			return nil
		}
	}
	return []Lock{s}
}
