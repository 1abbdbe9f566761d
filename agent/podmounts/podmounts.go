// Package podmounts finds out whether the pod of an agent has the directories of its node.
package podmounts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HasOfNode says which directory of the node the agent's pod lacks. With one of its own in that
// place the agent would not see the disks of the node, or make what no daemon's pod finds. Of proc it
// needs the node's first process. The directory with the data has to hand on what the agent mounts in
// it.
func HasOfNode(proc, dev, data, run string) error {
	if isOfNode(proc, "/") {
		return nil // it runs in no pod
	}
	for _, dir := range []string{dev, data, run} {
		if !isOfNode(proc, dir) {
			return fmt.Errorf("%[1]s in the agent's pod is not the node's %[1]s, so %[2]s: mount the hostPath %[1]s "+
				"there, as deploy/kubernetes/30-holdfast.yaml does", dir, lacking(dir == dev))
		}
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return fmt.Errorf("while finding out what the agent's pod has of its node: %w", err)
	}
	if !handsOn(string(mounts), data) {
		return fmt.Errorf("the node does not see what the agent mounts below %s, so a daemon would write beside its "+
			"disk: set mountPropagation: Bidirectional of the mount, as deploy/kubernetes/30-holdfast.yaml does", data)
	}
	return nil
}

func lacking(devices bool) string {
	if devices {
		return "the agent does not see the disks of the node"
	}
	return "the pods of daemons do not find what the agent makes there"
}

// isOfNode says whether a directory is the one that the node has at this place.
func isOfNode(proc, dir string) bool {
	own, err := os.Stat(dir)
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(proc, "1", "root", dir))
	return err == nil && os.SameFile(own, there)
}

// handsOn says whether mounts below a directory reach the node, by the table of mounts (proc(5)).
func handsOn(mountinfo, dir string) bool {
	best, shared := "", false
	for line := range strings.Lines(mountinfo) {
		fields, _, _ := strings.Cut(line, " - ")
		f := strings.Fields(fields)
		if len(f) < 6 || !within(dir, f[4]) || len(f[4]) < len(best) {
			continue
		}
		best, shared = f[4], strings.Contains(" "+strings.Join(f[6:], " "), " shared:")
	}
	return shared
}

func within(dir, of string) bool {
	return dir == of || strings.HasPrefix(dir, strings.TrimSuffix(of, "/")+"/")
}
