package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// The files in a volume's directory. Keys have a file of their own, which nobody else may read.
const (
	stateFile = "stage.json"
	keysFile  = "keys.json"
)

// state is what is kept of a volume while it is staged.
type state struct {
	ID      string            `json:"id"`
	Staging string            `json:"staging"`
	FSType  string            `json:"fsType,omitempty"`
	Options []string          `json:"options,omitempty"`
	Context map[string]string `json:"context,omitempty"`
}

func (s *Server) dir(id string) string { return filepath.Join(s.cfg.Dir, backend.Dir(id)) }

// save writes down a volume before anything is done for it.
func save(v backend.Volume) error {
	if err := atomicfile.MkdirAll(v.Dir, 0o700); err != nil {
		return err
	}
	if err := write(filepath.Join(v.Dir, keysFile), v.Secrets); err != nil {
		return err
	}
	return write(filepath.Join(v.Dir, stateFile), state{v.ID, v.Staging, v.FSType, v.Options, v.Context})
}

func write(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o600)
}

// load reads what save wrote. The state is written last and removed first (see forget), so there is
// no state without keys.
func load(dir string) (v backend.Volume, found bool, err error) {
	var s state
	if found, err := read(filepath.Join(dir, stateFile), &s); err != nil || !found {
		return v, false, err
	}
	if _, err := read(filepath.Join(dir, keysFile), &v.Secrets); err != nil {
		return v, false, err
	}
	v.ID, v.Staging, v.FSType, v.Options, v.Context, v.Dir = s.ID, s.Staging, s.FSType, s.Options, s.Context, dir
	v.Handle, found = backend.Parse(s.ID)
	return v, found, nil
}

func read(path string, into any) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("reading what is known of a volume: %w", err)
	}
	return true, nil
}

// forget removes what is known of a volume of which nothing is left.
func forget(dir string) error {
	if err := atomicfile.Remove(filepath.Join(dir, stateFile)); err != nil {
		return err
	}
	return atomicfile.RemoveAll(dir)
}
