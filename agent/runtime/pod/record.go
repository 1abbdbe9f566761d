package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

const recordSuffix = ".json"

// record is what the next agent must know of a process beyond its pod, which may be gone by then.
// It is removed when the process was stopped.
type record struct {
	Process runtime.Process `json:"process"`
	// Pod is the UID of the last pod: while a process of it lives, no other pod is made.
	Pod types.UID `json:"pod,omitempty"`
	// Ended is set when that pod was seen to be gone.
	Ended bool `json:"ended,omitempty"`
	// Restarts counts the ends of pods before the last one, Ends the pods in a row that did not
	// stay.
	Restarts int           `json:"restarts"`
	Ends     int           `json:"ends"`
	LastExit *runtime.Exit `json:"lastExit,omitempty"`
	// Stopping is set from the moment at which Stop has asked for the end.
	Stopping bool `json:"stopping,omitempty"`
}

func recordPath(dir, name string) string { return filepath.Join(dir, name+recordSuffix) }

func (rec *record) write(dir string) error {
	text, err := json.MarshalIndent(rec, "", "  ")
	if err == nil {
		err = atomicfile.Write(recordPath(dir, rec.Process.Name), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("while recording the pod of %s: %w", rec.Process.Name, err)
	}
	return nil
}

func removeRecord(dir, name string) error {
	if err := atomicfile.Remove(recordPath(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("while removing the record of %s: %w", name, err)
	}
	return nil
}

// loadRecords reads all records. One that cannot be read is moved aside, so that it holds up no
// other.
func loadRecords(dir string, log *slog.Logger) []record {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+recordSuffix)) // the pattern is well-formed
	var recs []record
	for _, path := range paths {
		rec, err := readRecord(path)
		if err != nil {
			log.Error("a record of a pod cannot be read and is moved aside", "file", path, "error", err)
			_ = os.Rename(path, path+".damaged")
			continue
		}
		recs = append(recs, rec)
	}
	return recs
}

func readRecord(path string) (rec record, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err == nil && recordPath(filepath.Dir(path), rec.Process.Name) != path {
		err = fmt.Errorf("it belongs to another process, %q", rec.Process.Name)
	}
	return rec, err
}
