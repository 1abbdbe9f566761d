package serving

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func daemon(name string) api.Daemon {
	d := api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.DaemonSpec{Host: "h1", State: api.WantRunning}}
	d.Status.State = api.DaemonRunning
	return d
}

// killed has a daemon end so many times, the last time a minute ago.
func killed(d api.Daemon, times int) api.Daemon {
	for i := range times {
		at := metav1.NewMicroTime(now.Add(time.Duration(i-times) * time.Minute))
		d.Status.Ends = append(d.Status.Ends, at)
		d.Status.LastExit = &api.DaemonExit{
			Time: at, Reason: "signal: killed", Cause: api.ReasonKilled, Message: "somebody killed it", Next: "look at 'dmesg'",
		}
	}
	return d
}

// TestChanges: what is said of a daemon is written once, with the time since when, and taken back when it serves.
func TestChanges(t *testing.T) {
	all := []api.Daemon{daemon("a"), daemon("b")}
	said := Said{"a": {State: api.OutOfService, Reason: api.ReasonMarkedOut, Message: "out", Next: "in"}}
	changes := Changes(all, said, now)
	if len(changes) != 1 || changes[0].Name != "a" || !changes[0].Service.Since.Equal(&metav1.Time{Time: now}) {
		t.Fatalf("%+v", changes)
	}
	all[0].Status.Service = changes[0].Service
	later := now.Add(time.Hour)
	if again := Changes(all, said, later); len(again) != 0 {
		t.Errorf("the same again: %+v", again)
	}
	if silent := Changes(all, nil, later); len(silent) != 0 {
		t.Errorf("the storage system does not answer: %+v", silent)
	}
	if back := Changes(all, Said{}, later); len(back) != 1 || back[0].Service != nil {
		t.Errorf("it serves: %+v", back)
	}
	all[0].Status.State = api.DaemonBackOff
	if ended := Changes(all, said, later); len(ended) != 1 || ended[0].Service != nil {
		t.Errorf("its process ended: %+v", ended)
	}
}

// TestChanges_killed: a daemon that was killed six times in six minutes keeps ending, whatever the storage system says
// at the moment, until it has run for some minutes.
func TestChanges_killed(t *testing.T) {
	all := []api.Daemon{killed(daemon("a"), 6), killed(daemon("b"), 3)}
	for _, said := range []Said{nil, {}} {
		changes := Changes(all, said, now)
		if len(changes) != 1 || changes[0].Name != "a" || changes[0].Service.Reason != api.ReasonKeepsEnding {
			t.Fatalf("%+v", changes)
		}
		if s := changes[0].Service; strings.Count(s.Message, "somebody killed it") != 1 || s.Next != "look at 'dmesg'" {
			t.Errorf("%+v", s)
		}
	}
	status := api.StorageStatusStatus{Status: api.StorageOnline}
	Worsen(&status, all, now)
	told := func(text string) bool { return strings.Contains(text, "daemon/a on h1 keeps ending") }
	if status.Status != api.StorageDegraded || !told(status.Message) || !slices.ContainsFunc(status.Reasons, told) {
		t.Errorf("%+v", status)
	}
	all[0].Status.Service = Changes(all, Said{}, now)[0].Service
	if calm := Changes(all, nil, now.Add(10*time.Minute)); len(calm) != 1 || calm[0].Service != nil {
		t.Errorf("it runs: %+v", calm)
	}
	status = api.StorageStatusStatus{Status: api.StorageOnline}
	if Worsen(&status, all, now.Add(10*time.Minute)); status.Status != api.StorageOnline || len(status.Reasons) > 0 {
		t.Errorf("it runs: %+v", status)
	}
}
