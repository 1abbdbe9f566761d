package pod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/test/podnode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is one with a stand-in for Kubernetes.
type node struct {
	api     *podnode.API
	kubelet *podnode.Kubelet
}

func newNode(t *testing.T) *node {
	t.Helper()
	api := podnode.NewAPI(t)
	return &node{api, podnode.New(t, api, "n1")}
}

// open opens the runtime of the next agent.
func (n *node) open(t *testing.T, dir string, change ...func(*Config)) *Runtime {
	t.Helper()
	cfg := Config{
		REST: n.api.Config(t), Dir: filepath.Join(dir, "runtime"), Node: "n1", Image: "holdfast:1", HostPID: true,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		BackOff: runtime.BackOff{
			First: time.Millisecond, Min: 50 * time.Millisecond, Max: 200 * time.Millisecond, Reset: time.Minute,
		},
		Processes: func(uid types.UID) (out []Process, err error) {
			for _, p := range podnode.Processes(uid) {
				out = append(out, Process(p))
			}
			return out, nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	r, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The suite runs against a stand-in for Kubernetes; see package podnode for what that shows and
// what not.
func TestConformance(t *testing.T) {
	nodes := map[string]*node{}
	names := map[*testing.T]*node{}
	runtimetest.Run(t, runtimetest.Harness{
		KillsChildren: true,
		Open: func(t *testing.T, dir string) runtime.Runtime {
			if nodes[dir] == nil {
				nodes[dir] = newNode(t)
			}
			names[t] = nodes[dir]
			return nodes[dir].open(t, dir)
		},
		Log: func(t *testing.T, p runtime.Process) string { return names[t].kubelet.Log(p.Of.Namespace, p.Of.Name) },
	})
}

// shell is a process of the daemon default/x, whose script notes each process that it ever becomes
// in a file.
func shell(dir, script string) runtime.Process {
	return runtime.Process{
		Name: "default.x", Command: []string{"sh", "-c", "T=" + dir + "\necho $$ >> $T/pids; " + script}, Dir: dir,
		RunDir: filepath.Join(dir, "run"), StopTimeout: 5 * time.Second,
		Of: runtime.Owner{Namespace: "default", Name: "x", UID: "uid-x", Type: "shell", ID: "x", Cluster: "c"},
	}
}

const (
	sleeps = "exec sleep 1000"
	// endsLate ends when it was asked to and the file go is there.
	endsLate = `trap 'until [ -e $T/go ]; do sleep 0.01; done; exit 0' TERM; touch $T/ready; while :; do sleep 0.02; done`
)

// start starts a process, and waits until it runs.
func start(t *testing.T, r *Runtime, p runtime.Process) runtime.State {
	t.Helper()
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s := await(t, r, "a process that runs", func(s runtime.State, known bool) bool { return s.Running && s.PID != 0 })
	await(t, r, "its number in the file", func(runtime.State, bool) bool { return slices.Contains(pids(t, p.Dir), s.PID) })
	return s
}

// await waits until the state is as wanted.
func await(t *testing.T, r *Runtime, what string, ok func(s runtime.State, known bool) bool) runtime.State {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		s, known := r.State("default.x")
		if ok(s, known) {
			return s
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not seen: %s; %+v, known %v, last exit %+v", what, s, known, s.LastExit)
		}
	}
}

func awaitFile(t *testing.T, r *Runtime, file string) {
	t.Helper()
	await(t, r, file, func(runtime.State, bool) bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

func stop(t *testing.T, r *Runtime) {
	t.Helper()
	if err := r.Stop(t.Context(), "default.x"); err != nil {
		t.Fatal(err)
	}
	if _, known := r.State("default.x"); known {
		t.Error("it is known after it was stopped")
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// pids are the processes that there ever were.
func pids(t *testing.T, dir string) (out []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

// A pod that is taken from the API by force, while its process runs, has no successor as long as
// that runs; not by the next agent either.
func TestDeletedByForce(t *testing.T) {
	for _, next := range []bool{false, true} {
		t.Run(fmt.Sprint("the next agent ", next), func(t *testing.T) {
			n, dir := newNode(t), t.TempDir()
			r := n.open(t, dir)
			defer func() { r.Close() }()
			first := start(t, r, shell(dir, sleeps))
			n.kubelet.Halt(true)
			n.api.Delete(t, "default", "x", 0)
			left := func(s runtime.State, _ bool) bool { return s.Running && s.PID == first.PID && s.Problem != "" }
			s := await(t, r, "the process that is left", left)
			if want := fmt.Sprintf("while process %d still runs", first.PID); s.Stopping || !strings.Contains(s.Problem, want) {
				t.Errorf("%+v, want %q", s, want)
			}
			if next {
				r.Close()
				r = n.open(t, dir)
				await(t, r, "the process that is left", left)
			}
			if err := r.Start(t.Context(), shell(dir, sleeps)); err != nil {
				t.Fatal(err)
			}
			n.kubelet.Halt(false) // it sees that the pod is gone, and ends the process
			s = await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.PID != first.PID })
			await(t, r, "both numbers in the file", func(runtime.State, bool) bool { return len(pids(t, dir)) == 2 })
			ok := s.Restarts == 1 && s.Problem == "" && s.LastExit != nil && !runtimetest.Alive(first.PID)
			if !ok {
				t.Errorf("%+v, last exit %+v, processes %v", s, s.LastExit, pids(t, dir))
			}
			stop(t, r)
		})
	}
}

// It is not made while a process lives that no kubelet ends, either, and can be stopped meanwhile
// when that has ended.
func TestDeletedByForce_stopped(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	n.kubelet.Halt(true)
	n.api.Delete(t, "default", "x", 0)
	short, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	if err := r.Stop(short, "default.x"); !errors.Is(err, context.DeadlineExceeded) || !runtimetest.Alive(first.PID) {
		t.Errorf("it was stopped while its process runs: %v", err)
	}
	if n.api.Pod("default", "x") != nil {
		t.Error("another pod was made")
	}
	kill(t, first.PID)
	stop(t, r)
	n.kubelet.Halt(false)
}

// What others delete is made again, and was not stopped.
func TestDeletedByOthers(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	first := start(t, r, shell(dir, endsLate))
	awaitFile(t, r, filepath.Join(dir, "ready"))
	n.api.Delete(t, "default", "x", 5)
	s := await(t, r, "the deletion", func(s runtime.State, _ bool) bool { return s.Problem != "" })
	if s.Stopping || !s.Running || !strings.Contains(s.Problem, "the agent did not ask for") {
		t.Errorf("%+v", s)
	}
	write(t, dir, "go")
	s = await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.PID != first.PID })
	if s.Restarts != 1 || s.Stopping || s.Problem != "" || s.LastExit == nil || s.LastExit.Reason != "exit code 0" {
		t.Errorf("%+v, last exit %+v", s, s.LastExit)
	}
	if got := n.api.Pod("default", "x").Annotations[annotationRestarts]; got != "1" {
		t.Errorf("the pod says that there were %s ends before", got)
	}
	stop(t, r)
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A pod that the kubelet ended is replaced, and one that it refuses again and again, with pauses.
// Why is told.
func TestFailed(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir, func(c *Config) { c.BackOff.Min, c.BackOff.Max = 20*time.Millisecond, 50*time.Millisecond })
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	n.kubelet.Refuse(func(*corev1.Pod) (string, string) { return "OutOfcpu", "Node didn't have enough resource: cpu" })
	n.kubelet.Evict(t, "default", "x", "The node was low on resource: memory.")
	seen := map[string]bool{}
	await(t, r, "what the kubelet says", func(s runtime.State, _ bool) bool {
		seen[s.Problem] = true
		return s.Problem == "the kubelet ended the pod: OutOfcpu: Node didn't have enough resource: cpu"
	})
	await(t, r, "two more attempts", func(s runtime.State, _ bool) bool {
		return strings.Count(strings.Join(n.api.Requests(), "\n"), "POST") >= 4
	})
	n.kubelet.Refuse(nil)
	s := await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.PID != first.PID })
	if s.Restarts != 1 || s.LastExit == nil || s.Problem != "" || runtimetest.Alive(first.PID) {
		t.Errorf("%+v, last exit %+v", s, s.LastExit)
	}
	stop(t, r)
}

// A pod whose image cannot be had says so at once, and is replaced when an agent comes that has
// another one. A running process keeps its image until it ends.
func TestImage(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	n.kubelet.Images("holdfast:2", "holdfast:3")
	r := n.open(t, dir)
	defer func() { r.Close() }()
	if err := r.Start(t.Context(), shell(dir, sleeps)); err != nil {
		t.Fatal(err)
	}
	s, _ := r.State("default.x")
	if s.Running || s.Problem != `the pod does not start: ImagePullBackOff: Back-off pulling image "holdfast:1"` {
		t.Errorf("%+v", s)
	}
	with := func(image string) func(*Config) { return func(c *Config) { c.Image = image } }
	r.Close()
	r = n.open(t, dir, with("holdfast:2"))
	s = start(t, r, shell(dir, sleeps))
	if s.Restarts != 0 || s.Outdated || s.Problem != "" {
		t.Errorf("with an image: %+v", s)
	}
	r.Close()
	r = n.open(t, dir, with("holdfast:3"))
	if again := start(t, r, shell(dir, sleeps)); again.PID != s.PID || !again.Outdated {
		t.Errorf("was %+v, is %+v", s, again)
	}
	kill(t, s.PID)
	s = await(t, r, "the new image", func(s runtime.State, _ bool) bool { return s.Running && !s.Outdated })
	if got := n.api.Pod("default", "x").Spec.Containers[0].Image; got != "holdfast:3" || s.Restarts == 0 {
		t.Errorf("image %s, %+v", got, s)
	}
	stop(t, r)
}

// A cluster that takes images from elsewhere than they are asked for from has no pod made again for that.
func TestImage_mirrored(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	n.api.Refuse(func(pod *corev1.Pod) error {
		pod.Spec.Containers[0].Image = "mirror/" + pod.Spec.Containers[0].Image
		return nil
	})
	n.kubelet.Halt(true)
	r := n.open(t, dir)
	defer r.Close()
	var started sync.WaitGroup
	started.Go(func() { start(t, r, shell(dir, sleeps)) })
	await(t, r, "the pod", func(_ runtime.State, known bool) bool { return known && n.api.Pod("default", "x") != nil })
	n.kubelet.Halt(false)
	started.Wait()
	s, _ := r.State("default.x")
	kill(t, s.PID)
	s = await(t, r, "a restart", func(now runtime.State, _ bool) bool { return now.Running && now.PID != s.PID })
	if got := strings.Join(n.api.Requests(), ", "); got != "POST default/x" || s.Outdated {
		t.Errorf("requests: %s; %+v", got, s)
	}
	stop(t, r)
}

// A process that is given while another one runs takes its place when that has ended, in another
// pod.
func TestOtherProcess(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	uid := n.api.Pod("default", "x").UID
	other := shell(dir, "touch $T/other; "+sleeps)
	if s := start(t, r, other); s.PID != first.PID {
		t.Errorf("was %+v, is %+v", first, s)
	}
	kill(t, first.PID)
	s := await(t, r, "the other process", func(s runtime.State, _ bool) bool {
		pod := n.api.Pod("default", "x")
		return s.Running && s.PID != 0 && pod != nil && pod.UID != uid
	})
	awaitFile(t, r, filepath.Join(dir, "other"))
	if s.Restarts != 1 || s.LastExit == nil || s.LastExit.Reason != "signal: killed" {
		t.Errorf("%+v, last exit %+v", s, s.LastExit)
	}
	stop(t, r)
}

// Whoever starts the same process again and again hears of no change: the agent would do so because
// of it.
func TestStart_again(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	start(t, r, shell(dir, sleeps))
	for quiet := false; !quiet; {
		select {
		case <-r.Changes():
		case <-time.After(100 * time.Millisecond): // the kubelet has said all
			quiet = true
		}
	}
	for range 3 {
		if err := r.Start(t.Context(), shell(dir, sleeps)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case name := <-r.Changes():
		t.Errorf("%s changed", name)
	case <-time.After(200 * time.Millisecond):
	}
	stop(t, r)
}

// The runtime marks a pod as stopped before it deletes it, and touches no other pod of its name.
func TestStop_steps(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	start(t, r, shell(dir, endsLate))
	awaitFile(t, r, filepath.Join(dir, "ready"))
	var stopped sync.WaitGroup
	stopped.Go(func() { stop(t, r) })
	await(t, r, "the deletion", func(runtime.State, bool) bool {
		return n.api.Pod("default", "x").DeletionTimestamp != nil
	})
	pod := n.api.Pod("default", "x")
	if pod.Annotations[AnnotationStop] == "" || *pod.DeletionGracePeriodSeconds != 5 {
		t.Errorf("annotations %v, %d seconds", pod.Annotations, *pod.DeletionGracePeriodSeconds)
	}
	if got := strings.Join(n.api.Requests(), ", "); got != "POST default/x, PATCH default/x, DELETE default/x" {
		t.Errorf("requests: %s", got)
	}
	write(t, dir, "go")
	stopped.Wait()

	pod.UID = "another"
	n.api.Create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Spec: pod.Spec})
	gone, err := r.api.delete(t.Context(), pod)
	if !gone || err != nil || n.api.Pod("default", "x").DeletionTimestamp != nil {
		t.Errorf("the pod of others: gone %v, %v", gone, err)
	}
	if now, err := r.api.annotate(t.Context(), pod, AnnotationStop, "now"); now != nil || err != nil {
		t.Errorf("the pod of others: %v, %v", now, err)
	}
	n.api.Delete(t, "default", "x", 1)
}

