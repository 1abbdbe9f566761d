package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFold: whatever changes at once, each change is told exactly once, in its code's own order, and what is told keeps to the
// API's bounds.
func TestFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []Event
		for n := range rapid.IntRange(0, 400).Draw(t, "events") {
			code := rapid.SampledFrom([]Code{DaemonNew, DaemonRunning, ClusterOnline}).Draw(t, "code")
			events = append(events, Event{Code: code, Object: fmt.Sprintf("daemon/%d", n), Message: "m"})
		}
		folded := fold("c", events)
		for _, code := range []Code{DaemonNew, DaemonRunning, ClusterOnline} {
			want, have := objectsOf(events, code), objectsOf(folded, code)
			if !slices.Equal(want, have) {
				t.Fatalf("of %s, %v became %v", code, want, have)
			}
			told := len(slices.DeleteFunc(slices.Clone(folded), func(e Event) bool { return e.Code != code }))
			if most := max(foldAbove, (len(want)+foldMost-1)/foldMost); told > most {
				t.Fatalf("%d changes of %s are %d events", len(want), code, told)
			}
		}
		for _, e := range folded {
			if n := len(e.Objects); n > foldMost || n == 1 || n > 0 && e.Object != "cluster/c" {
				t.Fatalf("an event of %s with %d objects", e.Object, n)
			}
		}
	})
}

func objectsOf(events []Event, code Code) []string {
	var objects []string
	for _, e := range events {
		switch {
		case e.Code != code:
		case len(e.Objects) > 0:
			objects = append(objects, e.Objects...)
		default:
			objects = append(objects, e.Object)
		}
	}
	return objects
}

// TestFold_few: what few objects do is told of each, in its place.
func TestFold_few(t *testing.T) {
	var events []Event
	for n := range foldAbove {
		events = append(events,
			Event{Code: DaemonFailed, Object: fmt.Sprintf("daemon/%d", n), Message: "ended"},
			Event{Code: DeviceGone, Object: fmt.Sprintf("host/h/%d", n), Message: "gone"})
	}
	for i, e := range fold("c", events) {
		if e.Code != events[i].Code || e.Object != events[i].Object || e.Message != events[i].Message {
			t.Errorf("event %d became %+v", i, e)
		}
	}
}

// TestFold_alike: a node that is refused is told by itself, however many are accepted in the same moment.
func TestFold_alike(t *testing.T) {
	events := []Event{{Code: NodeChanged, Object: "node/bad", Message: "the node is not accepted: no", form: "the node is not accepted: %s"}}
	for n := range 20 {
		events = append(events, Event{Code: NodeChanged, Object: fmt.Sprintf("node/%d", n), Message: "the node is accepted", form: "the node is accepted"})
	}
	got := fold("ceph", events)
	if len(got) != 2 || got[0].Object != "node/bad" || len(got[1].Objects) != 20 {
		t.Errorf("told is %+v", got)
	}
}

// TestFold_words: one line tells how many there are, and of the first what happened.
func TestFold_words(t *testing.T) {
	var events []Event
	for n := range 12 {
		events = append(events, Event{Code: DaemonFailed, Object: fmt.Sprintf("daemon/osd.%d", n), Message: "the process on host h1 ended: exit code 1"})
	}
	got := fold("ceph", events)
	if want := "12 at once; the first, daemon/osd.0: the process on host h1 ended: exit code 1"; len(got) != 1 || got[0].Message != want {
		t.Errorf("told is %+v, want %q", got, want)
	}
}
