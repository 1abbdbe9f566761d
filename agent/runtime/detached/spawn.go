package detached

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// gate is what the process does before it becomes the program: it waits for a line on descriptor 3. When the agent dies
// before it has written the line, read fails and the shell ends. Exec keeps the PID and the start time.
const gate = `read -r go <&3 && exec 3<&- && exec "$@"`

// marker is the variable in a process's environment that tells which process of the runtime it belongs to.
const marker = "HOLDFAST_DAEMON"

// openFiles is the limit of open files that Ceph's own units ask for (LimitNOFILE).
const openFiles = 1048576

// gated is a process that waits at the gate.
type gated struct {
	id    identity
	pidfd *os.File
	gate  *os.File
}

// spawn starts a process that waits at the gate.
func spawn(p runtime.Process) (*gated, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("no command")
	}
	bin, err := exec.LookPath(p.Command[0])
	if err != nil {
		return nil, err
	}
	files, r, w, err := openFilesOf(p)
	if err != nil {
		return nil, err
	}
	argv := append([]string{"sh", "-c", gate, "holdfast", bin}, p.Command[1:]...)
	child, err := os.StartProcess("/bin/sh", argv, &os.ProcAttr{
		Dir: p.Dir, Env: environ(p.Name), Files: append(files, r), Sys: &unix.SysProcAttr{Setsid: true},
	})
	closeAll(append(files, r))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	g := &gated{gate: w}
	// The child is not waited for before its pidfd says that it ended; until then its PID is its own.
	if g.id, err = identify(child.Pid); err == nil {
		g.pidfd, err = openPIDFD(child.Pid)
	}
	raiseLimit(child.Pid)
	if err != nil {
		w.Close()
		_, werr := child.Wait()
		return nil, errors.Join(err, werr)
	}
	return g, errors.Join(child.Release())
}

// open lets the process become the program.
func (g *gated) open() error {
	_, err := g.gate.WriteString("go\n")
	return errors.Join(err, g.gate.Close())
}

// abandon lets the process end without becoming the program.
func (g *gated) abandon() {
	g.gate.Close()
	if awaitEnd(g.pidfd) == nil {
		reap(g.id.PID)
	}
	g.pidfd.Close()
}

func openFilesOf(p runtime.Process) (files []*os.File, r, w *os.File, err error) {
	if p.RunDir != "" {
		if err := os.MkdirAll(p.RunDir, 0o755); err != nil {
			return nil, nil, nil, err
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(p.LogFile), 0o750); err != nil {
		return nil, nil, nil, errors.Join(err, null.Close())
	}
	out, err := os.OpenFile(p.LogFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return nil, nil, nil, errors.Join(err, null.Close())
	}
	r, w, err = os.Pipe()
	if err != nil {
		closeAll([]*os.File{null, out})
		return nil, nil, nil, err
	}
	return []*os.File{null, out, out}, r, w, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // standard output and error are one file, which is closed twice
	}
}

// environ passes on what concerns the machine, and nothing of what was meant for the agent.
func environ(name string) []string {
	env := []string{marker + "=" + name}
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		switch {
		case key == "PATH", key == "HOME", key == "TZ", key == "LANG", key == "TMPDIR", strings.HasPrefix(key, "LC_"):
			env = append(env, kv)
		}
	}
	return env
}

// raiseLimit gives the process as many files as Ceph's own units do, or as many as are allowed.
func raiseLimit(pid int) {
	lim := unix.Rlimit{Cur: openFiles, Max: openFiles}
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, &lim, nil) == nil {
		return
	}
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &lim) == nil {
		lim.Cur = lim.Max
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &lim, nil) // what it has must do then
	}
}

// reap takes the exit of a process that has ended, and tells it in words: "unknown" when it was not this agent's child.
func reap(pid int) string {
	var ws unix.WaitStatus
	for {
		got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || got != pid:
			return "unknown"
		case ws.Exited():
			return fmt.Sprintf("exit code %d", ws.ExitStatus())
		default:
			return "signal: " + ws.Signal().String()
		}
	}
}
