package writes

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// FS is what Ceph says of a file system.
type FS struct {
	Name string
	// MaxMDS is how many MDS Ceph has be active; 0 while it is set down. Closed is set after 'ceph fs fail'.
	MaxMDS int
	Closed bool
	// MDS are all that are its own.
	MDS []string
	// Damaged and Down are ranks that nobody may have, and that nobody has.
	Damaged, Down []int
	// Active are the MDS that serve, such as mds.web.a; Busy says of others how far they are.
	Active, Busy []string
	// Hung are those that have a rank and give Ceph no sign of life.
	Hung []string
	// ReadOnly are those that serve and write nothing.
	ReadOnly []string
	// Failing are its MDS whose processes do not run.
	Failing []string
	// Standbys are so many MDS that stand by.
	Standbys                 int
	WantActive, WantStandbys int
	Fresh                    bool
}

// JudgeFS says how a file system stands by its MDS.
func JudgeFS(f *FS) Word {
	w := f.unserved()
	if w.Reason != "" {
		w.State = api.ResourceOffline
		if f.Fresh {
			w.State = api.ResourceCreating
		}
		return w.Also(f.Busy...)
	}
	notYet := map[bool]api.ResourceState{true: api.ResourceCreating, false: api.ResourceDegraded}[f.Fresh]
	switch {
	case len(f.ReadOnly) > 0:
		return Word{
			api.ResourceDegraded, api.ReasonReadOnly, words.Few(f.ReadOnly) + " serves it read-only, because a write to " +
				"its metadata pool failed", "run " + quote("holdfast why", f.ReadOnly[0]) + ", and when the pool takes writes " +
				quote("holdfast daemon restart", f.ReadOnly[0]),
		}
	case len(f.Active) < f.WantActive:
		return Word{
			notYet, api.ReasonNotServed, fmt.Sprintf("%d of %d MDS are active", len(f.Active), f.WantActive), f.failingNext(),
		}
	case f.Standbys < f.WantStandbys:
		return Word{
			notYet, api.ReasonNotServed, fmt.Sprintf("%d of %d MDS stand by", f.Standbys, f.WantStandbys), f.failingNext(),
		}
	}
	return well
}

// unserved says why files cannot be reached.
func (f *FS) unserved() Word {
	switch {
	case len(f.Damaged) > 0:
		return Word{
			Reason: api.ReasonDataDamaged, Text: fmt.Sprintf("rank %v is damaged: no MDS may serve it", f.Damaged),
			Next: f.readLogs() + "repair it, and let an MDS try again with " +
				quote(fmt.Sprintf("holdfast ceph mds repaired %s:%d", f.Name, f.Damaged[0])),
		}
	case f.Closed:
		return Word{
			Reason: api.ReasonNotJoinable, Text: "no MDS may serve it: it is set not joinable, as by 'ceph fs fail'",
			Next: "when the reason is over, run " + quote("holdfast ceph fs set", f.Name, "joinable true"),
		}
	case f.MaxMDS == 0:
		return Word{
			Reason: api.ReasonChangedOutside, Text: "no MDS serves it: it is set down in Ceph",
			Next: "when the reason is over, run " + quote("holdfast ceph fs set", f.Name, "down false"),
		}
	case len(f.Hung) > 0:
		return Word{
			Reason: api.ReasonNotServed, Text: "Ceph gets no sign of life from " + words.Few(f.Hung) + ", and no other MDS " +
				"takes over", Next: "run " + quote("holdfast why", f.Hung[0]),
		}
	case len(f.Down) > 0:
		return Word{Reason: api.ReasonNotServed, Text: fmt.Sprintf("no MDS serves rank %v", f.Down), Next: f.failingNext()}
	case len(f.Active) == 0 && len(f.Busy) == 0:
		return Word{Reason: api.ReasonNotServed, Text: "no MDS is active yet", Next: f.failingNext()}
	case len(f.Busy) > 0:
		return Word{Reason: api.ReasonStarting, Next: "wait; an MDS takes over"}
	}
	return Word{}
}

// readLogs has a user read what its MDS wrote: the one that had a damaged rank has it no more.
func (f *FS) readLogs() string {
	var all []string
	for _, mds := range f.MDS {
		all = append(all, quote("holdfast logs", mds))
	}
	if len(all) == 0 {
		return ""
	}
	return "see what its MDS wrote after '[ERR]' (" + words.Few(all) + "), "
}

func (f *FS) failingNext() string {
	if len(f.Failing) > 0 {
		return "run " + quote("holdfast why", slices.Min(f.Failing))
	}
	return "wait; an MDS takes over"
}

// Store is what is known of the gateways of an object store.
type Store struct {
	// Up of All gateways answer.
	Up, All int
	// Silent says why the others do not, and Failing are their names, such as rgw.web.a.
	Silent  string
	Failing []string
	// Held is set while they wait for something that is said already.
	Held, Fresh bool
}

// JudgeStore says how a store stands by its gateways.
func JudgeStore(s *Store) Word {
	w := Word{Reason: api.ReasonNotServed, Text: s.Silent, Next: "wait; its gateways start"}
	if len(s.Failing) > 0 {
		w.Next = "run " + quote("holdfast why", slices.Min(s.Failing))
	}
	switch {
	case s.All == 0 && s.Held:
		return Word{State: api.ResourceCreating}
	case s.Up == 0 && s.Fresh, s.All == 0:
		w.State = api.ResourceCreating
	case s.Up == 0:
		w.State = api.ResourceOffline
	case s.Up < s.All:
		w.State = api.ResourceDegraded
	default:
		return well
	}
	return w
}
