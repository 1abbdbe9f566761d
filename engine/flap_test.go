package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFlaps lets an agent go silent and be heard again for a day, and then be steady.
func TestFlaps(t *testing.T) {
	f, now := flaps{}, time.Unix(0, 0)
	var told []Event
	change := func(code Code) {
		now = now.Add(3 * time.Minute)
		told = append(told, f.damp([]Event{{Code: code, Object: "host/h1", Message: string(code)}}, now)...)
	}
	for range 240 {
		change(AgentDown)
		change(AgentUp)
	}
	// Within half an hour there are five or six of each code.
	if n := len(told); n != 2*flapMost {
		t.Fatalf("a flapping agent: %d events", n)
	}
	if last := told[len(told)-2]; last.Code != AgentDown || told[len(told)-1].Code != Flapping {
		t.Errorf("a flapping agent: %v", told)
	}
	if other := f.damp([]Event{{Code: AgentDown, Object: "host/h2"}, {Code: DaemonNew, Object: "host/h1"}}, now); len(other) != 2 {
		t.Errorf("what flaps hides what others do, or what does not flap: %v", other)
	}
	if early := f.damp(nil, now.Add(steadyAfter)); len(early) != 0 {
		t.Errorf("it is steady too early: %v", early)
	}
	steady := f.damp(nil, now.Add(steadyAfter+time.Second))
	if len(steady) != 1 || steady[0].Code != Steady || steady[0].Object != "host/h1" {
		t.Fatalf("it is steady: %v", steady)
	}
	if again := f.damp([]Event{{Code: AgentDown, Object: "host/h1"}}, now.Add(time.Hour)); len(again) != 1 || again[0].Code != AgentDown {
		t.Errorf("when it was steady it may be told of again: %v", again)
	}
}

// TestFlaps_nextLeader hands what is recorded to the next leader, who tells no more of what flaps either.
func TestFlaps_nextLeader(t *testing.T) {
	f, now := flaps{}, time.Unix(0, 0)
	for range flapMost {
		f.damp([]Event{{Code: DaemonRestarted, Object: "daemon/a"}, {Code: DaemonRestarted, Object: fmt.Sprint("daemon/", now.Unix())}}, now)
		now = now.Add(time.Second)
	}
	told := Told{"host/h1": "x"}
	f.state(func(key, value string) { told[key] = value })
	if diff := cmp.Diff(Told{"host/h1": "x", "flap/daemon/a": ""}, told); diff != "" {
		t.Fatal(diff)
	}
	next := told.flaps(now)
	if events := next.damp([]Event{{Code: DaemonRestarted, Object: "daemon/a"}}, now); len(events) != 0 {
		t.Errorf("the next leader tells %v", events)
	}
	if events := next.damp(nil, now.Add(time.Hour)); len(events) != 1 || events[0].Code != Steady {
		t.Errorf("the next leader tells that it is steady: %v", events)
	}
}

// TestFlaps_offline tells that a cluster is offline, whatever it did before, and that it is online again.
func TestFlaps_offline(t *testing.T) {
	f, now := flaps{}, time.Unix(0, 0)
	tell := func(code Code) int { return len(f.damp([]Event{{Code: code, Object: "cluster/c"}}, now)) }
	for range clusterFlapMost {
		tell(ClusterDegraded)
		tell(ClusterOnline)
	}
	if n := tell(ClusterDegraded); n != 0 {
		t.Errorf("a flapping cluster: %d events", n)
	}
	for _, code := range []Code{ClusterOffline, ClusterOnline, ClusterOffline} {
		if n := tell(code); n != 1 {
			t.Errorf("%s: %d events", code, n)
		}
	}
}
