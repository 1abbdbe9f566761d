package wire

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Group is the group of the identities in whose names the leader writes for 'ceph orch'. Nobody has
// a certificate with it.
const Group = "holdfast:orch"

// userPrefix begins the names of these identities; namespace:cluster follows.
const userPrefix = "holdfast:orch:"

// authenticated is the group of everyone whom the API server knows.
const authenticated = "system:authenticated"

// User is the identity in whose name the leader writes what 'ceph orch' of a cluster asks for.
func User(cluster types.NamespacedName) string {
	return userPrefix + cluster.Namespace + ":" + cluster.Name
}

// Groups are the groups of such an identity.
func Groups() []string { return []string{Group, authenticated} }

// ClusterOf is the cluster that an identity writes for; ok is false for everybody else's.
func ClusterOf(user string, groups []string) (cluster types.NamespacedName, ok bool) {
	rest, ok := strings.CutPrefix(user, userPrefix)
	namespace, name, cut := strings.Cut(rest, ":")
	if !ok || !cut || namespace == "" || name == "" || !slices.Contains(groups, Group) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}
