package pod

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

var testNow = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(testNow.Add(-d)) }

func running(since time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(since)}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func exited(code int32, from, to time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", StartedAt: ago(from), FinishedAt: ago(to), Message: "its log",
	}}
}

// said is what a kubelet says of a pod, and what that comes to.
type said struct {
	state, last corev1.ContainerState
	restarts    int32
	bare        bool // the kubelet has said nothing of its container
	change      func(*record, *corev1.Pod)
	unseen      bool
	want        runtime.State
}

// sayings are what kubelets say of pods.
func sayings() map[string]said {
	exit := func(reason string, at time.Duration) *runtime.Exit {
		return &runtime.Exit{Time: ago(at).Time, Reason: reason, Log: "its log"}
	}
	at := func(d time.Duration) time.Time { return testNow.Add(d) }
	const describe = "see 'kubectl describe pod -n default x'"
	return map[string]said{
		"just made": {bare: true, change: func(_ *record, p *corev1.Pod) { p.CreationTimestamp = ago(time.Second) }},
		"not taken by a kubelet": {
			bare: true,
			want: runtime.State{
				Problem: "the pod does not start: the kubelet of node n1 has not taken it; see 'kubectl get node n1'",
			},
		},
		"being made for long": {
			state: waiting("ContainerCreating", ""), change: taken,
			want: runtime.State{
				Problem: "the pod has not started yet: the kubelet pulls its image or waits for a mount; " + describe,
			},
		},
		"its image cannot be had": {
			state: waiting("ErrImagePull", "no such host"),
			want: runtime.State{
				Problem: "the pod does not start: ErrImagePull: no such host",
			},
		},
		"it runs": {
			state: running(time.Minute),
			want: runtime.State{
				Running: true, PID: 7, Started: at(-time.Minute),
			},
		},
		"it runs, unseen": {state: running(time.Minute), unseen: true, want: runtime.State{
			Running: true, Started: at(-time.Minute),
			Problem: "the agent does not see the process of the pod: the pod of the agent needs hostPID",
		}},
		"it runs, not seen yet": {
			state: running(time.Second), unseen: true,
			want: runtime.State{
				Running: true, Started: at(-time.Second),
			},
		},
		"it runs an older image": {
			state: running(time.Minute), change: older,
			want: runtime.State{
				Running: true, PID: 7, Started: at(-time.Minute), Outdated: true,
			},
		},
		"it ended": {
			state: exited(3, time.Minute, time.Second),
			want: runtime.State{
				Restarts: 1, LastExit: exit("exit code 3", time.Second),
			},
		},
		"it starts again at once": {
			state: waiting("CrashLoopBackOff", ""), last: exited(1, time.Minute, time.Second),
			want: runtime.State{
				Restarts: 1, LastExit: exit("exit code 1", time.Second),
			},
		},
		"it runs again": {
			state: running(time.Second), last: exited(137, time.Minute, 2*time.Second), restarts: 1,
			want: runtime.State{
				Running: true, PID: 7, Started: at(-time.Second), Restarts: 1, LastExit: exit("signal: killed", 2*time.Second),
			},
		},
		"it waits": {
			state: waiting("CrashLoopBackOff", ""), last: exited(139, time.Minute, time.Second), restarts: 1,
			want: runtime.State{
				Restarts: 2, BackOffUntil: at(9 * time.Second), LastExit: exit("signal: segmentation fault", time.Second),
			},
		},
		"it waits longer": {
			state: waiting("CrashLoopBackOff", ""), last: exited(1, time.Minute, time.Second), restarts: 3,
			want: runtime.State{
				Restarts: 4, BackOffUntil: at(39 * time.Second), LastExit: exit("exit code 1", time.Second),
			},
		},
		"it waits as long as may be": {
			state: waiting("CrashLoopBackOff", ""), last: exited(1, time.Minute, 0), restarts: 40,
			want: runtime.State{
				Restarts: 41, BackOffUntil: at(5 * time.Minute), LastExit: exit("exit code 1", 0),
			},
		},
		"it had stayed": {
			state: waiting("CrashLoopBackOff", ""), last: exited(1, time.Hour, time.Second), restarts: 9,
			want: runtime.State{
				Restarts: 10, LastExit: exit("exit code 1", time.Second),
			},
		},
	}
}

