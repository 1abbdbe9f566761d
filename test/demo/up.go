package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const (
	example    = "examples/ceph-demo.yaml"
	objectSize = 64 << 20
)

func up(ctx context.Context) error {
	binary, err := program()
	if err != nil {
		return err
	}
	if _, err := os.Stat(labDir); err == nil {
		return fmt.Errorf("the demo is there already (%s): remove it first with 'sudo make demo-down'", labDir)
	}
	err = hosts.Script(os.Stdout, func(t hosts.T) { demonstrate(ctx, t, binary) })
	if err != nil {
		return fmt.Errorf("%w\nThe hosts are left as they are, for you to look: their logs are %s/h*/logs. Remove them with 'sudo make demo-down'", err, labDir)
	}
	return nil
}

func demonstrate(ctx context.Context, t hosts.T, binary string) {
	start := time.Now()
	say("three hosts, each with an address and a disk of its own")
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1, Dir: labDir, Keep: true})
	for _, h := range lab.Hosts() {
		fmt.Printf("   %s  %s  %s\n", h.Name, h.IP, h.Disk(0).Path())
	}
	say("a server on each: holdfast server --init, then holdfast server --join TOKEN")
	h := home.Start(t, lab, binary)
	show(ctx, t, h, binary, "get", "hosts")

	say("holdfast apply -f %s --wait", example)
	spec, err := os.ReadFile(example)
	if err != nil {
		t.Fatalf("%v", err)
	}
	apply := lab.Host(1).Command(ctx, binary, "apply", "-f", "-", "--wait")
	apply.Stdin = strings.NewReader(string(spec))
	run1(t, apply)
	show(ctx, t, h, binary, "get", "storagestatus")

	say("what Ceph says itself: ceph -s")
	show(ctx, t, h, binary, "ceph", "shell", "--", "ceph", "-s")
	say("64 MiB written to Ceph and read back")
	writeAndRead(ctx, t, lab, binary)
	fmt.Printf("\nDone in %s. Next:\n%s", time.Since(start).Round(time.Second), whatNext)
}

const whatNext = `
  sudo bin/demo sh h1                                   a shell on the first host. There:
    holdfast status                                     the state of the cluster
    holdfast get daemons                                the daemons
    holdfast get clusterevents                          what has happened so far
    holdfast ceph shell -- ceph osd tree                Ceph's own tools
  sudo make demo-down                                   remove everything
`

func say(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }

// show runs a command of holdfast on the first host, on this terminal.
func show(ctx context.Context, t hosts.T, h *home.Home, binary string, args ...string) {
	run1(t, h.Lab.Host(1).Command(ctx, binary, args...))
}

func run1(t hosts.T, cmd *hosts.Cmd) {
	if cmd.Stdin == nil {
		cmd.Stdin = os.Stdin
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
}

// writeAndRead puts an object into Ceph with the stock client of one host and gets it with that of another.
func writeAndRead(ctx context.Context, t hosts.T, lab *hosts.Lab, binary string) {
	ceph := func(host int, args ...string) *hosts.Cmd {
		return lab.Host(host).Command(ctx, binary, append([]string{"ceph", "shell", "--"}, args...)...)
	}
	run1(t, ceph(1, "ceph", "osd", "pool", "create", "demo", "8"))
	run1(t, ceph(1, "ceph", "osd", "pool", "application", "enable", "demo", "demo"))
	random, err := os.Open("/dev/urandom")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer random.Close()
	written, read := sha256.New(), sha256.New()
	put := ceph(1, "rados", "--pool", "demo", "put", "object", "-")
	put.Stdin, put.Stderr = io.TeeReader(io.LimitReader(random, objectSize), written), os.Stderr
	if err := put.Run(); err != nil {
		t.Fatalf("while writing: %v", err)
	}
	get := ceph(3, "rados", "--pool", "demo", "get", "object", "-")
	get.Stdout, get.Stderr = read, os.Stderr
	if err := get.Run(); err != nil {
		t.Fatalf("while reading: %v", err)
	}
	fmt.Printf("   written on h1  sha256 %x\n   read on h3     sha256 %x\n", written.Sum(nil), read.Sum(nil))
	if string(written.Sum(nil)) != string(read.Sum(nil)) {
		t.Fatalf("what was read is not what was written")
	}
}

func down() error {
	if _, err := os.Stat(labDir); errors.Is(err, os.ErrNotExist) {
		fmt.Println("there is no demo to remove")
		return nil
	}
	return hosts.Script(os.Stdout, func(t hosts.T) {
		lab := hosts.Open(t, labDir)
		if err := hosts.Destroy(labDir); err != nil {
			t.Fatalf("%v", err)
		}
		lab.Leftovers(t)
		if !t.Failed() {
			fmt.Println("the demo is removed: no process, mount, loop device, namespace or file of it is left")
		}
	})
}

// exitStatus ends the program as a command that it ran ended.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// shell runs a command on a host of the demo, with holdfast in PATH.
func shell(ctx context.Context, name string, args []string) error {
	binary, err := program()
	if err != nil {
		return err
	}
	// The command is looked up by this process, before it enters the host.
	if err := os.Setenv("PATH", filepath.Dir(binary)+":"+os.Getenv("PATH")); err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"bash", "--norc"}
	}
	var result error
	err = hosts.Script(os.Stderr, func(t hosts.T) {
		for _, h := range hosts.Open(t, labDir).Hosts() {
			if h.Name == name {
				result = attach(h.Command(ctx, args[0], args[1:]...), h.Name)
				return
			}
		}
		t.Fatalf("there is no host %q: the demo has h1, h2 and h3", name)
	})
	return errors.Join(err, result)
}

func attach(cmd *hosts.Cmd, host string) error {
	cmd.Env = append(cmd.Env, "PS1="+host+"# ")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return &exitStatus{exit.ExitCode()}
	}
	return err
}
