package gluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Bounds of the groups of options in a report. GlusterFS has seven, of at most 800 bytes (10.3).
const (
	maxGroups    = 64
	maxGroupSize = 4 << 10
	maxGroupsAll = 32 << 10
)

// groupsDir is where a glusterd reads groups of options.
func groupsDir(l *service.Local) string { return filepath.Join(l.Data, "state", "groups") }

// groups are the groups of options that a glusterd has, by name. A group is reported as a whole or not
// at all; problem says why some are not.
func groups(l *service.Local) (all map[string]map[string]string, problem string) {
	files, err := os.ReadDir(groupsDir(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Sprintf("cannot list the groups of options: %v", err)
	}
	all = map[string]map[string]string{}
	var left []string
	size := 0
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		text, err := groupText(filepath.Join(groupsDir(l), f.Name()))
		if size += len(text); err == nil && (len(all) == maxGroups || size > maxGroupsAll) {
			err = errors.New("there are too many")
		}
		if err != nil {
			left = append(left, fmt.Sprintf("%s (%v)", f.Name(), err))
			continue
		}
		all[f.Name()] = glusterd.ParseGroup(text)
	}
	if len(left) > 0 {
		problem = fmt.Sprintf("cannot use groups of options in %s: %s", groupsDir(l), words.Few(left))
	}
	return all, problem
}

// groupText reads the file of a group.
func groupText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxGroupSize+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxGroupSize:
		return "", fmt.Errorf("its file is longer than %d bytes", maxGroupSize)
	}
	return strings.ToValidUTF8(string(text), ""), nil
}
