package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initVariable marks the first process of a host; labVariable marks every process of a lab.
const (
	initVariable = "HOLDFAST_TEST_INIT"
	labVariable  = "HOLDFAST_TEST_LAB"
)

// initConfig is what the first process of a host must know.
type initConfig struct {
	Name    string
	IP      string
	Gateway string
	Root    string   // the host's own files
	Share   []string // what must stay visible
	Hosts   string   // the text of /etc/hosts
	Machine
}

// MaybeInit must be called first in main or TestMain: a host's first process is this same program, started anew. In it,
// MaybeInit never returns.
func MaybeInit() {
	if os.Getenv(initVariable) == "" {
		return
	}
	err := runInit(os.NewFile(3, "config"), os.NewFile(4, "ready"))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// namespaces are what a host has of its own.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// boot starts the host's first process and waits until it has set up the host.
func (h *Host) boot() error {
	err := h.tryBoot()
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("while switching on host %s: %w", h.Name, err), h.powerOff())
}

func (h *Host) tryBoot() error {
	configRead, configWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer configRead.Close()
	defer configWrite.Close()
	readyRead, readyWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer readyRead.Close()
	defer readyWrite.Close()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe") // it outlives every context
	cmd.Args = []string{h.lab.state.Prefix + "-" + h.Name}             // what ps shows
	cmd.Dir = "/"
	cmd.Env = []string{initVariable + "=1", labVariable + "=" + h.lab.state.Prefix, "PATH=" + os.Getenv("PATH")}
	cmd.ExtraFiles = []*os.File{configRead, readyWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making namespaces: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it ends at the power-off, always by a signal
	readyWrite.Close()
	init, err := findProcess(cmd.Process.Pid)
	if err != nil {
		return err
	}
	// Should we be killed from here on, the lab can be found and removed. Should we have been killed before, the first
	// process finds no configuration and ends.
	if err := h.setInit(init); err != nil {
		return err
	}
	if err := h.plug(init.PID); err != nil {
		return err
	}
	if err := h.makeCgroup(); err != nil {
		return err
	}
	if err := json.NewEncoder(configWrite).Encode(h.initConfig()); err != nil {
		return err
	}
	configWrite.Close()
	return awaitReady(readyRead)
}

// awaitReady reads what the first process says of its work: "ok" or what went wrong.
func awaitReady(r *os.File) error {
	if err := r.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	answer, err := io.ReadAll(r)
	switch {
	case err != nil:
		return fmt.Errorf("waiting for its first process: %w", err)
	case len(answer) == 0:
		return errors.New("its first process ended: is hosts.MaybeInit called first in main or TestMain?")
	case string(answer) != "ok":
		return errors.New(string(answer))
	}
	return nil
}

func (h *Host) initConfig() initConfig {
	h.lab.mu.Lock()
	defer h.lab.mu.Unlock()
	c := initConfig{
		Name: h.Name, IP: h.IP, Gateway: h.lab.Gateway, Root: filepath.Join(h.Dir(), "root"), Machine: h.lab.state.Machine,
	}
	names := []string{"127.0.0.1 localhost", h.lab.Gateway + " gateway"}
	for _, s := range h.lab.state.Hosts {
		names = append(names, s.IP+" "+s.Name)
	}
	c.Hosts = strings.Join(names, "\n") + "\n"
	c.Share = append([]string{h.lab.Dir, "/var/lib/dpkg"}, h.lab.state.Hosts[h.number].Share...)
	if dir, err := os.Getwd(); err == nil {
		c.Share = append(c.Share, moduleRoot(dir))
	}
	return c
}

// moduleRoot is the directory of the Go module that dir belongs to, where the programs under test are built, or dir itself.
func moduleRoot(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// runInit is the life of a host's first process.
func runInit(config, ready *os.File) error {
	runtime.LockOSThread()
	// Signals from inside do not end it, as the kernel would have it for a program that handles none.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	var c initConfig
	if err := json.NewDecoder(config).Decode(&c); err != nil {
		return fmt.Errorf("while reading the configuration: %w", err)
	}
	config.Close()
	if err := c.setUp(); err != nil {
		fmt.Fprint(ready, err)
		return err
	}
	fmt.Fprint(ready, "ok")
	ready.Close()
	for {
		reap()
		<-children
	}
}

// reap collects processes that have ended after their parents.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
	}
}
