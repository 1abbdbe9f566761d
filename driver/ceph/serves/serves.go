// Package serves says what Ceph makes of daemons whose processes run: which of them stand by, serve less than they
// should or nothing at all, why, and what a user does about it. It is pure.
package serves

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
)

// Facts are what Ceph says.
type Facts struct {
	Now time.Time
	// Fresh is how long after its start a daemon may not be known to Ceph.
	Fresh time.Duration

	// Monmap and Quorum are the mons in Ceph's map and in the quorum; Mute those that do not answer who connects.
	Monmap, Quorum, Mute []string

	// ActiveMgr is the active manager, and Mgrs are all that Ceph knows; nil where that was not asked.
	ActiveMgr string
	Mgrs      []string

	// Flags are those of the whole cluster, and OSDs the OSDs in Ceph's map.
	Flags []string
	OSDs  map[int]OSD
	// Checks are of Ceph's health, which names hosts and device classes with flags.
	Checks []api.HealthCheck
	// Takes are where pools take their OSDs from, in CRUSH; nil where there is no pool.
	Takes []crushmap.Take

	// MDS are those that have a rank, and Standbys those that stand by. Closed are the filesystems that no MDS joins.
	MDS              map[string]Rank
	Standbys, Closed []string
	// Listed are the ids of other daemons that Ceph lists, by their types; nil where that is not known.
	Listed map[string][]string
	// Unanswered says of a gateway why it does not answer; empty where it does, or nobody knows.
	Unanswered func(*api.Daemon) string
}

// OSD is what Ceph says of an OSD.
type OSD struct {
	Up, In bool
	// State are the words of its state in Ceph's map, its flags among them.
	State []string
	// Placed is set where CRUSH has it, and Place is where.
	Placed bool
	Place  crushmap.Place
	// Weight is the weight that it should have by the size of its device; empty where that is not known.
	Weight string
	// Leaves is set where Holdfast takes it out: what that comes to is nothing to mend.
	Leaves bool
}

// Rank is what an MDS does.
type Rank struct {
	Filesystem, State string
	// Laggy is set while Ceph gets no sign of life from it.
	Laggy bool
}

// Of is what Ceph says of a daemon whose process runs; nil where it serves, or where that cannot be known.
func (f *Facts) Of(d *api.Daemon) *api.DaemonService {
	switch d.Spec.Type {
	case "ceph-mon":
		return f.mon(d)
	case "ceph-mgr":
		return f.mgr(d)
	case "ceph-osd":
		return f.osd(d)
	case "ceph-mds":
		return f.mds(d)
	case "ceph-rgw", "ceph-rbd-mirror":
		return f.listed(d)
	}
	return nil
}

// fresh says whether a daemon was started so lately that Ceph may not know it yet.
func (f *Facts) fresh(d *api.Daemon) bool {
	return d.Status.Started == nil || f.Now.Sub(d.Status.Started.Time) < f.Fresh
}

func (f *Facts) mon(d *api.Daemon) *api.DaemonService {
	in := slices.Contains(f.Quorum, d.Spec.ID)
	if in || len(f.Quorum) == 0 || !slices.Contains(f.Monmap, d.Spec.ID) || f.fresh(d) {
		return nil
	}
	quorum := strings.Join(f.Quorum, ", ")
	if slices.Contains(f.Mute, d.Spec.ID) {
		return out(api.ReasonDaemonHangs, restart(d),
			"its process runs and does not answer the leader, and it is not in the quorum (%s)", quorum)
	}
	return out(api.ReasonNotInQuorum, fmt.Sprintf("check the network between host %s and the hosts of the other mons, "+
		"and their clocks ('holdfast ceph time-sync-status'); then %s", d.Spec.Host, restart(d)),
		"its process runs, and it is not in the quorum (%s)", quorum)
}

func (f *Facts) mgr(d *api.Daemon) *api.DaemonService {
	switch {
	case d.Spec.ID == f.ActiveMgr || f.Mgrs == nil:
		return nil
	case slices.Contains(f.Mgrs, d.Spec.ID):
		return standby("mgr.%s is active, and it takes over if that one fails", f.ActiveMgr)
	case f.fresh(d):
		return nil
	}
	return out(api.ReasonDaemonHangs, restart(d), "its process runs, and Ceph gets no sign of life from it")
}

func (f *Facts) listed(d *api.Daemon) *api.DaemonService {
	kind := strings.TrimPrefix(d.Spec.Type, "ceph-")
	if f.fresh(d) {
		return nil
	}
	if f.Unanswered != nil {
		if problem := f.Unanswered(d); problem != "" {
			return out(api.ReasonDaemonHangs, restart(d), "its process runs, and %s", problem)
		}
	}
	if f.Listed == nil || slices.Contains(f.Listed[kind], d.Spec.ID) {
		return nil
	}
	return out(api.ReasonNotListed, restart(d), "its process runs, and Ceph does not list it among its %s daemons", kind)
}

// restart is the step that ends the process of a daemon and starts another one.
func restart(d *api.Daemon) string {
	kind := strings.TrimPrefix(d.Spec.Type, "ceph-")
	return fmt.Sprintf("restart it with 'holdfast daemon restart %s.%s'", kind, d.Spec.ID)
}

func out(reason api.Reason, next, format string, args ...any) *api.DaemonService {
	return &api.DaemonService{
		State: api.OutOfService, Reason: reason, Message: fmt.Sprintf(format, args...), Next: next,
	}
}

func limited(reason api.Reason, next, format string, args ...any) *api.DaemonService {
	s := out(reason, next, format, args...)
	s.State = api.ServiceLimited
	return s
}

func standby(format string, args ...any) *api.DaemonService {
	s := out(api.ReasonStandby, "", format, args...)
	s.State = api.ServiceStandby
	return s
}
