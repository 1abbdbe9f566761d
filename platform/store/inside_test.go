package store

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

func TestWithoutValues(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"key": []byte("very secret")}}
	if _, err := withoutValues(secret); err != nil {
		t.Fatal(err)
	}
	if value, ok := secret.Data["key"]; !ok || value != nil {
		t.Errorf("the cache would hold %q", secret.Data)
	}
}

func TestJudge(t *testing.T) {
	started := time.Now()
	host := func(status metav1.ConditionStatus) *api.Host {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
		if status != "" {
			h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: status}}
		}
		return h
	}
	heard := func(known bool) *heartbeats {
		b := newHeartbeats()
		b.beats["h"] = beat{heard: started, known: known}
		return b
	}
	const silence, second = 15 * time.Second, time.Second
	const short, long = silence - second, silence + second
	for _, tt := range []struct {
		name  string
		have  metav1.ConditionStatus
		beats *heartbeats
		after time.Duration
		want  metav1.ConditionStatus
	}{
		{"joined and heard", "", heard(true), short, metav1.ConditionTrue},
		{"joined, not heard yet", "", newHeartbeats(), short, ""},
		{"never heard", "", newHeartbeats(), long, metav1.ConditionFalse},
		{"goes on", metav1.ConditionTrue, heard(true), short, ""},
		{"falls silent", metav1.ConditionTrue, heard(true), long, metav1.ConditionFalse},
		{"stays silent", metav1.ConditionFalse, heard(true), long, ""},
		{"heard again", metav1.ConditionFalse, heard(true), short, metav1.ConditionTrue},
		{"silent, an old lease, a new leader", metav1.ConditionFalse, heard(false), short, ""},
		{"connected, a new leader", metav1.ConditionTrue, heard(false), short, ""},
		{"dead under the old leader, a new leader", metav1.ConditionTrue, heard(false), long, metav1.ConditionFalse},
	} {
		s := &Store{beats: tt.beats}
		got, ok := s.judge(host(tt.have), started, started.Add(tt.after), silence)
		if ok != (tt.want != "") || ok && got.Status != tt.want {
			t.Errorf("%s: %v %s, want %q", tt.name, ok, got.Status, tt.want)
		}
	}
}

// TestJudge_obeys: an agent is silent when it is not heard for as long as is given, and its Host
// says for how long that was.
func TestJudge_obeys(t *testing.T) {
	s, started := &Store{beats: newHeartbeats()}, time.Now()
	for _, silence := range []time.Duration{3 * time.Second, waits.Default().AgentSilent} {
		if got, ok := s.judge(&api.Host{}, started, started.Add(silence), silence); ok {
			t.Errorf("%s: too soon: %+v", silence, got)
		}
		got, ok := s.judge(&api.Host{}, started, started.Add(silence+1), silence)
		if want := "no heartbeat of the agent for " + silence.String(); !ok || got.Message != want {
			t.Errorf("%s: %v %q, want %q", silence, ok, got.Message, want)
		}
	}
}

func TestHeartbeats_countRenewalsNotReports(t *testing.T) {
	h := newHeartbeats()
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	h.saw("h", lease, false)
	first, _ := h.of("h")
	h.saw("h", lease, false) // as after a broken watch
	if again, _ := h.of("h"); again.heard != first.heard {
		t.Error("a lease that was read again counts as a heartbeat")
	}
	later := metav1.NewMicroTime(renewed.Add(-time.Hour)) // a host whose clock was set back
	lease.Spec.RenewTime = &later
	h.saw("h", lease, false)
	if again, _ := h.of("h"); !again.known || !again.heard.After(first.heard) {
		t.Error("a renewal does not count as a heartbeat")
	}
}

// TestHeartbeats_farewell: a farewell is no heartbeat, and the next renewal takes it back.
func TestHeartbeats_farewell(t *testing.T) {
	h := newHeartbeats()
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	h.saw("h", lease, false)
	first, _ := h.of("h")
	lease.Annotations = map[string]string{instance.Farewell: string(absence.Stopped)}
	h.saw("h", lease, false)
	if got, _ := h.of("h"); got.farewell != absence.Stopped || got.heard != first.heard {
		t.Errorf("after the farewell: %+v", got)
	}
	later := metav1.NewMicroTime(renewed.Add(time.Second))
	lease.Annotations, lease.Spec.RenewTime = nil, &later
	h.saw("h", lease, false)
	if got, _ := h.of("h"); got.farewell != "" {
		t.Errorf("after the next renewal: %+v", got)
	}
}

