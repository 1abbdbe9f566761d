package rados_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// mon is a real ceph-mon, alone in its cluster, on loopback.
type mon struct {
	t    *testing.T
	cfg  rados.Config
	dir  string
	proc *exec.Cmd
}

const testFSID = "5f0c3a3e-7f6c-4b3f-9a51-0d8f6f3f1c11"

// newMon makes a mon's store; start runs it.
func newMon(t *testing.T) *mon {
	t.Helper()
	port := freePort(t)
	m := &mon{t: t, dir: t.TempDir()}
	address := fmt.Sprintf("v2:127.0.0.1:%d", port)
	m.cfg = rados.Config{FSID: testFSID, MonHost: "[" + address + "]", Entity: "client.admin", Key: m.run("ceph-authtool", "--gen-print-key")}
	m.write("keyring", "[mon.]\n\tkey = "+m.run("ceph-authtool", "--gen-print-key")+"\n\tcaps mon = \"allow *\"\n"+
		"[client.admin]\n\tkey = "+m.cfg.Key+"\n\tcaps mon = \"allow *\"\n\tcaps mgr = \"allow *\"\n\tcaps osd = \"allow *\"\n")
	m.write("ceph.conf", "[global]\nfsid = "+testFSID+"\nmon_host = "+m.cfg.MonHost+"\nmon_election_timeout = 0.5\n"+
		"[mon]\nmon_data = "+m.path("store")+"\nrun_dir = "+m.dir+"\nadmin_socket = "+m.path("asok")+"\nlog_file = "+m.path("log")+"\n"+
		"mon_cluster_log_file = "+m.path("cluster.log")+"\n")
	m.run("monmaptool", "--create", "--fsid", testFSID, "--addv", "a", m.cfg.MonHost, "--set-min-mon-release", "16", m.path("monmap"))
	m.run("ceph-mon", "-c", m.path("ceph.conf"), "--mkfs", "-i", "a", "--monmap", m.path("monmap"), "--keyring", m.path("keyring"))
	return m
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (m *mon) path(name string) string { return filepath.Join(m.dir, name) }

func (m *mon) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mon) run(name string, args ...string) string {
	m.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start runs the mon until the test ends.
func (m *mon) start() {
	m.t.Helper()
	m.proc = exec.Command("ceph-mon", "-f", "-i", "a", "-c", m.path("ceph.conf"))
	m.proc.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.proc.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = m.proc.Process.Kill()
		_ = m.proc.Wait()
	})
}

func (m *mon) signal(sig syscall.Signal) {
	m.t.Helper()
	if err := m.proc.Process.Signal(sig); err != nil {
		m.t.Fatal(err)
	}
}

// halt stops a child of this process, and returns when all its threads are stopped: until then some of them go on.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED, nil); err != nil {
		t.Fatalf("while waiting for process %d to be stopped: %v", pid, err)
	}
}
