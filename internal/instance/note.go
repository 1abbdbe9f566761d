package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// NoteFile has the Note of an agent, in its directory.
const NoteFile = "machine.json"

// Note is what an agent remembers on its disk, and so on each copy of it.
type Note struct {
	// Machine is the one on which the agent was last the only one of its host.
	Machine string `json:"machine"`
	// Self and Other are the instances that speak as one host; nil while there is one.
	Self  *Instance `json:"self,omitempty"`
	Other *Instance `json:"other,omitempty"`
}

// ReadNote returns nil where there is none, as before the first start.
func ReadNote(path string) (*Note, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var n Note
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("while reading %s: %w", path, err)
	}
	return &n, nil
}

// Moved says whether the disk was last used on another machine. A machine may have several ids, see
// FormerMachine.
func (n *Note) Moved(machine ...string) bool { return n != nil && !slices.Contains(machine, n.Machine) }
