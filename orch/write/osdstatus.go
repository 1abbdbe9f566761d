package write

import (
	"context"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// leavingOSD is a row of 'ceph orch osd rm status'.
type leavingOSD struct {
	ID      int    `json:"osd_id"`
	Host    string `json:"hostname"`
	State   string `json:"drain_status"`
	PGs     int    `json:"pg_count"`
	Replace bool   `json:"replace"`
	Force   bool   `json:"force"`
	Zap     bool   `json:"zap"`
	Started string `json:"drain_started_at"`
}

// pgCounter is what Ceph says of its OSDs; see driver/ceph.Observation.
type pgCounter interface {
	// PGsOn counts the placement groups on an OSD; known is false where Ceph did not say.
	PGsOn(osd string) (count int, known bool)
}

// Leaving tells which OSDs of a cluster do not stay; see driver/ceph/leaving.Set.
type Leaving interface {
	// Place says whether a device leaves.
	Place(at drives.Place) bool
	// Replaced says whether Ceph keeps the number of an OSD that leaves; was is whether it did so.
	Replaced(d *api.Daemon, was bool) bool
}

// unknownPGs stands for a number of placement groups that Ceph does not say.
const unknownPGs = -1

// removalStatus tells of the OSDs that leave, by whomever's word. Ceph is asked for their placement
// groups.
func removalStatus(ctx context.Context, c *Call) (any, error) {
	rows := []leavingOSD{}
	view, _, err := c.Home.Suppose(ctx, api.StorageCeph, c.cluster(), nil)
	if err != nil {
		return nil, err
	}
	going := c.Leaving(view)
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if spec.TypeOf(d) != "osd" || len(d.Spec.Devices) == 0 {
			continue
		}
		if at := (drives.Place{Host: d.Spec.Host, ID: d.Spec.Devices[0].ID}); going.Place(at) {
			rows = append(rows, rowOfLeaving(view, d, going.Replaced(d, false)))
		}
	}
	return rows, nil
}

func rowOfLeaving(view *engine.View, d *api.Daemon, replaced bool) leavingOSD {
	row := leavingOSD{Host: d.Spec.Host, State: "draining", PGs: unknownPGs, Replace: replaced}
	row.ID, _ = strconv.Atoi(d.Spec.ID) // Ceph numbers OSDs
	if of, is := view.System.(pgCounter); is {
		if n, known := of.PGsOn(d.Spec.ID); known {
			row.PGs = n
		}
	}
	if row.PGs == 0 {
		row.State = "done, waiting for purge"
	}
	for i := range view.Actions {
		a := &view.Actions[i]
		if a.Spec.Kind == apply.Kind && !a.Status.State.Final() && apply.Removes(a, deviceOf(d)) {
			row.Started = a.CreationTimestamp.UTC().Format("2006-01-02T15:04:05.000000Z")
			row.Zap = strings.Contains(apply.Wipes(a), d.Spec.Host+"/"+deviceOf(d))
		}
	}
	return row
}