// A pod of the same name that is not this daemon's is left alone, and said to be in the way.
func TestForeignPod(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"of others":         func(p *corev1.Pod) { p.Labels, p.Annotations, p.OwnerReferences = nil, nil, nil },
		"of another Daemon": func(p *corev1.Pod) { p.OwnerReferences[0].UID, p.Labels = "uid-old", nil },
	} {
		t.Run(name, func(t *testing.T) {
			n, dir := newNode(t), t.TempDir()
			r := n.open(t, dir)
			defer r.Close()
			pod := podOf(&r.cfg, shell(dir, "touch $T/other; "+sleeps), 0)
			change(pod)
			n.api.Create(t, pod)
			err := r.Start(t.Context(), shell(dir, sleeps))
			if err == nil || !strings.Contains(err.Error(), "kubectl delete pod -n default x") {
				t.Errorf("start: %v", err)
			}
			if _, known := r.State("default.x"); known || len(r.Names()) > 0 {
				t.Error("it is known although it was not started")
			}
			if err := r.Stop(t.Context(), "default.x"); err != nil || n.api.Pod("default", "x").DeletionTimestamp != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}

// The pod of a Daemon of the same name that is gone goes with it, and is ended before another one
// is made.
func TestFormerDaemon(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	p := shell(dir, sleeps)
	p.Of.UID = "uid-new"
	if s := start(t, r, p); s.PID == first.PID || s.Restarts != 0 || runtimetest.Alive(first.PID) {
		t.Errorf("was %+v, is %+v", first, s)
	}
	if got := ownerOf(n.api.Pod("default", "x")); got != "uid-new" {
		t.Errorf("the pod is of %s", got)
	}
	stop(t, r)
}

// What the runtime itself wrote it knows before the watch tells of it, and older news change
// nothing.
func TestOwnWrites(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	n.kubelet.Halt(true)
	n.api.Hold(true)
	ctx, cancel := context.WithCancel(t.Context())
	var started sync.WaitGroup
	started.Go(func() {
		if err := r.Start(ctx, shell(dir, sleeps)); err != nil {
			t.Error(err)
		}
	})
	await(t, r, "the pod that was made", func(s runtime.State, known bool) bool {
		return known && !s.Running && r.hasPod()
	})
	cancel()
	started.Wait()
	made := n.api.Pod("default", "x")
	if err := r.Announce(t.Context(), "default.x", true); err != nil {
		t.Fatal(err)
	}
	r.wrote(made)
	if e := r.find("default.x"); !serving(e.pod) {
		t.Error("what the watch says of before hides what was written")
	}
	r.loseOthers(nil, made.ResourceVersion)
	if s, known := r.State("default.x"); !known || s.LastExit != nil || r.find("default.x").pod == nil {
		t.Errorf("a list of before has it gone: %+v, known %v", s, known)
	}
	n.api.Hold(false)
	n.kubelet.Halt(false)
	await(t, r, "a process that runs", func(s runtime.State, _ bool) bool { return s.Running })
	stop(t, r)
	r.wrote(made)
	if _, known := r.State("default.x"); known {
		t.Error("a late answer has it known again")
	}
}

// hasPod says whether it knows a pod.
func (r *Runtime) hasPod() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entries["default.x"].pod != nil
}

// The gate says whether a daemon serves.
func TestAnnounce(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	r := n.open(t, dir)
	defer r.Close()
	start(t, r, shell(dir, sleeps))
	for _, want := range []bool{true, true, false, true} {
		if err := r.Announce(t.Context(), "default.x", want); err != nil || serving(n.api.Pod("default", "x")) != want {
			t.Errorf("want %v: %v, %+v", want, err, n.api.Pod("default", "x").Status.Conditions)
		}
	}
	if got := strings.Count(strings.Join(n.api.Requests(), " "), "PATCH"); got != 3 {
		t.Errorf("it was written %d times", got)
	}
	stop(t, r)
	if err := r.Announce(t.Context(), "default.x", true); err != nil {
		t.Error(err)
	}
}

// While no API server answers, New waits. Pods keep running when the server goes away, and are known
// when it is back.
func TestServerAway(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	n.api.SetDown(true)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := New(short, Config{REST: n.api.Config(t), Dir: dir, Node: "n1", Image: "i"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("New: %v", err)
	}
	n.api.SetDown(false)
	r := n.open(t, dir)
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	n.api.SetDown(true)
	if err := r.Stop(t.Context(), "default.x"); err == nil {
		t.Error("it was stopped without a server")
	}
	if s, _ := r.State("default.x"); !s.Running || s.Stopping || s.PID != first.PID {
		t.Errorf("was %+v, is %+v", first, s)
	}
	n.kubelet.Halt(true)
	kill(t, first.PID)
	n.kubelet.Halt(false)
	n.api.SetDown(false)
	s := await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.PID != first.PID })
	if s.Restarts != 1 {
		t.Errorf("%+v", s)
	}
	stop(t, r)
}

