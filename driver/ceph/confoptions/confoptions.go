// Package confoptions says which options of a ceph.conf that was written by hand Holdfast takes over
// when it adopts the cluster. It is pure.
package confoptions

import (
	"regexp"
	"slices"
)

// own are the options that Holdfast itself sets, and of which a ceph.conf by hand is full; host
// and the like are of Ceph's old scripts.
var own = []string{
	"fsid", "mon_host", "mon_initial_members", "keyring", "key", "keyfile", "admin_socket", "pid_file", "log_file",
	"run_dir", "mon_data", "mgr_data", "osd_data", "osd_uuid", "public_network", "cluster_network", "public_addr",
	"cluster_addr", "public_bind_addr", "mds_data", "rgw_data", "monmap", "log_to_stderr", "err_to_stderr",
	"daemonize", "setuser", "setgroup", "host", "mon_addr", "osd_journal", "crash_dir", "setuser_match_path",
	"auth_cluster_required", "auth_service_required", "auth_client_required", "auth_supported",
}

var (
	section = regexp.MustCompile(`^(global|((mon|mgr|osd|mds|client)([.][A-Za-z0-9._-]+)?))$`)
	option  = regexp.MustCompile(`^[a-z][a-z0-9_/]*$`)
	// secret are the names of options whose values are passwords and keys, mostly of gateways:
	// many may read a StorageCluster.
	secret = regexp.MustCompile(`(password|passwd|secret|token)$|^rgw_.*_keys?$`)
)

// Own says whether Holdfast itself sets the option.
func Own(name string) bool { return slices.Contains(own, name) }

// Taken says whether an option of a section may be taken over into a StorageCluster.
func Taken(of, name string) bool {
	return section.MatchString(of) && option.MatchString(name) && !secret.MatchString(name) && !Own(name)
}
