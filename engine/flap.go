package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// What goes up and down again and again would fill the log with itself, and push out of it what matters. So the changes of an
// object that flaps are told a few times, then that it flaps, and then nothing more until it has been steady.
const (
	// flapMost is how often one code may be told of one object within flapWindow. Of a cluster, in which many objects may have
	// changed once, it is clusterFlapMost, and of the outcomes of its orchestrations reportFlapMost.
	flapMost, clusterFlapMost, reportFlapMost = 6, 12, 60
	flapWindow                                = 30 * time.Minute
	// steadyAfter is how long an object must not change to be steady again.
	steadyAfter = 10 * time.Minute
)

// toldFlap begins the keys of a Told under which it stands that an object flaps.
const toldFlap = "flap/"

// flapping says how often the changes that can take each other back may be told. That a cluster is OFFLINE is told each time.
var flapping = map[Code]int{
	AgentDown: flapMost, AgentUp: flapMost, HostTwins: flapMost, HostSingle: flapMost, NodeDown: flapMost, NodeUp: flapMost,
	DaemonRunning: flapMost, DaemonFailed: flapMost, DaemonRestarted: flapMost,
	ResourceOnline: flapMost, ResourceDegraded: flapMost, ResourceOffline: flapMost,
	HealthCheckRaised: flapMost, HealthCheckCleared: flapMost,
	ChangedOutside: flapMost, AsSetAgain: flapMost,
	DeviceNew: flapMost, DeviceGone: flapMost, DeviceChanged: flapMost,
	ClusterOnline: clusterFlapMost, ClusterDegraded: clusterFlapMost, HealthChanged: clusterFlapMost, OrchestrateReport: reportFlapMost,
}

// flaps are the objects that changed of late, by name.
type flaps map[string]*flap

// flap is what is remembered of one object.
type flap struct {
	recent map[Code][]time.Time
	last   time.Time
	// told is set when it was told that the object flaps; hidden counts what was not told since, and word is the last of it.
	told   bool
	hidden int
	word   string
}

// damp returns those of events that are told, and what is to be told of objects that began to flap or are steady again.
func (f flaps) damp(events []Event, now time.Time) []Event {
	var told []Event
	for _, e := range events {
		most := flapping[e.Code]
		if e.Code == ClusterOffline {
			delete(f, e.Object) // its way back is told, too
		}
		if most == 0 {
			told = append(told, e)
			continue
		}
		x := f.of(e.Object)
		x.last = now
		if x.told {
			x.hidden++
			x.word = e.Message
			continue
		}
		told = append(told, e)
		if x.count(e.Code, now) >= most {
			x.told = true
			told = append(told, Event{Code: Flapping, Object: e.Object, Time: now, Message: fmt.Sprintf(
				"%s was recorded %d times within %v; further changes are not recorded until the object is unchanged for %v",
				e.Code, most, flapWindow, steadyAfter)})
		}
	}
	return append(told, f.settle(now)...)
}

func (f flaps) of(object string) *flap {
	if f[object] == nil {
		f[object] = &flap{recent: map[Code][]time.Time{}}
	}
	return f[object]
}

// count notes one more change, and returns how many there were within the window.
func (x *flap) count(code Code, now time.Time) int {
	recent := slices.DeleteFunc(x.recent[code], func(t time.Time) bool { return now.Sub(t) > flapWindow })
	x.recent[code] = append(recent, now)
	return len(x.recent[code])
}

// settle tells of those that flapped and are steady, and forgets what did not change for long.
func (f flaps) settle(now time.Time) []Event {
	var told []Event
	for object, x := range f {
		still := now.Sub(x.last)
		if still <= steadyAfter || !x.told && still <= flapWindow {
			continue
		}
		delete(f, object)
		if !x.told {
			continue
		}
		message := fmt.Sprintf("nothing changed for %v", steadyAfter)
		if x.hidden > 0 {
			message += fmt.Sprintf(" after %d unrecorded changes; the last: %s", x.hidden, x.word)
		}
		told = append(told, Event{Code: Steady, Object: object, Message: words.Cut(message, maxDecisionMessage), Time: now})
	}
	slices.SortFunc(told, func(a, b Event) int { return strings.Compare(a.Object, b.Object) })
	return told
}

// state lists what the next leader has to know.
func (f flaps) state(add func(key, value string)) {
	for object, x := range f {
		if x.told {
			add(toldFlap+object, "")
		}
	}
}

// flaps are the objects of which it was told that they flap. When they changed last is not known, so it counts as now.
func (t Told) flaps(now time.Time) flaps {
	f := flaps{}
	for key := range t {
		if object, ok := strings.CutPrefix(key, toldFlap); ok {
			x := f.of(object)
			x.told, x.last = true, now
		}
	}
	return f
}
