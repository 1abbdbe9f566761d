package ceph

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// writeBefore writes it down, where the process runs.
func writeBefore(l *service.Local, p *api.ForeignDaemon, enabled []string) (*runBefore, error) {
	is := &runBefore{ForeignDaemon: p, Enabled: enabled}
	if p == nil {
		return is, nil
	}
	command, err := commandOf(p.PID)
	if err != nil {
		return nil, err
	}
	is.Command = command
	text, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	return is, atomicfile.Write(filepath.Join(l.Data, fileBefore), append(text, '\n'), 0o600)
}

// commandOf is the command line of a process; empty where it has ended.
func commandOf(pid int32) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if len(b) == 0 && (err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)) {
		return nil, nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"), err
}
