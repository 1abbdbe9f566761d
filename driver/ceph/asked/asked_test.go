package asked

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func daemon(state api.DaemonState, annotations map[string]string) *api.Daemon {
	return &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: "c-osd-0", Annotations: annotations},
		Spec:       api.DaemonSpec{Type: "ceph-osd", Host: "h1", State: api.WantRunning},
		Status:     api.DaemonStatus{State: state, Started: &metav1.MicroTime{Time: time.Unix(5, 1000)}},
	}
}

// What Holdfast does not start it does not stop, and who asked is named.
func TestStopped(t *testing.T) {
	d := daemon(api.DaemonRunning, map[string]string{api.AnnotationStop: Value(time.Unix(0, 0), "ann")})
	if text := StopText(d); !Stopped(d) || !strings.Contains(text, "of ann since 1970-01-01T00:00:00Z;") {
		t.Errorf("%v, %q", Stopped(d), text)
	}
	for _, state := range []api.WantedState{api.WantPrepared, api.WantWatched} {
		if d.Spec.State = state; Stopped(d) {
			t.Errorf("one that is wanted %s", state)
		}
	}
	d.Annotations[api.AnnotationStop] = Value(time.Unix(0, 0), "")
	if !strings.Contains(StopText(d), "of a user since") {
		t.Errorf("of nobody: %q", StopText(d))
	}
	if Stopped(nil) || Stopped(daemon(api.DaemonRunning, nil)) {
		t.Error("nobody asked")
	}
}

// A restart is asked of one process, and of no other.
func TestRestart(t *testing.T) {
	d := daemon(api.DaemonRunning, nil)
	if Restart(d) || Restarted(d) || RestartBy(d, "u") {
		t.Error("nobody asked")
	}
	d.Annotations = map[string]string{api.AnnotationRestart: RestartValue(d, "u")}
	if !Restart(d) || Restarted(d) || !RestartBy(d, "u") || RestartBy(d, "v") {
		t.Error("of the process that runs")
	}
	if d.Status.State = api.DaemonStopped; Restart(d) || Restarted(d) {
		t.Error("of a process that has ended")
	}
	d.Status.State, d.Status.Started = api.DaemonRunning, &metav1.MicroTime{Time: time.Unix(4, 0)}
	if Restart(d) || !Restarted(d) {
		t.Error("of another process, by a clock that was set back")
	}
}

// An OSD does not leave at a word: its data has to move.
func TestStays(t *testing.T) {
	d, host := daemon(api.DaemonRunning, map[string]string{api.AnnotationLeave: "now"}), &api.Host{}
	o := Stays(d, []string{"ceph-mon"})
	if o.Reason != api.ReasonUnsupported || !strings.Contains(o.Message, "spec.exclude") {
		t.Errorf("%+v", o)
	}
	if d.Spec.Type = "ceph-mon"; !Stays(d, []string{"ceph-mon"}).None() || Leave(d, host) == "" {
		t.Error("a mon does not leave")
	}
	if host.Spec.Mode = api.HostMaintenance; Leave(d, host) != "" {
		t.Error("it leaves a host in maintenance")
	}
}
