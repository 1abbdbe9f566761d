// Package damaged remembers that the files of a server's member of etcd are damaged, and moves them aside
// where the other servers have the data.
//
// The note lies in the data directory: it outlives the server, and 'holdfast doctor' reads it.
package damaged

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

const (
	// noteFile is the note, below the data directory.
	noteFile = "damaged.json"
	// prefix begins the name of the damaged files that were moved aside; the time follows.
	prefix = "etcd.damaged-"
	// again is within what time a second damage is not one more accident: the disk fails.
	again = 24 * time.Hour
	// keeps is how many damaged copies stay. One is as large as a database.
	keeps = 2
)

// Note says what is, or was, damaged.
type Note struct {
	Time time.Time `json:"time"`
	// File is what is damaged, below the directory of the member; empty where etcd ended and did not say in which file.
	File    string `json:"file,omitempty"`
	Problem string `json:"problem"`
	// Kept is where the damaged files were moved to, below the data directory; empty while they are in their place.
	Kept string `json:"kept,omitempty"`
}

// Read returns the note; nil where there is none that matters: one of files that were moved aside ends with them.
func Read(dataDir string) (*Note, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("while reading what was damaged: %w", err)
	}
	n := &Note{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("while reading %s: %w", filepath.Join(dataDir, noteFile), err)
	}
	if n.Kept != "" && !exists(filepath.Join(dataDir, n.Kept)) {
		return nil, nil // A person has removed it; or the move was cut off, and the next start finds the damage again.
	}
	return n, nil
}

// Write writes the note down.
func (n *Note) Write(dataDir string) error {
	text, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dataDir, noteFile), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("while writing down what is damaged: %w", err)
	}
	return nil
}

// Mended removes the note of files that are still in their place: a member runs on them.
func Mended(dataDir string) error {
	if n, err := Read(dataDir); err != nil || n == nil || n.Kept != "" {
		return err
	}
	return atomicfile.Remove(filepath.Join(dataDir, noteFile))
}

// Before is where the files were moved that were damaged shortly before; empty where there are none.
func Before(dataDir string, now time.Time) string {
	for _, name := range slices.Backward(copies(dataDir)) {
		if info, err := os.Stat(filepath.Join(dataDir, name)); err == nil && now.Sub(movedAt(name, info)).Abs() < again {
			return filepath.Join(dataDir, name)
		}
	}
	return ""
}

// movedAt is by the name; a person may have written it anew.
func movedAt(name string, info fs.FileInfo) time.Time {
	at, err := time.Parse(stamp, name[len(prefix):])
	if err != nil {
		return info.ModTime()
	}
	return at
}

const stamp = "20060102T150405Z"

// copies are the damaged files that were moved aside, from the oldest on.
func copies(dataDir string) (names []string) {
	paths, _ := filepath.Glob(filepath.Join(dataDir, prefix+"*")) // the pattern is good
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}

// MoveAside moves the damaged files out of the way, and keeps them. Only who knows that the others
// have the data may call it.
func (n *Note) MoveAside(dataDir string, now time.Time) error {
	n.Kept = prefix + now.UTC().Format(stamp)
	if err := n.Write(dataDir); err != nil {
		return err
	}
	if err := atomicfile.Rename(filepath.Join(dataDir, "etcd"), filepath.Join(dataDir, n.Kept)); err != nil {
		return fmt.Errorf("while moving the damaged files aside: %w", err)
	}
	all := copies(dataDir)
	for _, old := range all[:max(0, len(all)-keeps)] {
		if err := atomicfile.RemoveAll(filepath.Join(dataDir, old)); err != nil {
			return fmt.Errorf("while removing an old damaged copy: %w", err)
		}
	}
	return nil
}

// String is what is damaged.
func (n *Note) String() string {
	if n.File == "" {
		return n.Problem
	}
	return "etcd/" + n.File + ": " + n.Problem
}

// NextStep is what a person does where no other server has the data. alone says that no other server is known.
func NextStep(dataDir string, alone bool) string {
	file := "FILE"
	if backups, err := backup.List(filepath.Join(dataDir, "snapshots")); err == nil && len(backups) > 0 {
		file = backups[len(backups)-1]
	}
	if alone {
		return fmt.Sprintf("stop this server ('systemctl stop holdfast') and run 'holdfast restore %s' here", file)
	}
	return fmt.Sprintf("start the other servers: when they have a quorum, this one gets their data by itself. "+
		"If they are lost for good, run 'holdfast restore --from-data' on a server that has its data; if none has, "+
		"stop this server and run 'holdfast restore %s' here", file)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