// endings are what kubelets say of pods that are at an end, or were more than one.
func endings() map[string]said {
	exit := func(reason string, at time.Duration) *runtime.Exit {
		return &runtime.Exit{Time: ago(at).Time, Reason: reason, Log: "its log"}
	}
	at := func(d time.Duration) time.Time { return testNow.Add(d) }
	return map[string]said{
		"pods before it had ended": {
			state: running(time.Minute), restarts: 2,
			change: func(rec *record, _ *corev1.Pod) { rec.Restarts = 3 },
			want:   runtime.State{Running: true, PID: 7, Started: at(-time.Minute), Restarts: 5},
		},
		"it is being stopped": {
			state: running(time.Minute), change: stopped,
			want: runtime.State{
				Running: true, PID: 7, Started: at(-time.Minute), Stopping: true,
			},
		},
		"it was stopped": {state: exited(0, time.Minute, time.Second), change: stopped, want: runtime.State{
			Stopping: true, LastExit: exit("exit code 0", time.Second),
		}},
		"it is being deleted by others": {
			state:  running(time.Minute),
			change: func(_ *record, p *corev1.Pod) { p.DeletionTimestamp = ptr.To(ago(0)) },
			want: runtime.State{
				Running: true, PID: 7, Started: at(-time.Minute),
				Problem: "the pod is being deleted, which the agent did not ask for: the agent makes another one when it has ended",
			},
		},
		"it was evicted": {
			state: exited(137, time.Minute, time.Second), change: failed("Evicted", "low on memory"),
			want: runtime.State{
				Restarts: 1, LastExit: exit("signal: killed", time.Second),
				Problem: "the kubelet ended the pod: Evicted: low on memory",
			},
		},
		"it was refused": {
			bare: true, change: failed("OutOfcpu", "no room"),
			want: runtime.State{
				Problem: "the kubelet ended the pod: OutOfcpu: no room",
			},
		},
	}
}

// The states of a process, as a kubelet runs its pod.
func TestStateOf(t *testing.T) {
	all := sayings()
	maps.Copy(all, endings())
	for name, tt := range all {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: "x", CreationTimestamp: ago(time.Hour),
					Annotations: map[string]string{annotationImage: "i"},
				},
				Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Image: "i"}}},
			}
			if !tt.bare {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					State: tt.state, LastTerminationState: tt.last, RestartCount: tt.restarts,
				}}
			}
			rec, pid := &record{}, 7
			if tt.change != nil {
				tt.change(rec, pod)
			}
			if tt.unseen {
				pid = 0
			}
			if diff := cmp.Diff(tt.want, stateOf(rec, pod, pid, "i", testNow)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func taken(_ *record, p *corev1.Pod) { p.Status.StartTime = ptr.To(ago(time.Minute)) }
func older(_ *record, p *corev1.Pod) { p.Annotations[annotationImage] = "old" }
func stopped(_ *record, p *corev1.Pod) {
	p.Annotations[AnnotationStop] = "now"
	p.DeletionTimestamp = ptr.To(ago(0))
}

func failed(reason, message string) func(*record, *corev1.Pod) {
	return func(_ *record, p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	}
}

// The end of a container has the same words as in the other runtimes.
func TestReasonOf(t *testing.T) {
	for want, is := range map[string]corev1.ContainerStateTerminated{
		"exit code 0":                         {Reason: "Completed"},
		"exit code 1":                         {Reason: "Error", ExitCode: 1},
		"exit code 255":                       {Reason: "Error", ExitCode: 255},
		"signal: killed":                      {Reason: "Error", ExitCode: 137},
		"signal: terminated":                  {Reason: "Error", ExitCode: 143},
		"signal: aborted":                     {Reason: "Error", Signal: 6},
		"killed by the kernel: out of memory": {Reason: "OOMKilled", ExitCode: 137},
		"unknown":                             {Reason: "Unknown", ExitCode: 255},
		"cannot be started":                   {Reason: "StartError", ExitCode: 128},
	} {
		if got := reasonOf(&is); got != want {
			t.Errorf("%+v: %q, want %q", is, got, want)
		}
	}
	long := exitOf(&corev1.ContainerStateTerminated{Message: strings.Repeat("x", 9000) + "end"})
	if len(long.Log) != tailSize || !strings.HasSuffix(long.Log, "end") {
		t.Errorf("%d bytes of the log", len(long.Log))
	}
}
