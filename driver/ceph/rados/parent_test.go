package rados_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// parentEnv makes the test binary a program that dials and waits, for its parent to kill it.
const parentEnv = "RADOS_TEST_PARENT"

func beParent() {
	rados.Dial(rados.Config{FSID: testFSID, MonHost: "[v2:127.0.0.1:1]", Entity: "client.admin", Key: "AQ=="})
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range pids {
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		if strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			fmt.Println(filepath.Base(dir))
		}
	}
	select {}
}

// A child ends with its parent, also one that is stopped and would never see that its pipe was closed.
func TestChild_endsWithItsParent(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped %v", stopped), func(t *testing.T) {
			parent := exec.CommandContext(t.Context(), "/proc/self/exe")
			parent.Env = append(os.Environ(), parentEnv+"=1")
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if stopped {
				if err := syscall.Kill(child, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = parent.Wait()
			for deadline := time.Now().Add(10 * time.Second); alive(child); {
				if time.Now().After(deadline) {
					t.Fatalf("child %d outlives its parent", child)
				}
				time.Sleep(time.Millisecond) // between two looks at the condition
			}
		})
	}
}

// alive is false for a process that has ended, also while nobody has reaped it.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
