package heartbeat

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/platform/twins"
)

// listener is a leader with a clock that hears the agents of host h4.
type listener struct {
	beats *Beats
	time  time.Time
	host  api.Host
}

func newListener() *listener {
	l := &listener{beats: New(), time: time.Unix(1_000_000_000, 0)}
	l.host.Name = "h4"
	l.beats.now = func() time.Time { return l.time }
	l.beats.began = l.time.Add(-time.Hour)
	return l
}

// hears is a renewal by an agent, after some time; a name stands for an instance, "old" for an
// agent of an earlier version.
func (l *listener) hears(name string, after time.Duration) {
	l.time = l.time.Add(after)
	renewed := metav1.NewMicroTime(l.time)
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	if name != "old" {
		i := instance.Instance{
			Boot: "8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11", Process: strings.Repeat(name, 16),
			Address: "10.0.0." + map[string]string{"a": "4", "b": "9", "c": "7"}[name],
		}
		lease.Annotations = map[string]string{instance.Annotation: i.String()}
	}
	l.beats.Saw("h4", lease, false)
	if want, ok := l.beats.Single(&l.host, l.time); ok {
		l.host.Status.Conditions = []metav1.Condition{want}
	}
}

func TestJudgeTwins(t *testing.T) {
	const beat = 5 * time.Second
	for _, tt := range []struct {
		name, heard string
		twins       bool
	}{
		{"one agent", "aaaa", false},
		{"started again", "aaabbb", false},
		{"started again and again", "abc", false},
		{"two in turns", "aba", true},
		{"two in turns, later", "aaaaaaaaabababab", true},
		{"three in turns", "abcabc", true},
		{"one of them stopped just now", "ababaa", true},
		{"one of them stopped", "ababaaaa", false},
		{"an earlier version, then this one", "oooaaa", false},
	} {
		l := newListener()
		for _, c := range tt.heard {
			l.hears(map[rune]string{'o': "old"}[c]+strings.Trim(string(c), "o"), beat)
		}
		if text, twins := l.host.Twins(); twins != tt.twins {
			t.Errorf("%s (%s): %v %q", tt.name, tt.heard, twins, text)
		}
	}
}

// Both machines are named, with a reason that programs can read; when it is over, the condition
// says so and is not written again.
func TestJudgeTwins_says(t *testing.T) {
	l := newListener()
	for _, name := range []string{"a", "b", "a", "b"} {
		l.hears(name, 5*time.Second)
	}
	c := l.host.Status.Conditions[0]
	const want = "two machines run as host h4: 10.0.0.4 (boot id 8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11) and " +
		"10.0.0.9 (boot id 8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11)"
	if c.Reason != ReasonTwoMachines || c.Message != want {
		t.Errorf("%+v", c)
	}
	if _, ok := l.beats.Single(&l.host, l.time); ok {
		t.Error("it is written with each look")
	}
	l.time = l.time.Add(twins.For)
	got, ok := l.beats.Single(&l.host, l.time)
	if !ok || got.Status != metav1.ConditionTrue || got.Reason != ReasonOneMachine {
		t.Errorf("after a silence: %v %+v", ok, got)
	}
}

// A new leader does not take it back before it has listened for long enough to hear both.
func TestJudgeTwins_newLeader(t *testing.T) {
	l := newListener()
	l.beats.began = l.time
	l.host.Status.Conditions = []metav1.Condition{{
		Type: api.HostSingleMachine, Status: metav1.ConditionFalse, Reason: ReasonTwoMachines, Message: "x",
	}}
	l.hears("a", 5*time.Second)
	if _, twins := l.host.Twins(); !twins {
		t.Error("it is taken back after one heartbeat")
	}
	for range 3 {
		l.hears("a", 5*time.Second)
	}
	if _, twins := l.host.Twins(); twins {
		t.Error("it is never taken back")
	}
}
