// Package access decides who may do what. An identity is the common name and the organizations of a
// client certificate; groups are admins, viewers and hosts.
//
//   - Authorizer decides by group and request. hostRules lists all that a host may do.
//   - HostAdmission looks into the object where the request alone does not tell: a host writes only
//     its own status, heartbeat and finalizers.
//   - orchRules and OrchAdmission hold what the leader writes in the name of 'ceph orch' to the
//     cluster that asked.
//   - keep.go and secrets.go refuse what no person may delete or change while a cluster needs it:
//     Hosts in service, Daemons of active clusters, Secrets with keys in use.
//   - Revocation refuses certificates of hosts that were deleted.
package access

import (
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// The groups that rights hang on.
const (
	// GroupMasters may do everything. The servers themselves belong to it.
	GroupMasters = user.SystemPrivilegedGroup
	// GroupAdmins may do everything.
	GroupAdmins = "holdfast:admins"
	// GroupViewers may read everything but Secrets.
	GroupViewers = "holdfast:viewers"
	// GroupHosts are the agents, each of which may do what its own host needs.
	GroupHosts = "holdfast:hosts"
)

// userHost is what the user names of hosts begin with; the host's name follows.
const userHost = "holdfast:host:"

// userServer is what the user names of servers begin with; the server's name follows.
const userServer = "holdfast:server:"

// ServerUser is the user name that a server asks the others with.
func ServerUser(server string) string { return userServer + server }

// ServerOf is the server that a user name belongs to.
func ServerOf(name string) (server string, ok bool) { return strings.CutPrefix(name, userServer) }

// HostUser is the user name of a host's agent.
func HostUser(host string) string { return userHost + host }

// HostKey is the annotation on each Host that identifies the key that the host joined with (see pki.KeyID). No other machine
// can take the host's name, and a certificate for another key does not count. A host cannot write it.
const HostKey = "holdfast.io/key"

// RenewPath is where a host has its certificate renewed.
const RenewPath = "/holdfast/v1/renew"

// AgentOf returns which host a user is the agent of.
func AgentOf(u user.Info) (host string, ok bool) {
	host, ok = HostOf(u.GetName())
	return host, ok && inGroup(u, GroupHosts)
}

// HostOf is the host that a user name belongs to.
func HostOf(name string) (host string, ok bool) {
	host, ok = strings.CutPrefix(name, userHost)
	return host, ok && host != ""
}

func inGroup(u user.Info, group string) bool {
	for _, g := range u.GetGroups() {
		if g == group {
			return true
		}
	}
	return false
}
