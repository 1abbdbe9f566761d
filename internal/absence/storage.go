package absence

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Storage is what the storage system says of the daemons of a host, by their short names, such as osd.3.
type Storage struct {
	Up, Down []string
}

// StorageOf is what the storage systems say of the daemons of a host. What it does not say is in neither list.
func StorageOf(host string, daemons []*api.Daemon, statuses []api.StorageStatus) (s Storage) {
	for _, d := range daemons {
		i := slices.IndexFunc(statuses, func(x api.StorageStatus) bool {
			return x.Namespace == d.Namespace && x.Name == d.Spec.Cluster
		})
		if d.Spec.Host != host || i < 0 {
			continue
		}
		name := strings.TrimPrefix(d.Spec.Type, "ceph-") + "." + d.Spec.ID
		switch is(&statuses[i].Status, d) {
		case up:
			s.Up = append(s.Up, name)
		case down:
			s.Down = append(s.Down, name)
		case unsaid:
		}
	}
	slices.Sort(s.Up)
	slices.Sort(s.Down)
	return s
}

// word is what a storage system says of a daemon.
type word int

const (
	unsaid word = iota
	up
	down
)

// is what Ceph says of a mon or an OSD. Of others, and while Ceph does not answer, nothing is known.
func is(s *api.StorageStatusStatus, d *api.Daemon) word {
	if s.Ceph == nil || s.StaleSince != nil || s.Health == "" {
		return unsaid
	}
	switch d.Spec.Type {
	case "ceph-mon":
		if slices.Contains(s.Ceph.Quorum, d.Spec.ID) {
			return up
		}
		return down
	case "ceph-osd":
		return ofOSD(s, "osd."+d.Spec.ID)
	}
	return unsaid
}

// mostDetails is how many details a check keeps.
const mostDetails = 8

// ofOSD reads the details of Ceph's check OSD_DOWN, which name the OSDs that are in and down.
func ofOSD(s *api.StorageStatusStatus, name string) word {
	if s.Ceph.OSDsUp == s.Ceph.OSDs {
		return up
	}
	i := slices.IndexFunc(s.Checks, func(c api.HealthCheck) bool { return c.Code == "OSD_DOWN" })
	if i < 0 {
		return unsaid // those that are down may be out, or the check is muted
	}
	for _, line := range s.Checks[i].Detail {
		if first, _, _ := strings.Cut(line, " "); first == name {
			return down
		}
	}
	if s.Ceph.OSDs-s.Ceph.OSDsUp > int32(len(s.Checks[i].Detail)) || len(s.Checks[i].Detail) >= mostDetails {
		return unsaid
	}
	return up
}

// String says it in a sentence without a full stop; it is empty where nothing is known.
func (s Storage) String() string {
	switch {
	case len(s.Up) > 0 && len(s.Down) > 0:
		return fmt.Sprintf("Ceph reports %s as up, and %s as down", words.Few(s.Up), words.Few(s.Down))
	case len(s.Down) > 0:
		return fmt.Sprintf("Ceph reports %s as down", words.Few(s.Down))
	case len(s.Up) > 0:
		return fmt.Sprintf("Ceph reports %s as up: the storage on the host serves", words.Few(s.Up))
	}
	return ""
}
