package ends

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestKeeps has a process killed once a minute: at the fourth end it keeps ending, and some minutes after the last
// one no more. What is told twice counts once.
func TestKeeps(t *testing.T) {
	began := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	d := &api.Daemon{Spec: api.DaemonSpec{State: api.WantRunning}}
	d.Status.State = api.DaemonRunning
	for i := range 12 {
		now := began.Add(time.Duration(i) * time.Minute)
		exit := &api.DaemonExit{Time: metav1.NewMicroTime(now.Add(999 * time.Nanosecond))}
		for _, state := range []api.DaemonState{api.DaemonBackOff, api.DaemonRunning} {
			next := api.DaemonStatus{State: state, Restarts: int32(i + 1), LastExit: exit}
			next.Ends = Next(&d.Status, &next)
			d.Status = next
		}
		if n, keeps := Keeps(d, now.Add(time.Second)); n != min(i+1, most) || keeps != (i+1 >= many) {
			t.Errorf("after %d ends: %d, %v", i+1, n, keeps)
		}
	}
	last := began.Add(11 * time.Minute)
	for after, want := range map[time.Duration]bool{6 * time.Minute: true, 8 * time.Minute: false} {
		if _, keeps := Keeps(d, last.Add(after)); keeps != want {
			t.Errorf("%v after the last end: %v", after, keeps)
		}
	}
	if anew := Next(&d.Status, &api.DaemonStatus{State: api.DaemonRunning}); anew != nil {
		t.Errorf("started anew: %v", anew)
	}
	failed := &api.DaemonStatus{State: api.DaemonFailed, LastExit: d.Status.LastExit}
	if kept := Next(&d.Status, failed); len(kept) != len(d.Status.Ends) {
		t.Errorf("a daemon that fails to be prepared: %v", kept)
	}
}
