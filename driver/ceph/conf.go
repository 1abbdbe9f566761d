package ceph

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/optionset"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
)

// confFacts is what ceph.conf is made from, beside the daemon itself.
type confFacts struct {
	fsid    string
	members []member
	network api.NetworkSpec
	// osds and osdHosts count the OSDs that are declared and the hosts that they are on.
	osds, osdHosts int
	// place are the options that say where an OSD is in CRUSH, as lines.
	place string
	// orch is set where Holdfast answers 'ceph orch'.
	orch bool
	// texts keeps what was made already: the daemons of one type on one host mostly have the same.
	texts map[confFor]string
}

// confFor is what the ceph.conf of two daemons of a cluster may differ in.
type confFor struct{ daemonType, address, user, place string }

// maxCopies is Ceph's own default for osd_pool_default_size.
const maxCopies = 3

// copies is how many copies of an object new pools keep: three, as Ceph's default is, where there are OSDs enough. With
// two OSDs a third copy would have no place and the cluster would never be clean. Never one, unless there is one OSD.
func (f *confFacts) copies() int { return max(1, min(maxCopies, f.osds)) }

// global makes section [global]: what all daemons of the cluster, and its clients, have in common. Everything else is left
// at Ceph's own default on purpose.
func (f *confFacts) global() map[string]string {
	o := map[string]string{
		"fsid":                f.fsid,
		"mon_host":            monset.MonHost(f.members),
		"mon_initial_members": monset.InitialMembers(f.members),

		"auth_cluster_required": "cephx",
		"auth_service_required": "cephx",
		"auth_client_required":  "cephx",
		// Safer: a client may not take over another one's identity (CVE-2021-20288). Ceph's default serves clients older
		// than 2021, and warns of itself until it is changed.
		"auth_allow_insecure_global_id_reclaim": "false",
		// Quicker, and as safe: a store that was written a second ago, and holds nothing, need not be checked before it
		// is first used. It is read through at its first mount anyway.
		"bluestore_fsck_on_mkfs": "false",
		// One log of the cluster is kept in the mons themselves ('ceph log last'); a second one in a file on each mon's
		// host would grow without anybody to rotate it.
		"mon_cluster_log_to_file": "false",
	}
	// The CRUSH rule that the first pools use is made once, with the cluster, by this option. On fewer than three hosts,
	// copies on distinct hosts would leave a pool of three copies unclean for ever; so copies are then put on distinct
	// OSDs. All else that depends on how large the cluster is stands in Ceph's own configuration, which running mons
	// follow (planDefaults): here it would count until they are started again, and win over that.
	o["osd_crush_chooseleaf_type"] = "1"
	if f.osdHosts < maxCopies {
		o["osd_crush_chooseleaf_type"] = "0"
	}
	if f.network.Public != "" {
		o["public_network"] = f.network.Public
	}
	if f.network.Cluster != "" {
		o["cluster_network"] = f.network.Cluster
	}
	if len(f.members) > 0 && monset.IsIPv6(f.members[0].Address) {
		o["ms_bind_ipv4"], o["ms_bind_ipv6"] = "false", "true"
	}
	return o
}

// daemonOptions makes the section of one type of daemon. Paths stand here and not in [global], so that a client that is
// given the same file does not take them for its own.
func daemonOptions(daemonType, address string) map[string]string {
	o := map[string]string{
		"run_dir":      "${RUN}",
		"admin_socket": "${RUN}/ceph.asok",
		"pid_file":     "${RUN}/ceph.pid",
		// The supervisor keeps and rotates what a daemon writes to its standard error, and shows the end of it when the
		// daemon dies. A log file of Ceph's own would grow until the disk is full: nobody rotates it.
		"log_file":      "",
		"log_to_stderr": "true",
		"err_to_stderr": "true",
	}
	switch daemonType {
	case TypeMon:
		o["mon_data"] = "${DATA}/store"
		// A mon that is added later is in no map yet, and would not know which address is its own.
		o["public_addr"] = address
	case TypeMgr:
		o["mgr_data"], o["keyring"] = "${DATA}", "${DATA}/"+FileKeyring
		o["public_addr"] = address
	case TypeMDS:
		// It would write of each look that its agent takes at it; what it keeps in memory for the case that it dies is as ever.
		o["debug_mds"] = "0/5"
		o["mds_data"], o["keyring"] = "${DATA}", "${DATA}/"+FileKeyring
		o["public_addr"] = address
	case TypeOSD:
		o["osd_data"], o["keyring"] = "${DATA}/store", "${DATA}/"+FileKeyring
		o["public_addr"] = address
	}
	return o
}

// confText is the ceph.conf of one daemon. The user's options win; those that would break the daemon are refused by the API.
// Their values are written as they are, quotes and all: the API documents them as being what ceph.conf has.
func (f *confFacts) confText(daemonType, address, user string) string {
	at := confFor{daemonType, address, user, f.place}
	if text, ok := f.texts[at]; ok {
		return text
	}
	if f.texts == nil {
		f.texts = map[confFor]string{}
	}
	f.texts[at] = f.makeText(daemonType, address, user)
	return f.texts[at]
}

func (f *confFacts) makeText(daemonType, address, user string) string {
	sections := map[string]map[string]string{
		"global":           f.global(),
		kindOf(daemonType): daemonOptions(daemonType, address),
	}
	switch {
	case f.orch && daemonType == TypeMon:
		orch.MonOptions(sections[kindOf(daemonType)])
	case f.orch && daemonType == TypeMgr:
		orch.MgrOptions(sections[kindOf(daemonType)])
	}
	optionset.Parse(f.place).Each(func(section, option, value string) { sections[section][option] = value })
	if daemonType == TypeOSD && f.network.Cluster == "" {
		// Without an address of its own for replication and heartbeats an OSD listens on all of the host's.
		sections["osd"]["cluster_addr"] = address
	}
	return f.render(sections, user)
}

// render writes sections as a file, with the user's options, which win.
func (f *confFacts) render(sections map[string]map[string]string, user string) string {
	optionset.Parse(user).Each(func(section, option, value string) {
		if sections[section] == nil {
			sections[section] = map[string]string{}
		}
		sections[section][option] = value
	})
	var b strings.Builder
	b.WriteString("# Written by Holdfast. Changes belong into spec.ceph.config of the StorageCluster.\n")
	optionset.Write(&b, "global", sections["global"])
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		if section != "global" {
			optionset.Write(&b, section, sections[section])
		}
	}
	return b.String()
}

// at are the same facts for an OSD of a place in CRUSH, with the texts that were made already.
func (f *confFacts) at(place options) *confFacts {
	if f.texts == nil {
		f.texts = map[confFor]string{}
	}
	with := *f
	with.place = place.Text()
	return &with
}

// crushOptions tell an OSD where it puts itself in CRUSH when it starts: into the bucket of its Host, whatever the kernel calls the machine; and one that
// has its place, that it stays there. Where spec says something of that, Ceph's own rules hold.
func (p *planner) crushOptions(o *osd, bucket string, placed bool) options {
	declares := map[string]bool{}
	p.options.Of(sectionsOf(TypeOSD, strconv.Itoa(o.id))).Each(func(_, name, _ string) { declares[name] = true })
	place := options{}
	if declares[optionLocation] || declares[optionLocationHook] {
		return place
	}
	if bucket != "" {
		place.Set("osd", optionLocation, "root="+poolRoot+" host="+bucket)
	}
	if placed && !declares[optionUpdateOnStart] {
		place.Set("osd", optionUpdateOnStart, "false")
	}
	return place
}
