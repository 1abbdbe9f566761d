// Package installed says which hosts lack the program of a daemon, and how it gets there. It is
// pure.
package installed

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// program is what runs a type of daemons, and the packages of Debian that have it.
type program struct{ name, packages string }

var programs = map[string]program{
	"ceph-mds":        {"ceph-mds", "ceph-mds"},
	"ceph-rgw":        {"radosgw", "radosgw"},
	"ceph-rbd-mirror": {"rbd-mirror", "rbd-mirror"},
	"nfs-ganesha":     {"NFS-Ganesha", "nfs-ganesha nfs-ganesha-"}, // and the storage system
}

// Lacks says whether a host cannot run a type of daemons: its agent has reported what is installed
// there, and the program is not.
func Lacks(h *api.Host, daemonType string) bool {
	if h == nil || h.Status.Release(daemonType) != "" {
		return false
	}
	for reported := range h.Status.Packages {
		if strings.Contains(reported, "-") { // a type of daemons, and not a storage system as a whole
			return true
		}
	}
	return false
}

// Runs says whether a daemon of a type runs on a host: then the program is there, whatever a check
// of it said. One that fails must not move what serves.
func Runs(daemons []api.Daemon, host, daemonType string) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Host == host && d.Spec.Type == daemonType && d.DeletionTimestamp == nil &&
			d.Status.State == api.DaemonRunning
	})
}

// Without are those of the hosts that lack the program, in their order.
func Without(hosts map[string]*api.Host, names []string, daemonType string) (without []string) {
	for _, name := range names {
		if Lacks(hosts[name], daemonType) {
			without = append(without, name)
		}
	}
	return without
}

// Text says that the program is missing on hosts, and what to run there. NFS-Ganesha has a package
// for each kind of storage.
func Text(hosts []string, daemonType, kind string) string {
	p := programs[daemonType]
	return fmt.Sprintf("%s is not installed on %s: run 'apt-get install %s%s' there", p.name, words.Few(hosts),
		p.packages, kind)
}

// Refusal is that of something that needs daemons of a type, and can have none, because all hosts
// that may run one lack the program.
func Refusal(hosts []string, daemonType string) engine.Objection {
	return engine.Refusal(api.ReasonUnsupported, "no host can run it: %s", Text(hosts, daemonType, ""))
}
