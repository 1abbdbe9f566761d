package screen

import (
	"fmt"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Numbers are what a storage system has, holds and does, by its own word, a row an element. live is
// what it says at this moment; where that is nil, the status has what there is.
func Numbers(s *api.StorageStatusStatus, live *api.StorageFigures) (rows []string) {
	f := live
	if f == nil {
		f = s.Figures
	}
	add := func(row string) {
		if row != "" {
			rows = append(rows, row)
		}
	}
	add(capacity(s, f))
	add(parts(s, f))
	if f != nil {
		add(clients(f.ClientIO))
		add(recovery(f.Recovery))
	}
	return rows
}

func capacity(s *api.StorageStatusStatus, f *api.StorageFigures) string {
	switch {
	case f != nil && f.RawBytes > 0:
		row := fmt.Sprintf("capacity: %s of %s used (%d %%), %s available",
			size(f.UsedBytes), size(f.RawBytes), f.UsedPercent, size(f.AvailableBytes))
		if f.Objects > 0 || f.DataBytes > 0 {
			row += fmt.Sprintf("; data: %s in %d objects", size(f.DataBytes), f.Objects)
		}
		return row
	case s.Capacity != nil && !s.Capacity.IsZero():
		return "capacity: " + size(s.Capacity.Value())
	}
	return ""
}

// parts are what the system is made of: OSDs and placement groups, or bricks.
func parts(s *api.StorageStatusStatus, f *api.StorageFigures) string {
	var all []string
	if c := s.Ceph; c != nil && c.OSDs > 0 {
		all = append(all, fmt.Sprintf("OSDs: %d up and %d in of %d", c.OSDsUp, c.OSDsIn, c.OSDs))
	}
	switch {
	case f != nil && len(f.PlacementGroups) > 0:
		all = append(all, "PGs: "+groups(f.PlacementGroups))
	case s.Ceph != nil && s.Ceph.PGs > 0:
		all = append(all, fmt.Sprintf("PGs: %d of %d active+clean", s.Ceph.PGsClean, s.Ceph.PGs))
	}
	if g := s.GlusterFS; g != nil {
		all = append(all, fmt.Sprintf("peers: %d of %d connected", g.PeersConnected, g.Peers),
			fmt.Sprintf("bricks: %d of %d online in %d volumes", g.BricksOnline, g.Bricks, g.Volumes),
			fmt.Sprintf("to heal: %d entries, %d in split-brain", g.Heals, g.SplitBrains))
	}
	return strings.Join(all, "; ")
}

// groups are placement groups by state.
func groups(counts []api.PlacementGroupCount) string {
	all, total := []string{}, int32(0)
	for _, g := range counts {
		total += g.Count
		all = append(all, fmt.Sprintf("%d %s", g.Count, g.State))
	}
	if len(all) == 1 {
		return all[0]
	}
	return fmt.Sprintf("%d: %s", total, strings.Join(all, ", "))
}

func clients(io *api.ClientIO) string {
	if io == nil {
		return ""
	}
	if *io == (api.ClientIO{}) {
		return "clients: idle"
	}
	return fmt.Sprintf("clients: read %s/s in %d op/s, write %s/s in %d op/s",
		size(io.ReadBytesPerSecond), io.ReadsPerSecond, size(io.WriteBytesPerSecond), io.WritesPerSecond)
}

// recovery says what is left to copy and to move, how fast that is done, and when it may be over.
func recovery(r *api.RecoveryFigures) string {
	if r == nil {
		return ""
	}
	var left []string
	for _, x := range []struct {
		n    int64
		what string
	}{{r.DegradedCopies, "degraded"}, {r.MisplacedCopies, "misplaced"}} {
		if x.n > 0 {
			left = append(left, fmt.Sprintf("%d of %d copies %s (%.1f %%)", x.n, r.TotalCopies, x.what,
				100*float64(x.n)/float64(max(r.TotalCopies, 1))))
		}
	}
	if r.UnfoundObjects > 0 {
		left = append(left, fmt.Sprintf("%d objects unfound", r.UnfoundObjects))
	}
	text := "recovery: " + strings.Join(left, ", ")
	if r.ObjectsPerSecond == 0 && r.BytesPerSecond == 0 {
		return text + "; nothing is copied at the moment"
	}
	text += fmt.Sprintf("; %s/s, %d objects/s", size(r.BytesPerSecond), r.ObjectsPerSecond)
	if r.SecondsLeft > 0 {
		text += ", about " + span(time.Duration(r.SecondsLeft)*time.Second) + " left"
	}
	return text
}

// span is a duration with its two largest units: 45s, 3m20s, 2h5m, 3d4h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// size is a number of bytes as Ceph writes it.
func size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, unit := float64(bytes), 0
	for n >= 999.5 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%.3g %s", n, units[unit])
}
