package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// asksRelease says whether a program was started by the agent, which is of the server's process, to see which release is installed: it does
// that once a minute with each package, and no orchestration does.
func asksRelease(line string) bool {
	return strings.HasSuffix(line, " --version") || strings.HasSuffix(line, " -v")
}

// lookAtChildren is how often the processes of the server are looked at: none that does something ends within it.
const lookAtChildren = 5 * time.Millisecond

// unseen stands for processes that ended between two looks at them.
const unseen = "a process that was not seen"

// startedBy returns the command lines of the processes that a process starts for some time.
func startedBy(ctx context.Context, pid int, d time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return childrenAt(pid).followed(ctx)
}

// children are the processes that a process has at a moment, and the page faults of those that have ended.
type children struct {
	pid     int
	running []string
	faults  int64
}

func childrenAt(pid int) children { return children{pid, childrenOf(pid), faultsOfChildren(pid)} }

// followed returns the command lines of processes that were started since, until ctx ends. If none was seen, one that was too short for a look
// is told by what the kernel adds up of those that have ended: no program starts without a page fault.
func (c children) followed(ctx context.Context) []string {
	started := map[string]string{}
	for {
		for _, child := range childrenOf(c.pid) {
			if line := lineOf(child); line != "" && !slices.Contains(c.running, child) {
				started[child] = line // as it was seen last: a process bears its parent's at first
			}
		}
		if ctx.Err() != nil {
			break
		}
		pause(ctx, lookAtChildren)
	}
	if len(started) == 0 && faultsOfChildren(c.pid) > c.faults {
		return []string{unseen}
	}
	return slices.DeleteFunc(slices.Collect(maps.Values(started)), asksRelease)
}

func faultsOfChildren(pid int) int64 {
	u, _ := stat.Of(pid) // a process that has ended starts none
	return u.ChildFaults
}

// lineOf is the command line of a process, or empty when it has ended.
func lineOf(pid string) string {
	line, _ := os.ReadFile("/proc/" + pid + "/cmdline")
	return strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
}

// childrenOf lists the processes that a process has started and that run now.
func childrenOf(pid int) []string {
	var all []string
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // a process that has ended has no children
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
