package heartbeat

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

func TestConnected(t *testing.T) {
	started := time.Now()
	host := func(status metav1.ConditionStatus) *api.Host {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
		if status != "" {
			h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: status}}
		}
		return h
	}
	heard := func(known bool) *Beats {
		b := New()
		b.beats["h"] = beat{heard: started, known: known}
		return b
	}
	const silence, second = 15 * time.Second, time.Second
	const short, long = silence - second, silence + second
	for _, tt := range []struct {
		name  string
		have  metav1.ConditionStatus
		beats *Beats
		after time.Duration
		want  metav1.ConditionStatus
	}{
		{"joined and heard", "", heard(true), short, metav1.ConditionTrue},
		{"joined, not heard yet", "", New(), short, ""},
		{"never heard", "", New(), long, metav1.ConditionFalse},
		{"goes on", metav1.ConditionTrue, heard(true), short, ""},
		{"falls silent", metav1.ConditionTrue, heard(true), long, metav1.ConditionFalse},
		{"stays silent", metav1.ConditionFalse, heard(true), long, ""},
		{"heard again", metav1.ConditionFalse, heard(true), short, metav1.ConditionTrue},
		{"silent, an old lease, a new leader", metav1.ConditionFalse, heard(false), short, ""},
		{"connected, a new leader", metav1.ConditionTrue, heard(false), short, ""},
		{"dead under the old leader, a new leader", metav1.ConditionTrue, heard(false), long, metav1.ConditionFalse},
	} {
		got, ok := tt.beats.Connected(host(tt.have), started, started.Add(tt.after), silence)
		if ok != (tt.want != "") || ok && got.Status != tt.want {
			t.Errorf("%s: %v %s, want %q", tt.name, ok, got.Status, tt.want)
		}
	}
}

// TestConnected_obeys: an agent is silent when it is not heard for as long as is given, and its
// Host says for how long that was.
func TestConnected_obeys(t *testing.T) {
	h, started := New(), time.Now()
	for _, silence := range []time.Duration{3 * time.Second, waits.Default().AgentSilent} {
		if got, ok := h.Connected(&api.Host{}, started, started.Add(silence), silence); ok {
			t.Errorf("%s: too soon: %+v", silence, got)
		}
		got, ok := h.Connected(&api.Host{}, started, started.Add(silence+1), silence)
		if want := "no heartbeat of the agent for " + silence.String(); !ok || got.Message != want {
			t.Errorf("%s: %v %q, want %q", silence, ok, got.Message, want)
		}
	}
}

func TestBeats_countRenewalsNotReports(t *testing.T) {
	h := New()
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	h.Saw("h", lease, false)
	first, _ := h.of("h")
	h.Saw("h", lease, false) // as after a broken watch
	if again, _ := h.of("h"); again.heard != first.heard {
		t.Error("a lease that was read again counts as a heartbeat")
	}
	later := metav1.NewMicroTime(renewed.Add(-time.Hour)) // a host whose clock was set back
	lease.Spec.RenewTime = &later
	h.Saw("h", lease, false)
	if again, _ := h.of("h"); !again.known || !again.heard.After(first.heard) {
		t.Error("a renewal does not count as a heartbeat")
	}
}

// TestBeats_farewell: a farewell is no heartbeat, and the next renewal takes it back.
func TestBeats_farewell(t *testing.T) {
	h := New()
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	h.Saw("h", lease, false)
	first, _ := h.of("h")
	lease.Annotations = map[string]string{instance.Farewell: string(absence.Stopped)}
	h.Saw("h", lease, false)
	if got, _ := h.of("h"); got.farewell != absence.Stopped || got.heard != first.heard {
		t.Errorf("after the farewell: %+v", got)
	}
	later := metav1.NewMicroTime(renewed.Add(time.Second))
	lease.Annotations, lease.Spec.RenewTime = nil, &later
	h.Saw("h", lease, false)
	if got, _ := h.of("h"); got.farewell != "" {
		t.Errorf("after the next renewal: %+v", got)
	}
}

// What tables show of a host that is heard is Connected, also after a silence; that it was silent
// is still known.
func TestConnected_returned(t *testing.T) {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Status: api.HostStatus{
		Conditions: []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: ReasonSilent}},
	}}
	now, beats := time.Now(), New()
	beats.beats["h"] = beat{heard: now, known: true}
	want, ok := beats.Connected(h, now, now, time.Minute)
	h.Status.Conditions = []metav1.Condition{want}
	if _, returned := absence.ReturnedSince(h); !ok || !returned || want.Reason != ReasonConnected {
		t.Errorf("condition %+v, returned %v", want, returned)
	}
	if _, ok := beats.Connected(h, now, now, time.Minute); ok {
		t.Error("it is written with each look")
	}
	h.Status.Conditions[0].Reason, h.Status.Conditions[0].Message = "HeardAgain", "" // as an earlier Holdfast wrote it
	want, ok = beats.Connected(h, now, now, time.Minute)
	h.Status.Conditions = []metav1.Condition{want}
	if _, returned := absence.ReturnedSince(h); !ok || !returned || want.Reason != ReasonConnected {
		t.Errorf("after an upgrade: condition %+v, returned %v", want, returned)
	}
}
