package gluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// groupsDir is where a glusterd reads groups of options.
func groupsDir(l *service.Local) string { return filepath.Join(l.Data, "state", "groups") }

// groups are the groups of options that a glusterd has, by name.
func groups(l *service.Local) (map[string]map[string]string, error) {
	files, err := os.ReadDir(groupsDir(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("while listing the groups of options: %w", err)
	}
	all := map[string]map[string]string{}
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(groupsDir(l), f.Name()))
		if err != nil {
			return nil, fmt.Errorf("while reading a group of options: %w", err)
		}
		all[f.Name()] = glusterd.ParseGroup(string(text))
	}
	return all, nil
}