// A pod that the API server refuses is not started, and Start returns the server's reason.
func TestForbidden(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	n.api.Refuse(func(*corev1.Pod) error { return errors.New("exceeded quota") })
	r := n.open(t, dir)
	defer r.Close()
	err := r.Start(t.Context(), shell(dir, sleeps))
	const label = "kubectl label namespace default --overwrite pod-security.kubernetes.io/enforce=privileged"
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") || !strings.Contains(err.Error(), label) {
		t.Errorf("start: %v", err)
	}
	if _, known := r.State("default.x"); known {
		t.Error("it is known")
	}
	n.api.Refuse(nil)
	start(t, r, shell(dir, sleeps))
	n.api.Refuse(func(*corev1.Pod) error { return errors.New("exceeded quota") })
	n.api.Delete(t, "default", "x", 1)
	await(t, r, "why no pod is made", func(s runtime.State, _ bool) bool {
		return !s.Running && strings.Contains(s.Problem, "exceeded quota") && !s.BackOffUntil.IsZero()
	})
	n.api.Refuse(nil)
	await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.Problem == "" })
	stop(t, r)
}

// What has to be before a process starts is there before its pod is made, each time.
func TestBeforeStart(t *testing.T) {
	n, dir := newNode(t), t.TempDir()
	var asked atomic.Int32
	r := n.open(t, dir, func(c *Config) {
		c.BeforeStart = func(p runtime.Process) {
			if n.api.Pod("default", "x") != nil || p.Name != "default.x" {
				t.Errorf("%s is asked for when its pod is there", p.Name)
			}
			asked.Add(1)
		}
	})
	defer r.Close()
	first := start(t, r, shell(dir, sleeps))
	n.api.Delete(t, "default", "x", 1)
	await(t, r, "another process", func(s runtime.State, _ bool) bool { return s.Running && s.PID != first.PID })
	if got := asked.Load(); got != 2 {
		t.Errorf("asked %d times", got)
	}
	stop(t, r)
}

// Without what it needs the runtime says so.
func TestNew_lacking(t *testing.T) {
	_, err := New(t.Context(), Config{Node: "n1"})
	if err == nil || !strings.Contains(err.Error(), "needs the name of its node, an image") {
		t.Error(err)
	}
}
