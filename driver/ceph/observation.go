package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/certificate"
	"github.com/holdfast-storage/holdfast/driver/ceph/drift"
	"github.com/holdfast-storage/holdfast/driver/ceph/figures"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/ceph/serves"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// Observation is what a Ceph cluster says of itself; it is the View.System of this driver. Nobody writes to it.
type Observation struct {
	// Reachable is set when the mons answered. Otherwise only Error, Mute and Refused are set.
	Reachable bool
	// Error says why they did not, and Mute which of them do not answer themselves although they run.
	Error string
	Mute  []string
	// Refused is set where they answer and refuse the key of client.admin.
	Refused bool
	FSID    string
	// Health is Ceph's own word: HEALTH_OK, HEALTH_WARN, HEALTH_ERR.
	Health string
	// Checks are Ceph's health checks that are not muted, sorted; Muted are the codes of the others.
	Checks []api.HealthCheck
	Muted  []string
	// Version is the release of the mons, such as 16.2.15; while they differ, the lowest.
	Version string
	// Quorum are the names of the mons in quorum.
	Quorum []string
	// Monmap are the names of the mons in Ceph's own map, sorted.
	Monmap []string
	// MgrAvailable is set when there is an active manager that is ready.
	MgrAvailable bool
	// MgrSince is when the leader first saw this manager active; zero while none is.
	MgrSince  metav1.Time
	ActiveMgr string
	Standbys  int
	// Mgrs are the managers that Ceph knows, and Listed the other daemons by their types; nil where that is not known.
	Mgrs   []string
	Listed map[string][]string
	// OSDs are the OSDs in Ceph's map, by number.
	OSDs map[int]OSD
	// Destroyed are the numbers that Ceph keeps for OSDs that were destroyed, with the host that CRUSH has each on.
	Destroyed map[int]string
	// PGs counts the placement groups that the manager has reported, PGsWanted those that the pools should have.
	PGs, PGsWanted, PGsActive, PGsClean int
	// PGsUnknown are those of which the manager, mostly a new one, has heard nothing yet.
	PGsUnknown int
	// PGsOld is set when what the manager reported may be from before the last change of where data belongs.
	PGsOld bool
	// Foreseen is set in what Foresee tells. Lacked is set there, too, if copies of data were missing when Ceph was asked last.
	Foreseen, Lacked bool
	// BytesTotal is the raw space; zero until the manager has reported for the first time.
	BytesTotal int64
	// Figures are what it holds and does.
	Figures *api.StorageFigures
	// Stoppable says, by host, whether its OSDs may stop. Only hosts in maintenance whose OSDs run are asked about.
	Stoppable map[string]StopAnswer
	// Pools are the pools, and BackfillFull how full an OSD may be to have data moved to it, from 0 to 1.
	Pools        []Pool
	BackfillFull float64
	// Drain are facts that are asked for only while a host is drained or gone; otherwise nil.
	Drain *DrainFacts
	// Crush are the buckets of CRUSH, and the OSDs in them, by their names.
	Crush map[string]Bucket
	// Rules are the CRUSH rules by their numbers. They are asked for only where CRUSH has OSDs of one host in several buckets; otherwise nil.
	Rules     map[int]Rule
	PoolFacts *PoolFacts
	// Defaults are those of new pools, as far as Holdfast decides on them.
	Defaults *DefaultFacts
	// FS is what Ceph says of filesystems and MDS; it is asked for only while the cluster has Filesystems, otherwise nil.
	FS *FSFacts
	// NFS are the reports of NFS servers that run, by their Daemons.
	NFS map[string]*ganesha.Report
	// Clients are the capabilities of the entities of Clients, by their names; those that Ceph does not have are missing.
	Clients map[string]map[string]string
	// Gateways are what agents say of the object gateways, by the names of their Daemons.
	Gateways map[string]*rgw.Report
	// Mirrors is what is said of the mirroring of images.
	Mirrors MirrorFacts
	// Certificates are those that gateways are to show, by the names of their Secrets.
	Certificates map[string]certificate.Certificate
	// Config is Ceph's own configuration.
	Config *ConfigFacts
	// Restartable says of OSDs, by their labels, whether they may stop for a moment. Only the next one that is to be started again is asked about.
	Restartable map[string]StopAnswer
	// Restart says whether the daemon may stop for a moment of which the view asks that; nil where it asks of none.
	Restart *StopAnswer
	// Holdable says of an OSD that flaps, by its label, whether it may stop.
	Holdable map[string]StopAnswer
	// Entities are the names in Ceph's auth database, or nil when they were not asked for.
	Entities map[string]bool
	// Found is what Ceph has of what others may change.
	Found drift.Found
	// Orch is what Ceph says of 'ceph orch'; nil where it was not asked for.
	Orch *orch.Facts
}

