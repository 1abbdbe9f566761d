package ceph

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ownOptions are those that Holdfast itself sets, and of which a ceph.conf by hand is full; host and the like are of Ceph's old scripts.
var ownOptions = []string{
	"fsid", "mon_host", "mon_initial_members", "keyring", "key", "keyfile", "admin_socket", "pid_file", "log_file", "run_dir", "mon_data", "mgr_data",
	"osd_data", "osd_uuid", "public_network", "cluster_network", "public_addr", "cluster_addr", "public_bind_addr", "mds_data", "rgw_data", "monmap",
	"log_to_stderr", "err_to_stderr", "daemonize", "setuser", "setgroup",
	"host", "mon_addr", "osd_journal", "crash_dir", "setuser_match_path",
	"auth_cluster_required", "auth_service_required", "auth_client_required", "auth_supported",
}

var (
	confSection = regexp.MustCompile(`^(global|((mon|mgr|osd|mds|client)([.][A-Za-z0-9._-]+)?))$`)
	confOption  = regexp.MustCompile(`^[a-z][a-z0-9_/]*$`)
	// confSecret are the names of options whose values are passwords and keys, mostly of gateways: a StorageCluster is read by many.
	confSecret = regexp.MustCompile(`(password|passwd|secret|token)$|^rgw_.*_keys?$`)
)

// config are the options that the cluster's ceph.conf sets, those that differ between hosts for each daemon, so that its daemons have them after their hand-over, too; and what Holdfast
// would else set for a cluster of its own.
func (x *adopter) config() map[string]api.CephOptions {
	config := map[string]api.CephOptions{}
	set := func(section, name, value string) {
		if config[section] == nil {
			config[section] = api.CephOptions{}
		}
		config[section][name] = api.CephOptionValue(value)
	}
	var left []string
	differ := x.apart()
	for section, of := range x.Conf {
		for name, value := range of {
			_, differs := differ[section][name]
			switch {
			case slices.Contains(ownOptions, name) || slices.Contains(placeOptions, name) || differs:
			case !taken(section, name):
				left = append(left, "["+section+"] "+name)
			default:
				set(section, name, value)
			}
		}
	}
	x.ownEach(set, differ)
	x.tellPlaces()
	if len(left) > 0 {
		slices.Sort(left)
		x.note("not taken over from ceph.conf: %s", strings.Join(left, ", "))
	}
	own := (&confFacts{osds: x.count(TypeOSD)}).global()
	own[optionDefaultSize] = strconv.Itoa(maxCopies) // Ceph's default, which is not lowered where pools keep as many
	for _, name := range keptSettings {
		is := x.Facts.Settings[name]
		if _, there := config["global"][name]; !there && is != "" && is != own[name] {
			set("global", name, is)
		}
	}
	return config
}
