package home

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// Quick are settings of Ceph for test clusters. They shorten pauses that Ceph makes for the sake of large clusters and
// slow networks, so that a test waits for work and not for clocks. A production cluster keeps Ceph's defaults.
var Quick = map[string]string{
	"mon_election_timeout":      "0.5",
	"mon_lease":                 "0.5",
	"mon_data_avail_warn":       "5", // the test machine's disk may be rather full
	"mon_data_avail_crit":       "2",
	"bdev_aio_poll_ms":          "5",
	"paxos_propose_interval":    "0.05",
	"paxos_min_wait":            "0.01",
	"mon_tick_interval":         "1",
	"mgr_tick_period":           "1",
	"mgr_stats_period":          "1",
	"mon_stat_smooth_intervals": "12", // ticks: rates are means of 12 seconds, as with Ceph's defaults
	"osd_mclock_skip_benchmark": "true",
	"osd_recovery_sleep":        "0",
	"osd_recovery_sleep_hdd":    "0",
	"mon_client_hunt_interval":  "0.5",
	"osd_pool_default_pg_num":   "8",
	"osd_memory_target":         "939524096",
	"mon_allow_pool_delete":     "true",
	"bluestore_fsck_on_mkfs":    "false",
}

// Spec is a StorageCluster with a StorageNode for each host of a lab.
type Spec struct {
	Name           string // of the cluster; empty means ceph
	Mons, Mgrs     int
	DeletionPolicy string
	// Interval is the time between two orchestrations in which nothing changes; empty means the default.
	Interval string
	// ReplaceAfter is how long a monitor's host may be silent; empty means the default.
	ReplaceAfter string
	// Orch is spec.ceph.orch.state; empty for the default.
	Orch   string
	Config map[string]string
	// Devices are the devices of each host, by the host's name.
	Devices map[string][]string
	// Replace are those of them that others take the place of.
	Replace map[string][]string
}

// SpecFor gives all disks of all hosts to the cluster, which is wiped when it is deleted.
func SpecFor(lab *hosts.Lab, mons, mgrs, disks int) Spec {
	s := Spec{Mons: mons, Mgrs: mgrs, DeletionPolicy: "Wipe", Config: Quick, Devices: map[string][]string{}}
	for _, h := range lab.Hosts() {
		for d := range disks {
			s.Devices[h.Name] = append(s.Devices[h.Name], h.Disk(d).ID())
		}
	}
	return s
}

// YAML is the spec as a manifest.
func (s Spec) YAML() string {
	var b strings.Builder
	name := cmp.Or(s.Name, "ceph")
	fmt.Fprintf(&b, "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: %s}\nspec:\n  type: ceph\n", name)
	if s.DeletionPolicy != "" {
		fmt.Fprintf(&b, "  deletionPolicy: %s\n", s.DeletionPolicy)
	}
	if s.Interval != "" {
		fmt.Fprintf(&b, "  interval: %s\n", s.Interval)
	}
	replaceAfter := ""
	if s.ReplaceAfter != "" {
		replaceAfter = ", replaceAfter: " + s.ReplaceAfter
	}
	fmt.Fprintf(&b, "  ceph:\n    mon: {count: %d%s}\n    mgr: {count: %d}\n", s.Mons, replaceAfter, s.Mgrs)
	if s.Orch != "" {
		fmt.Fprintf(&b, "    orch: {state: %s}\n", s.Orch)
	}
	b.WriteString("    config:\n      global:\n")
	for _, option := range slices.Sorted(maps.Keys(s.Config)) {
		fmt.Fprintf(&b, "        %s: %q\n", option, s.Config[option])
	}
	return b.String() + s.NodesYAML()
}

// NodesYAML are the StorageNodes of the spec alone.
func (s Spec) NodesYAML() string {
	var b strings.Builder
	name := cmp.Or(s.Name, "ceph")
	for _, host := range slices.Sorted(maps.Keys(s.Devices)) {
		fmt.Fprintf(&b, "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: %s-%s}\nspec:\n  type: ceph\n  cluster: %s\n", name, host, name)
		fmt.Fprintf(&b, "  nodeSelector: {kubernetes.io/hostname: %s}\n  devices: [%s]\n", host, quoted(s.Devices[host]))
		if len(s.Replace[host]) > 0 {
			fmt.Fprintf(&b, "  replace: [%s]\n", quoted(s.Replace[host]))
		}
	}
	return b.String()
}

func quoted(all []string) string {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%q, ", s)
	}
	return b.String()
}
