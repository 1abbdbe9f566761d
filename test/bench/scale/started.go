package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// asksRelease is the program that the agent, which is of the server's process, runs once a minute to see which release is installed. No
// orchestration starts it.
const asksRelease = "ceph-mon"

// lookAtChildren is how often the processes of the server are looked at: none that does something ends within it.
const lookAtChildren = 5 * time.Millisecond

// unseen stands for processes that ended between two looks at them.
const unseen = "a process that was not seen"

// startedBy returns the names of the processes that a process starts for some time. A process that was too short for a look is told by
// what the kernel adds up of those that have ended: no program starts without a page fault.
func startedBy(ctx context.Context, pid int, d time.Duration) []string {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	old, before := childrenOf(pid), faultsOfChildren(pid)
	started := map[string]string{}
	for ctx.Err() == nil {
		pause(ctx, lookAtChildren)
		for _, child := range childrenOf(pid) {
			if name := nameOf(child); name != "" && !slices.Contains(old, child) {
				started[child] = name // as it was seen last: a process bears its parent's name at first
			}
		}
	}
	if len(started) == 0 && faultsOfChildren(pid) > before {
		return []string{unseen}
	}
	var names []string
	for _, name := range started {
		if name != asksRelease {
			names = append(names, name)
		}
	}
	return names
}

func faultsOfChildren(pid int) int64 {
	u, _ := stat.Of(pid) // a process that has ended starts none
	return u.ChildFaults
}

// nameOf is what a process is called, or empty when it has ended.
func nameOf(pid string) string {
	name, _ := os.ReadFile("/proc/" + pid + "/comm")
	return strings.TrimSpace(string(name))
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
