package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sysAdmin is the number of CAP_SYS_ADMIN in the kernel: the right to mount, which a pod has that
// is privileged.
const sysAdmin = 21

// mayServe says why the agent's pod lacks a right that it needs, as one that a policy of the
// platform has taken away. Without it the agent would report a node without disks, and fail at each
// daemon.
func mayServe(proc string, self int) error {
	text, err := os.ReadFile(filepath.Join(proc, "self", "status"))
	if err != nil {
		return fmt.Errorf("while finding out what the agent may do: %w", err)
	}
	if !mayMount(string(text)) {
		return errors.New("the agent's pod is not privileged, so the agent can neither mount nor see disks: " +
			"set securityContext.privileged of its container, as deploy/kubernetes/30-holdfast.yaml does")
	}
	if self == 1 {
		return errors.New("the agent's pod does not see the processes of its node, so the agent could start a " +
			"daemon twice: " +
			"set hostPID of the pod, as deploy/kubernetes/30-holdfast.yaml does")
	}
	return nil
}

// mayMount says whether a process has CAP_SYS_ADMIN by its status in /proc.
func mayMount(status string) bool {
	for line := range strings.Lines(status) {
		if text, is := strings.CutPrefix(line, "CapEff:"); is {
			set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return err == nil && set&(1<<sysAdmin) != 0
		}
	}
	return false
}
