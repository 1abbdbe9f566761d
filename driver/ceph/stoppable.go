package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// StopAnswer is what Ceph said when it was asked whether OSDs may stop together ("osd ok-to-stop"): whether each placement
// group would keep as many copies as it needs to be used.
type StopAnswer struct {
	// OSDs are those that the question was about: those of a host, and all that are down already or are to be.
	OSDs []int
	OK   bool
	// Unknown is set when Ceph could not say: it may later.
	Unknown bool
	// Reason is Ceph's sentence when it is not OK.
	Reason string
}

// against is the reason why OSDs may not stop, where the answer is not OK.
func (a StopAnswer) against() api.Reason {
	if a.Unknown {
		return api.ReasonNotAnswering
	}
	return api.ReasonNotOkToStop
}

// covers says whether the question was about all these OSDs. The daemons may have changed since.
func (a StopAnswer) covers(osds []int) bool {
	return !slices.ContainsFunc(osds, func(id int) bool { return !slices.Contains(a.OSDs, id) })
}

// downWithout are the OSDs that would be down if those of a host stopped: its own, those that are down, and those that are
// told to stop.
func downWithout(daemons []api.Daemon, osds map[int]OSD, host string) []int {
	down := map[int]bool{}
	for id, o := range osds {
		down[id] = !o.Up
	}
	for i := range daemons {
		d := &daemons[i]
		goes := d.Spec.Host == host || d.Spec.State == api.WantStopped || asked.Stopped(d)
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && d.Spec.Type == TypeOSD && goes {
			down[id] = true
		}
	}
	var ids []int
	for id, is := range down {
		if is {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// fillStoppable asks about the hosts in maintenance whose OSDs still run: about no other, so that it costs nothing as long as
// all hosts are Active.
func (c *conn) fillStoppable(ctx context.Context, view *engine.View, o *Observation) {
	for i := range view.Hosts {
		h := &view.Hosts[i]
		if h.ModeOf() != api.HostMaintenance || !runsOSD(view.Daemons, h.Name) {
			continue
		}
		if o.Stoppable == nil {
			o.Stoppable = map[string]StopAnswer{}
		}
		o.Stoppable[h.Name] = c.okToStop(ctx, o, downWithout(view.Daemons, o.OSDs, h.Name))
	}
}

func runsOSD(daemons []api.Daemon, host string) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Type == TypeOSD && d.Spec.Host == host && d.Spec.State == api.WantRunning
	})
}

// mgrIgnorance says why the mgr cannot judge yet; nothing when it can. One that has only just become active may know nothing
// of any placement group, and finds nothing in the way of anything then.
func (c *conn) mgrIgnorance(ctx context.Context, o *Observation) string {
	if !o.MgrAvailable { // a command would wait for one
		return "no mgr is active"
	}
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	out, err := c.client.Mgr(ctx, ask("pg stat"), nil)
	var stat struct {
		Ready   bool `json:"pg_ready"`
		Summary struct {
			PGs int `json:"num_pgs"`
		} `json:"pg_summary"`
	}
	switch {
	case err != nil || json.Unmarshal(out, &stat) != nil:
		return "the mgr does not answer"
	case !stat.Ready || stat.Summary.PGs < o.PGsWanted:
		return "the mgr has not reported on all placement groups yet"
	}
	return ""
}

func (c *conn) okToStop(ctx context.Context, o *Observation, osds []int) StopAnswer {
	a := StopAnswer{OSDs: osds}
	if a.Reason = c.mgrIgnorance(ctx, o); a.Reason != "" {
		a.Unknown = true
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	ids := make([]string, len(osds))
	for i, id := range osds {
		ids[i] = strconv.Itoa(id)
	}
	_, err := c.client.Mgr(ctx, command{"prefix": "osd ok-to-stop", "ids": ids, "format": "json"}, nil)
	a.take(err, "the mgr")
	return a
}

// take notes what came of the question.
func (a *StopAnswer) take(err error, who string) {
	var refused *rados.CommandError
	switch {
	case err == nil:
		a.OK = true
	case errors.As(err, &refused) && refused.Errno == syscall.EBUSY:
		a.Reason = refused.Status
	case errors.As(err, &refused):
		a.Unknown, a.Reason = true, refused.Status
	default:
		a.Unknown, a.Reason = true, who+" does not answer"
	}
}
