package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// fileBefore tells how a daemon was run before it was handed over, for a person who wants it so again.
const fileBefore = "run-before.json"

// runBefore is what stands in it.
type runBefore struct {
	*api.ForeignDaemon
	Command []string `json:"command,omitempty"`
	Enabled []string `json:"enabledUnits,omitempty"`
}

// writeBefore adds to what stands there the process, if it runs, and the units that are enabled; and returns all that was enabled, also by what an
// earlier try says that was cut off after it had disabled some.
func writeBefore(l *service.Local, p *api.ForeignDaemon, enabled []string) (*runBefore, error) {
	is, err := readBefore(l)
	if err != nil || p == nil && len(enabled) == 0 {
		return is, err
	}
	if p != nil {
		command, err := commandOf(p.PID)
		if err != nil {
			return nil, err
		}
		is.ForeignDaemon = p
		if len(command) > 0 {
			is.Command = command
		}
	}
	for _, unit := range enabled {
		if !slices.Contains(is.Enabled, unit) {
			is.Enabled = append(is.Enabled, unit)
		}
	}
	text, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	return is, atomicfile.Write(filepath.Join(l.Data, fileBefore), append(text, '\n'), 0o600)
}

// readBefore is what stands in the file; empty where there is none.
func readBefore(l *service.Local) (*runBefore, error) {
	path, is := filepath.Join(l.Data, fileBefore), &runBefore{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return is, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, is); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return is, nil
}

// commandOf is the command line of a process; empty where it has ended.
func commandOf(pid int32) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if len(b) == 0 && (err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)) {
		return nil, nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"), err
}