// OSD is an OSD in Ceph's map.
type OSD struct {
	UUID string
	Up   bool
	In   bool
	// DownAt is the epoch of the map at which it was marked down the last time.
	DownAt int
	// DownStamp is when that was, in seconds since 1970; zero where it never was.
	DownStamp int64
	// Address is where it listens; empty before its first start.
	Address string
	// Noout is set when the mons do not mark the OSD out, by its own flag.
	Noout bool
	// State are the words of its state, its own flags among them.
	State string
	// Fullness is nearfull, backfillfull or full; empty where there is room.
	Fullness string
}

// statusAnswer is the part of 'status' that matters here.
type statusAnswer struct {
	FSID          string       `json:"fsid"`
	Health        healthAnswer `json:"health"`
	ElectionEpoch int          `json:"election_epoch"`
	QuorumNames   []string     `json:"quorum_names"`
	Monmap        struct {
		Epoch int `json:"epoch"`
	} `json:"monmap"`
	OSDMap struct {
		Epoch int `json:"epoch"`
	} `json:"osdmap"`
	PGMap figures.PGMap `json:"pgmap"`
	FSMap struct {
		Epoch int `json:"epoch"`
	} `json:"fsmap"`
	MgrMap struct {
		Available bool `json:"available"`
		Standbys  int  `json:"num_standbys"`
	} `json:"mgrmap"`
	Services *serves.ServiceMap `json:"servicemap"`
}

// fill copies what the status says into the observation.
func (s *statusAnswer) fill(o *Observation) {
	o.FSID = s.FSID
	s.Health.fill(o)
	o.Quorum = slices.Sorted(slices.Values(s.QuorumNames))
	o.MgrAvailable, o.Standbys = s.MgrMap.Available, s.MgrMap.Standbys
	if s.Services != nil && o.MgrAvailable {
		o.Listed = s.Services.Listed()
	}
	o.PGs, o.BytesTotal = s.PGMap.NumPGs, s.PGMap.BytesTotal
	o.PGsUnknown, o.PGsActive, o.PGsClean = s.PGMap.Count()
}

// monMap is the part of 'mon dump' that matters here.
type monMap struct {
	Epoch int `json:"epoch"`
	Mons  []struct {
		Name string `json:"name"`
	} `json:"mons"`
}

func (m *monMap) fill(o *Observation) {
	o.Monmap = make([]string, len(m.Mons))
	for i, mon := range m.Mons {
		o.Monmap[i] = mon.Name
	}
	slices.Sort(o.Monmap)
}

// mgrStatAnswer is 'mgr stat'.
type mgrStatAnswer struct {
	ActiveName string `json:"active_name"`
	Epoch      int    `json:"epoch"`
}

// osdMap is the part of 'osd dump' that matters here.
type osdMap struct {
	Epoch int `json:"epoch"`
	Crush int `json:"crush_version"`
	OSDs  []struct {
		ID   int    `json:"osd"`
		UUID string `json:"uuid"`
		Up   int    `json:"up"`
		// DownAt is an epoch of the map.
		DownAt int `json:"down_at"`
		In     int `json:"in"`
		// Address is such as 10.0.0.1:6801/2345.
		Address string `json:"public_addr"`
		// Weight is what 'osd reweight' and 'osd out' set, from 0 to 1.
		Weight float64 `json:"weight"`
		// State has the flags of this OSD alone, such as noout, among its words.
		State []string `json:"state"`
	} `json:"osds"`
	More []struct {
		ID        int    `json:"osd"`
		DownStamp string `json:"down_stamp"`
	} `json:"osd_xinfo"`
	Pools        []poolAnswer                 `json:"pools"`
	Profiles     map[string]map[string]string `json:"erasure_code_profiles"`
	BackfillFull float64                      `json:"backfillfull_ratio"`
	Flags        []string                     `json:"flags_set"`
}

