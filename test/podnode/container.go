package podnode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a process is known by, as there are no cgroups.
const (
	envPod       = "HOLDFAST_STANDIN_POD"
	envContainer = "HOLDFAST_STANDIN_CONTAINER"
)

// container is one run of a pod's command.
type container struct {
	id      string
	cmd     *exec.Cmd
	log     string
	started metav1.Time
	ended   chan struct{}
	over    metav1.Time
}

// startError is why a container does not start, with the reason that the kubelet has for it.
type startError struct {
	reason string
	err    error
}

func (e *startError) Error() string { return e.err.Error() }

func reasonOf(err error) string {
	if s := (*startError)(nil); errors.As(err, &s) {
		return s.reason
	}
	return "CreateContainerError"
}

// start starts the command of a pod, and tells that it runs.
func (p *pod) start() (*container, error) {
	spec := &p.is.Spec.Containers[0]
	p.k.mu.Lock()
	missing := p.k.images != nil && !p.k.images[spec.Image]
	p.k.mu.Unlock()
	if missing {
		//nolint:staticcheck // these are the kubelet's words
		return nil, &startError{"ImagePullBackOff", fmt.Errorf("Back-off pulling image %q", spec.Image)}
	}
	if err := p.prepare(); err != nil {
		return nil, &startError{"ContainerCreating", err}
	}
	c := &container{id: strings.ReplaceAll(uuid.NewString(), "-", ""), ended: make(chan struct{})}
	c.log = filepath.Join(p.k.dir, c.id)
	out, err := os.OpenFile(c.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args := expand(append(slices.Clone(spec.Command), spec.Args...), spec.Env)
	c.cmd = exec.CommandContext(context.Background(), args[0], args[1:]...)
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = spec.WorkingDir, out, out
	c.cmd.Env = append(os.Environ(), envPod+"="+string(p.is.UID), envContainer+"="+c.id)
	for _, e := range spec.Env {
		c.cmd.Env = append(c.cmd.Env, e.Name+"="+e.Value)
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.started = metav1.Now().Rfc3339Copy()
	if err := c.cmd.Start(); err != nil {
		return nil, &startError{"RunContainerError", err}
	}
	sessions.Store(c.cmd.Process.Pid, run{string(p.is.UID), c.id})
	p.k.mu.Lock()
	p.k.logs[p.is.Namespace+"/"+p.is.Name] += "\n" + c.log
	p.k.mu.Unlock()
	p.k.wg.Go(c.wait)
	p.status(func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		s.ContainerStatuses = []corev1.ContainerStatus{p.container(
			corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: c.started}}, "standin://"+c.id)}
	})
	return c, nil
}

// expand does what the kubelet does to a command: $(NAME) is a variable, if there is one, and $$ is $.
func expand(command []string, env []corev1.EnvVar) []string {
	all := []string{"$$", "$"}
	for _, e := range env {
		all = append(all, "$("+e.Name+")", e.Value)
	}
	r := strings.NewReplacer(all...)
	for i := range command {
		command[i] = r.Replace(command[i])
	}
	return command
}

// wait waits for the end of the command, and then kills what it left: the end of a container is
// that of all in it.
func (c *container) wait() {
	_ = c.cmd.Wait() // how it ended is in its state
	c.killAll()
	sessions.Delete(c.cmd.Process.Pid)
	c.over = metav1.Now().Rfc3339Copy()
	close(c.ended)
}

func (c *container) killAll() {
	for {
		left := processes(func(r run) bool { return r.container == c.id })
		for _, p := range left {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *container) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// end asks the command to end, and kills it after a time.
func (c *container) end(grace time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.kill()
	}
}

// tail is how much of a log becomes the message of a container that failed.
const tail = 2048

// terminated is how the container ended, in the kubelet's words.
func (c *container) terminated() *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		StartedAt: c.started, FinishedAt: c.over, ContainerID: "standin://" + c.id, Reason: "Completed",
	}
	ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	t.ExitCode = int32(ws.ExitStatus())
	if ws.Signaled() {
		t.ExitCode = 128 + int32(ws.Signal())
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
		text, _ := os.ReadFile(c.log) // it is there
		t.Message = string(text[max(0, len(text)-tail):])
	}
	return t
}

// Process is a process of a pod.
type Process struct {
	PID, Parent int
	Started     uint64
	Container   string
}

// sessions are the sessions of containers, by their numbers: what a process is known by while its
// program is exchanged, when it has no environment.
var sessions sync.Map

// run is one run of a pod's command.
type run struct{ pod, container string }

// Processes finds the processes of a pod, as the agent of a node does by cgroups.
func Processes(uid types.UID) []Process {
	return processes(func(r run) bool { return r.pod == string(uid) })
}

func processes(of func(run) bool) (out []Process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		r, found := runOf(e.Name(), f[3])
		if !found || !of(r) || f[0] == "Z" || f[0] == "X" {
			continue
		}
		p := Process{PID: pid, Container: r.container}
		p.Parent, _ = strconv.Atoi(f[1])
		p.Started, _ = strconv.ParseUint(f[19], 10, 64)
		out = append(out, p)
	}
	return out
}

// runOf is the run that a process is of, by its session or else by its environment.
func runOf(pid, session string) (run, bool) {
	if number, err := strconv.Atoi(session); err == nil {
		if r, ok := sessions.Load(number); ok {
			return r.(run), true
		}
	}
	env, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	r := run{entry(env, envPod), entry(env, envContainer)}
	return r, err == nil && r.pod != ""
}

func entry(env []byte, key string) string {
	for line := range bytes.SplitSeq(env, []byte{0}) {
		if v, ok := strings.CutPrefix(string(line), key+"="); ok {
			return v
		}
	}
	return ""
}
