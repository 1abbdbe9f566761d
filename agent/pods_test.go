package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/podnode"
)

// podWorld is a world whose agents run pods, on a stand-in for Kubernetes (package podnode).
type podWorld struct {
	*world
	pods    *podnode.API
	kubelet *podnode.Kubelet
	// pod is the runtime of the agent that runs, image its image.
	pod   *pod.Runtime
	image string
}

func newPodWorld(t *testing.T) *podWorld {
	t.Helper()
	pods := podnode.NewAPI(t)
	w := &podWorld{pods: pods, kubelet: podnode.New(t, pods, "h1"), image: "holdfast:1"}
	w.world = newWorld(t)
	w.wrap = func(runtime.Runtime) runtime.Runtime {
		var err error
		w.pod, err = pod.New(t.Context(), pod.Config{
			REST: pods.Config(t), Dir: filepath.Join(w.dir, "pods"), Node: "h1", Image: w.image, HostPID: true,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Processes: processes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return w.pod
	}
	return w
}

func processes(uid types.UID) (out []pod.Process, err error) {
	for _, p := range podnode.Processes(uid) {
		out = append(out, pod.Process(p))
	}
	return out, nil
}

// end ends the agent. Pods go on.
func (w *podWorld) end() {
	w.t.Helper()
	w.halt()
	if err := w.pod.Close(); err != nil {
		w.t.Error(err)
	}
}

// awaitOther waits until a daemon runs as another process than one.
func (w *podWorld) awaitOther(pid int32) *api.Daemon {
	w.t.Helper()
	var d *api.Daemon
	w.await("another process", func() bool {
		d = w.daemon("one")
		return d.Status.State == api.DaemonRunning && d.Status.PID != 0 && d.Status.PID != pid
	})
	if runtimetest.Alive(int(pid)) {
		w.t.Errorf("process %d lives beside %d", pid, d.Status.PID)
	}
	return d
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == pod.ConditionServing {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// A Daemon becomes a pod that is ready when the daemon serves; it is restarted, adopted, replaced
// and removed.
func TestRun_pods(t *testing.T) {
	w := newPodWorld(t)
	w.service.set(func(s *sleeper) { s.awaits = "the others" })
	w.run()
	w.create(sleeperDaemon("one"))
	d := w.awaitState("one", api.DaemonRunning)
	p := w.pods.Pod("default", "one")
	owned := len(p.OwnerReferences) == 1 && p.OwnerReferences[0].UID == "uid-one"
	if !owned || p.Labels["holdfast.io/host"] != "h1" || isReady(p) {
		t.Errorf("the pod: %+v", p.ObjectMeta)
	}
	w.service.set(func(s *sleeper) { s.awaits = "" })
	w.await("a pod that is ready", func() bool { return isReady(w.pods.Pod("default", "one")) })

	w.kubelet.Evict(t, "default", "one", "low on memory")
	d = w.awaitOther(d.Status.PID)
	if d.Status.Restarts != 1 || d.Status.LastExit == nil {
		t.Errorf("when it was evicted: %+v", d.Status)
	}
	w.create(restartOf("one"))
	w.awaitAction(api.ActionDone, "one runs again, as process ")
	d = w.awaitOther(d.Status.PID)
	w.end()

	w.run()
	w.await("what the next agent says of it", func() bool { return w.daemon("one").Status.State == api.DaemonRunning })
	if again := w.daemon("one"); again.Status.PID != d.Status.PID || again.Status.Restarts != 0 {
		t.Errorf("the next agent has %+v", again.Status)
	}
	w.change("one", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	w.awaitState("one", api.DaemonStopped)
	if w.pods.Pod("default", "one") != nil || runtimetest.Alive(int(d.Status.PID)) {
		t.Error("it was stopped, and its pod or process is there")
	}
	w.delete("one")
	w.awaitGone("one")
	w.end()
}

// Why no process runs is in the status of the Daemon.
func TestRun_podsProblem(t *testing.T) {
	w := newPodWorld(t)
	w.kubelet.Images("another:1")
	w.run()
	w.create(sleeperDaemon("one"))
	w.await("why it does not run", func() bool {
		s := w.daemon("one").Status
		return s.State == api.DaemonBackOff &&
			s.Message == `the pod does not start: ImagePullBackOff: Back-off pulling image "holdfast:1"`
	})
	w.kubelet.Images("holdfast:1")
	d := w.awaitState("one", api.DaemonRunning)
	w.kubelet.Halt(true)
	w.pods.Delete(t, "default", "one", 0)
	w.await("what is left of it", func() bool {
		return strings.HasPrefix(w.daemon("one").Status.Message, "its pod was removed while process ")
	})
	if w.pods.Pod("default", "one") != nil {
		t.Error("there is another pod while the process of the first one runs")
	}
	w.kubelet.Halt(false)
	w.awaitOther(d.Status.PID)
	w.end()
}

// released is a sleeper of which the agent's image has some release.
type released struct {
	*sleeper
	release atomic.Value
}

func (*released) Name() string { return "released" }

func (r *released) Version(context.Context) (string, error) { return r.release.Load().(string), nil }

// What runs in the image of an earlier agent keeps its release, and says that it is out of date, until it ends.
func TestRun_podsOutdated(t *testing.T) {
	w := newPodWorld(t)
	service := &released{sleeper: w.service}
	service.release.Store("1.0")
	w.also = append(w.also, service)
	w.run()
	w.create(sleeperDaemon("one", func(d *api.Daemon) { d.Spec.Type = "released" }))
	d := w.awaitState("one", api.DaemonRunning)
	if d.Status.Version != "1.0" {
		t.Errorf("version %s", d.Status.Version)
	}
	w.end()

	service.release.Store("2.0")
	w.image = "holdfast:2"
	w.run()
	w.await("what the next agent makes of it", func() bool {
		s, _ := w.pod.State("default.one")
		return s.Outdated && w.daemon("one").Status.State == api.DaemonRunning
	})
	if now := w.daemon("one").Status; now.Version != "1.0" || now.PID != d.Status.PID {
		t.Errorf("it runs on as %+v", now)
	}
	kill(t, int(d.Status.PID))
	w.await("the new release", func() bool {
		s := w.daemon("one").Status
		return s.State == api.DaemonRunning && s.PID != d.Status.PID && s.Version == "2.0"
	})
	if got := w.pods.Pod("default", "one").Spec.Containers[0].Image; got != "holdfast:2" {
		t.Errorf("image %s", got)
	}
	w.end()
}