// What tables show of a host that is heard is Connected, also after a silence; that it was silent
// is still known.
func TestJudge_returned(t *testing.T) {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Status: api.HostStatus{
		Conditions: []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: ReasonSilent}},
	}}
	now, beats := time.Now(), newHeartbeats()
	beats.beats["h"] = beat{heard: now, known: true}
	want, ok := (&Store{beats: beats}).judge(h, now, now, time.Minute)
	h.Status.Conditions = []metav1.Condition{want}
	if _, returned := absence.ReturnedSince(h); !ok || !returned || want.Reason != ReasonConnected {
		t.Errorf("condition %+v, returned %v", want, returned)
	}
	if _, ok := (&Store{beats: beats}).judge(h, now, now, time.Minute); ok {
		t.Error("it is written with each look")
	}
	h.Status.Conditions[0].Reason, h.Status.Conditions[0].Message = "HeardAgain", "" // as an earlier Holdfast wrote it
	want, ok = (&Store{beats: beats}).judge(h, now, now, time.Minute)
	h.Status.Conditions = []metav1.Condition{want}
	if _, returned := absence.ReturnedSince(h); !ok || !returned || want.Reason != ReasonConnected {
		t.Errorf("after an upgrade: condition %+v, returned %v", want, returned)
	}
}

// TestStandHost_pod: a host that is not heard repeats what Kubernetes knows of its agent's pod, also if
// that comes later, and no more when it is heard.
func TestStandHost_pod(t *testing.T) {
	connected := metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Message: "no heartbeat"}
	h := &api.Host{}
	h.Status.Conditions = []metav1.Condition{connected}
	standHost(h, time.Now())
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: api.HostAgentPod, Message: "its pod fails"})
	if !unsaidStanding(h) {
		t.Error("what is known of the pod is not said")
	}
	standHost(h, time.Now())
	ready := meta.FindStatusCondition(h.Status.Conditions, api.ConditionReady)
	if want := "no heartbeat: its pod fails"; unsaidStanding(h) || ready.Message != want {
		t.Errorf("%+v, want %q", ready, want)
	}
	h.Status.Conditions[0].Status = metav1.ConditionTrue
	standHost(h, time.Now())
	if ready := meta.FindStatusCondition(h.Status.Conditions, api.ConditionReady); ready.Message != "" {
		t.Errorf("a host that is heard says %q", ready.Message)
	}
}

// TestStandHost: tools that know no Host see how one is.
func TestStandHost(t *testing.T) {
	connected := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: api.HostAgentConnected, Status: status, Reason: ReasonSilent}
	}
	twins := metav1.Condition{Type: api.HostSingleMachine, Status: metav1.ConditionFalse}
	for _, test := range []struct {
		conditions []metav1.Condition
		want       kstatus.State
	}{
		{nil, kstatus.New},
		{[]metav1.Condition{connected(metav1.ConditionTrue)}, kstatus.Ready},
		{[]metav1.Condition{connected(metav1.ConditionFalse)}, kstatus.Stalled},
		{[]metav1.Condition{connected(metav1.ConditionTrue), twins}, kstatus.Stalled},
	} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h", Generation: 2}}
		h.Status.ObservedGeneration, h.Status.Conditions = -1, test.conditions
		if standHost(h, time.Now()); unsaidStanding(h) {
			t.Errorf("%v: it is not said how it is", test.conditions)
		}
		kstatus.Check(t, test.want, h)
		h.Generation++
		kstatus.Check(t, kstatus.Behind, h)
		if test.want != kstatus.New && !unsaidStanding(h) {
			t.Error("a changed spec is not seen")
		}
		h.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		kstatus.Check(t, kstatus.Deleted, h)
	}
}
