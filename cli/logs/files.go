package logs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// File is a log on this host.
type File struct {
	// Process is NAMESPACE.NAME of its Daemon.
	Process string
	Path    string
}

// daemonsDir is where the agent of this host keeps its daemons; package agent says what is where.
func daemonsDir(dataDir string) string { return filepath.Join(dataDir, "agent", "daemons") }

func logDir(dataDir, process string) string {
	return filepath.Join(daemonsDir(dataDir), process, "log")
}

// pathOf is what the process of a daemon writes to.
func pathOf(dataDir, process string) string {
	return filepath.Join(logDir(dataDir, process), "daemon.log")
}

// All are the present logs of this host's daemons, also those that a program writes beside its output. Rotated ones are
// not among them.
func All(dataDir string) ([]File, error) {
	daemons, err := os.ReadDir(daemonsDir(dataDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("while looking for the logs of this host: %w", err)
	}
	var all []File
	for _, d := range daemons {
		found, err := filepath.Glob(filepath.Join(logDir(dataDir, d.Name()), "*.log"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				all = append(all, File{d.Name(), path})
			}
		}
	}
	return all, nil
}

// withoutKind is a name without "daemon/".
func withoutKind(name string) string {
	for _, kind := range []string{"daemon/", "daemons/", "dm/"} {
		name = strings.TrimPrefix(name, kind)
	}
	return name
}

// guess is the process on this host that a name means, where the API does not answer: by its Daemon's name, or as
// Ceph names it. It is empty where there is none.
func guess(dataDir, namespace, name string) string {
	name = withoutKind(name)
	for _, daemon := range []string{name, "ceph-" + strings.Replace(name, ".", "-", 1)} {
		process := namespace + "." + daemon
		if _, err := os.Stat(pathOf(dataDir, process)); err == nil {
			return process
		}
	}
	return ""
}
