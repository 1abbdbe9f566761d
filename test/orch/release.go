// Package orch runs ceph-mon and ceph-mgr of several releases of Ceph, whose 'ceph orch' is
// answered by Holdfast's own relay and server on a cluster that is made up.
package orch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service/mgrmodules"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
)

// Release is a running mon and mgr of a release of Ceph, in namespaces of their own.
type Release struct {
	t testing.TB
	// root is where the release is unpacked; "/" is this machine's own.
	root string
	// Dir has the data, at the same path inside and outside, and RunDir the sockets.
	Dir, RunDir string
	// keeper holds the namespaces: a process that sleeps in them.
	keeper *exec.Cmd
}

// limit bounds each command of Ceph, and each wait for something.
const limit = time.Minute

// Start starts a mon and a mgr from a root. They are gone when the test ends.
func Start(t testing.TB, root string) *Release {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-orch-") // short enough for the paths of sockets
	if err != nil {
		t.Fatal(err)
	}
	r := &Release{t: t, root: root, Dir: dir, RunDir: filepath.Join(dir, "run")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{"run", "mon", "mgr"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.enter()
	if err := mgrmodules.Make(root, r.path("mgr"), r.RunDir); err != nil {
		t.Fatal(err)
	}
	r.write("ceph.conf", r.conf())
	r.found()
	r.run("ceph-mon", "-i", "a")
	r.run("ceph-mgr", "-i", "x")
	return r
}

func (r *Release) path(name string) string { return filepath.Join(r.Dir, name) }

func (r *Release) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// enter makes the namespaces: a network with nothing but loopback, and mounts with what programs in
// the root need.
func (r *Release) enter() {
	r.t.Helper()
	script := "set -e; ip link set lo up\n"
	if r.root != "/" {
		script += `for d in dev proc sys; do mount --rbind /$d "$1/$d"; done` + "\n"
		script += `mkdir -p "$1$2"; mount --bind "$2" "$1$2"` + "\n"
	}
	script += "echo ready; exec sleep infinity"
	ctx := context.WithoutCancel(r.t.Context())
	r.keeper = exec.CommandContext(ctx, "unshare", "--mount", "--net", "sh", "-c", script, "sh", r.root, r.Dir)
	r.keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := r.keeper.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	var errs bytes.Buffer
	r.keeper.Stderr = &errs
	if err := r.keeper.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.leave)
	if _, err := out.Read(make([]byte, len("ready\n"))); err != nil {
		_ = r.keeper.Wait()
		r.t.Fatalf("making namespaces for %s: %v: %s", r.root, err, errs.String())
	}
}

// leave ends what runs in the namespaces, which go with the last of it.
func (r *Release) leave() {
	_ = r.keeper.Process.Kill()
	_ = r.keeper.Wait()
	if r.root != "/" {
		_ = os.RemoveAll(filepath.Join(r.root, r.Dir))
	}
}

// command is a program of the release, in the namespaces.
func (r *Release) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	all := []string{fmt.Sprintf("--target=%d", r.keeper.Process.Pid), "--mount", "--net", "chroot", r.root, name}
	return exec.CommandContext(ctx, "nsenter", append(append(all, args...), "-c", r.path("ceph.conf"))...)
}

// run runs a daemon until the test ends.
func (r *Release) run(name string, args ...string) {
	r.t.Helper()
	cmd := r.command(context.Background(), name, append([]string{"-f"}, args...)...)
	log, err := os.Create(r.path(name + ".log"))
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && r.t.Failed() {
			r.t.Logf("---- %s\n%s", log.Name(), text[max(0, len(text)-4000):])
		}
	})
}

// must runs a program of the release to its end.
func (r *Release) must(name string, args ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if out, err := r.command(ctx, name, args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

const (
	fsid    = "7f1d5c3e-0000-4000-8000-000000000001"
	address = "[v2:127.0.0.1:3300,v1:127.0.0.1:6789]"
)

// conf is a ceph.conf in which options for a quick cluster stand beside those of the driver.
func (r *Release) conf() string {
	mon, mgr := map[string]string{}, map[string]string{}
	orch.MonOptions(mon)
	orch.MgrOptions(mgr)
	lines := []string{
		"[global]", "fsid = " + fsid, "mon_host = " + address, "keyring = " + r.path("keyring"),
		"log_to_stderr = true", "err_to_stderr = true", "log_file =", "run_dir = " + r.Dir,
		"mon_data_avail_warn = 1", "mon_data_avail_crit = 1", "paxos_propose_interval = 0.05",
		"[mon]", "mon_data = " + r.path("mon"), "admin_socket = " + r.path("mon.asok"), "pid_file = " + r.path("mon.pid"),
		"[mgr]", "mgr_data = " + r.path("mgr"), "admin_socket = " + r.path("mgr.asok"), "pid_file = " + r.path("mgr.pid"),
		"mgr_tick_period = 1",
	}
	for option, value := range mgr {
		lines = append(lines, option+" = "+strings.ReplaceAll(value, "${DATA}", r.path("mgr")))
	}
	lines = append(lines, "[mon.a]")
	for option, value := range mon {
		lines = append(lines, option+" = "+value)
	}
	return strings.Join(lines, "\n") + "\n"
}

// found makes the store of the mon, with the keys of the release's own kind.
func (r *Release) found() {
	r.t.Helper()
	keyring := r.path("keyring")
	var all []string
	for _, of := range []string{"mon", "osd", "mds", "mgr"} {
		all = append(all, "--cap", of, "allow *")
	}
	r.must("ceph-authtool", append([]string{"-C", keyring, "--gen-key", "-n", "mon."}, all[:3]...)...)
	r.must("ceph-authtool", append([]string{keyring, "--gen-key", "-n", "client.admin"}, all...)...)
	r.must("ceph-authtool", append([]string{keyring, "--gen-key", "-n", "mgr.x"}, all...)...)
	r.must("monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", address, r.path("monmap"))
	r.must("ceph-mon", "--mkfs", "-i", "a", "--monmap", r.path("monmap"), "--keyring", keyring)
}

// Ceph runs the client, and returns what it writes; an error has its complaint.
func (r *Release) Ceph(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := r.command(ctx, "ceph", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("ceph %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// Await waits until something is so.
func (r *Release) Await(what string, is func() error) {
	r.t.Helper()
	await(r.t, what, is)
}

func await(t testing.TB, what string, is func() error) {
	t.Helper()
	for end := time.Now().Add(2 * limit); ; time.Sleep(100 * time.Millisecond) {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s: %v", what, err)
		}
	}
}
