package agent

import (
	"fmt"
	"slices"
	"sync"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/internal/instance"
)

const (
	// quiet is how long another instance must not renew the Lease to count as ended. It is some beats, so that one that is late does not.
	quiet = 3 * BeatInterval
	// movedQuiet is quiet for an agent whose data directory comes from another machine, after the agent of that one was seen alive: a mere
	// reboot of the other machine does not make this one the host.
	movedQuiet = 5 * time.Minute
)

// standing is what an agent knows of being the only one that speaks as its host.
type standing int

const (
	// unsure: the servers have not answered yet.
	unsure standing = iota
	// waiting: the agent of another machine renewed the Lease last, and whether that one lives is not known.
	waiting
	// alone: no other agent speaks as the host.
	alone
	// contested: another agent speaks as the host.
	contested
)

// sole judges by the Lease of a host whether this agent is the only one that speaks as the host. A clone of the machine has the same name,
// certificate and key, and writes the same Lease. Each agent writes only over what it has read, so that a write of another one is always
// noticed. It is safe for concurrent use; time comes in as a value.
type sole struct {
	mu   sync.Mutex
	host string
	self instance.Instance
	// former is the id that an earlier version of the agent gave this machine; empty where there is
	// none.
	former string
	// moved is set where the data directory was last used by another machine.
	moved bool
	is    standing
	// wrote is set once the Lease was written, and tried has the times of the last renewals, also of those without an answer.
	wrote bool
	tried []metav1.MicroTime
	// other is the instance seen last, last is when, and seen the version of the Lease then.
	other instance.Instance
	last  time.Time
	seen  string
}

// maxTried bounds what is remembered of renewals: an answer that did not come belongs to the last of them.
const maxTried = 8

// renewal notes the time of a renewal that is about to be written, and returns the instance to write.
func (s *sole) renewal(at metav1.MicroTime, address string) instance.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, metav1.MicroTime{Time: at.Truncate(time.Microsecond)})
	s.tried = s.tried[max(0, len(s.tried)-maxTried):]
	s.self.Address = address
	return s.self
}

// written notes that the Lease was written.
func (s *sole) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote = true
}

// judge looks at the Lease as it is now, and says whether to renew it. An agent that does not know yet whether another one lives writes nothing: the
// other would be taken for contested by it.
func (s *sole) judge(l *coordv1.Lease, now time.Time) (renew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, named := instance.Of(l.Annotations)
	switch {
	case s.mine(l, o, named), !named && !s.wrote:
	case s.wrote, s.seen != "" && s.seen != l.ResourceVersion:
		s.is, s.other, s.last, s.seen = contested, o, now, l.ResourceVersion
	case s.is != contested && s.here(o):
		// An earlier run of the agent on this machine: it has ended, as the lock of the data directory or a boot shows.
	case s.seen == "":
		s.last, s.seen = now, l.ResourceVersion
		if s.is != contested { // the last run of this agent knew the other; this may be that run
			s.is, s.other = waiting, o
		}
	}
	if now.Sub(s.last) >= s.patience() {
		s.is = alone
	}
	return s.is != waiting
}

// here says whether an instance ran on this machine.
func (s *sole) here(o instance.Instance) bool {
	return o.Machine == s.self.Machine || s.former != "" && o.Machine == s.former
}

// mine says whether this very run wrote the Lease, or nobody did. A machine whose memory was copied, too, has the same instance, and
// other times; so has an agent of an earlier version, which leaves the instance as it is.
func (s *sole) mine(l *coordv1.Lease, o instance.Instance, named bool) bool {
	if l.Spec.RenewTime == nil {
		return true
	}
	known := slices.ContainsFunc(s.tried, func(t metav1.MicroTime) bool { return t.Time.Equal(l.Spec.RenewTime.Truncate(time.Microsecond)) })
	return known && (!named || o.Process == s.self.Process)
}

// patience is how long the other has to be silent.
func (s *sole) patience() time.Duration {
	if s.is == contested && s.moved {
		return movedQuiet
	}
	return quiet
}

// standing returns what is known, and the other instance.
func (s *sole) standing() (standing, instance.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is, s.other
}

// who is this instance, with its address.
func (s *sole) who() instance.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self
}

// holds says why nothing new is to be started; empty where nothing stands against it. Two agents that see each other say the same.
func (s *sole) holds() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.is {
	case alone:
		return ""
	case unsure:
		return "a server to say whether another machine runs as host " + s.host
	case waiting:
		return fmt.Sprintf("the agent on %s, which ran as host %s before, to be disconnected for %s", s.other.Place(), s.host, quiet)
	default:
		return instance.Together(s.host, s.self, s.other) + ": nothing new starts on either; stop the agent on the wrong one"
	}
}
