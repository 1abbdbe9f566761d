package gluster

import (
	"github.com/holdfast-storage/holdfast/engine"
)

// Foresee is not written yet.
func (Driver) Foresee(before, after *engine.View, commands []engine.Command) any {
	return before.System
}
