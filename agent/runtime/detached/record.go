package detached

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

const recordSuffix = ".json"

// record is what the next agent must know of a process. It is written before the program begins to run and at each
// change, and removed when the process was stopped.
type record struct {
	Process runtime.Process `json:"process"`
	// Identity is the process that runs, or the last that ran.
	Identity identity  `json:"identity"`
	Started  time.Time `json:"started"`
	Restarts int       `json:"restarts"`
	// Ends counts the ends in a row, as BackOff says.
	Ends     int           `json:"ends"`
	LastExit *runtime.Exit `json:"lastExit,omitempty"`
	// Ended is set when the end of the process was seen.
	Ended bool `json:"ended,omitempty"`
	// Stopping is set from the moment at which Stop is asked for: it is then carried through, also by another agent.
	Stopping bool `json:"stopping,omitempty"`
}

func recordPath(dir, name string) string { return filepath.Join(dir, name+recordSuffix) }

func readRecord(path string) (record, error) {
	var rec record
	b, err := os.ReadFile(path)
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, err
	}
	if recordPath(filepath.Dir(path), rec.Process.Name) != path {
		return rec, fmt.Errorf("it belongs to another process, %q", rec.Process.Name)
	}
	return rec, nil
}

func (rec *record) write(dir string) error {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(recordPath(dir, rec.Process.Name), b, 0o600)
}

func removeRecord(dir, name string) error {
	if err := os.Remove(recordPath(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(dir)
}
