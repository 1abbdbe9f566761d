package serves

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// slowTakeover is how long an MDS may take over before that needs a user.
const slowTakeover = 2 * time.Minute

func (f *Facts) mds(d *api.Daemon) *api.DaemonService {
	rank, has := f.MDS[d.Spec.ID]
	switch {
	case has && rank.Laggy && !f.fresh(d):
		return out(api.ReasonDaemonHangs, restart(d), "it has a rank, and Ceph gets no sign of life from it")
	case has && rank.State == "up:active":
		return nil
	case has:
		return f.takingOver(d, rank)
	case f.MDS == nil:
		return nil // it was not asked
	case slices.Contains(f.Standbys, d.Spec.ID):
		return f.mdsStandby(d)
	case f.fresh(d):
		return nil
	}
	return out(api.ReasonDaemonHangs, restart(d), "its process runs, and Ceph gets no sign of life from it")
}

func (f *Facts) mdsStandby(d *api.Daemon) *api.DaemonService {
	fs := filesystemOf(d)
	if !slices.Contains(f.Closed, fs) {
		return standby("it stands by for filesystem %s, and takes over if an active MDS fails", fs)
	}
	return out(api.ReasonNotJoinable, fmt.Sprintf("let MDS join it with 'holdfast ceph fs set %s joinable true'", fs),
		"its process runs and has no rank: filesystem %s is set so that no MDS joins it ('ceph fs fail', or 'ceph fs set "+
			"%s joinable false')", fs, fs)
}

// filesystemOf is the filesystem that an MDS is for.
func filesystemOf(d *api.Daemon) string {
	for _, arg := range d.Spec.Command {
		if fs, is := strings.CutPrefix(arg, "--mds_join_fs="); is {
			return fs
		}
	}
	return ""
}

func (f *Facts) takingOver(d *api.Daemon, rank Rank) *api.DaemonService {
	next := "wait: it takes over by itself"
	was := d.Status.Service
	if was != nil && was.Reason == api.ReasonTakingOver && f.Now.Sub(was.Since.Time) > slowTakeover {
		next = "it takes long: " + restart(d)
		if rank.State == "up:clientreplay" || rank.State == "up:reconnect" {
			next = fmt.Sprintf("it waits for clients: list them with 'holdfast ceph tell mds.%s client ls', and evict the "+
				"one that does not answer with 'holdfast ceph tell mds.%s client evict id=ID'", d.Spec.ID, d.Spec.ID)
		}
	}
	return out(api.ReasonTakingOver, next, "it has a rank of filesystem %s and is not active yet: it is in state %s",
		rank.Filesystem, strings.TrimPrefix(rank.State, "up:"))
}