// placement is all in the map that decides where data belongs, in one word to be compared.
func (m *osdMap) placement() string {
	var b strings.Builder
	fmt.Fprintf(&b, "crush %d", m.Crush)
	for _, o := range m.OSDs {
		fmt.Fprintf(&b, " osd.%d %d %d %g", o.ID, o.Up, o.In, o.Weight)
	}
	for _, pool := range m.Pools {
		fmt.Fprintf(&b, " pool %s %d %d %d", pool.Name, pool.PGNum, pool.Size, pool.Rule)
	}
	return b.String()
}

// stampLayout is how Ceph writes times.
const stampLayout = "2006-01-02T15:04:05.999999-0700"

func (m *osdMap) fill(o *Observation) {
	o.BackfillFull, o.Found.Flags = m.BackfillFull, m.Flags
	o.OSDs, o.Destroyed = make(map[int]OSD, len(m.OSDs)), map[int]string{}
	for _, d := range m.OSDs {
		if slices.Contains(d.State, "destroyed") {
			o.Destroyed[d.ID] = ""
			continue
		}
		o.OSDs[d.ID] = OSD{
			UUID: d.UUID, Up: d.Up != 0, In: d.In != 0, DownAt: d.DownAt, Noout: slices.Contains(d.State, "noout"),
			Address: drift.IPOf(d.Address), Fullness: writes.Fullness(d.State), State: strings.Join(d.State, " "),
		}
	}
	for _, x := range m.More {
		seen, there := o.OSDs[x.ID]
		if at, err := time.Parse(stampLayout, x.DownStamp); err == nil && there { // 0.000000 is never
			seen.DownStamp = at.Unix()
			o.OSDs[x.ID] = seen
		}
	}
	for _, pool := range m.Pools {
		o.PGsWanted += pool.PGNum
		o.Pools = append(o.Pools, pool.pool())
	}
}

// parseVersions reads 'versions' and returns the lowest release of the mons.
func parseVersions(answer []byte) (string, error) {
	var v struct {
		Mon map[string]int `json:"mon"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return "", fmt.Errorf("reading ceph versions: %w", err)
	}
	lowest := ""
	for text := range v.Mon { // "ceph version 16.2.15 (…) pacific (stable)"
		fields := strings.Fields(text)
		if len(fields) < 3 {
			continue
		}
		if lowest == "" || olderRelease(fields[2], lowest) {
			lowest = fields[2]
		}
	}
	return lowest, nil
}

// olderRelease compares releases such as 16.2.9 and 16.2.15.
func olderRelease(a, b string) bool {
	// Of ten thousand daemons nearly all run what is installed.
	return a != b && compareReleases(a, b) < 0
}

func compareReleases(a, b string) int {
	return slices.Compare(releaseNumbers(a), releaseNumbers(b))
}

// releaseNumbers are the numbers of a release. A part that begins with no number counts as 0.
func releaseNumbers(release string) []int {
	numbers := make([]int, 0, 4)
	for part := range strings.SplitSeq(release, ".") {
		digits := strings.IndexFunc(part, func(c rune) bool { return c < '0' || c > '9' })
		if digits < 0 {
			digits = len(part)
		}
		n, _ := strconv.Atoi(part[:digits])
		numbers = append(numbers, n)
	}
	return numbers
}

// parseEntities reads the names of 'auth ls', and leaves the keys where they are.
func parseEntities(answer []byte) (map[string]bool, error) {
	var a struct {
		Dump []struct {
			Entity string `json:"entity"`
		} `json:"auth_dump"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, fmt.Errorf("reading ceph auth ls: %w", err)
	}
	entities := make(map[string]bool, len(a.Dump))
	for _, e := range a.Dump {
		entities[e.Entity] = true
	}
	return entities, nil
}

// cephStatus is the observation as StorageStatus shows it.
func (o *Observation) cephStatus() *api.CephStatus {
	s := &api.CephStatus{
		FSID: o.FSID, Version: o.Version, Quorum: o.Quorum, ActiveMgr: o.ActiveMgr,
		OSDs: int32(len(o.OSDs)), PGs: int32(o.PGs), PGsClean: int32(o.PGsClean), Muted: o.Muted[:min(len(o.Muted), maxChecks)],
	}
	for _, d := range o.OSDs {
		if d.Up {
			s.OSDsUp++
		}
		if d.In {
			s.OSDsIn++
		}
	}
	return s
}
