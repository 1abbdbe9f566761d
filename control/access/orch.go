package access

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// place says where a rule for 'ceph orch' holds.
type place string

// The places.
const (
	// ofCluster: the StorageCluster itself.
	ofCluster place = "cluster"
	// inNamespace: the namespace of the cluster.
	inNamespace place = "namespace"
	// ofHosts: objects that belong to no namespace, and the namespace of Actions on hosts.
	ofHosts place = "hosts"
)

// orchKinds are the kinds of resources that 'ceph orch' declares.
const orchKinds = "storagenodes drivegroups filesystems objectstores rbdmirrors"

// orchRules is everything that the leader may do in the name of 'ceph orch' of one cluster.
// OrchAdmission looks at the objects.
var orchRules = []struct {
	verbs, resources string
	at               place
}{
	{"get list watch", "storageclusters " + orchKinds + " daemons actions", inNamespace},
	{"get list watch", "hosts actions", ofHosts},
	{"patch", "storageclusters", ofCluster},
	{"create patch delete", orchKinds, inNamespace},
	{"patch", "daemons", inNamespace},
	{"create patch", "actions", inNamespace},
	{"patch", "hosts", ofHosts},
	{"create patch", "actions", ofHosts},
}

// orchMay is the reason of a refusal where no rule fits.
const orchMay = "'ceph orch' declares only services, hosts and disks of its own cluster; for anything else " +
	"use 'holdfast' or kubectl"

// forOrch decides a request in the name of 'ceph orch' of a cluster.
func forOrch(cluster types.NamespacedName, a authorizer.Attributes) (authorizer.Decision, string) {
	for _, r := range orchRules {
		if a.GetAPIGroup() == api.Group && a.GetSubresource() == "" &&
			slices.Contains(strings.Fields(r.verbs), a.GetVerb()) &&
			slices.Contains(strings.Fields(r.resources), a.GetResource()) && r.at.holds(cluster, a) {
			return authorizer.DecisionAllow, ""
		}
	}
	return authorizer.DecisionNoOpinion, orchMay
}

func (p place) holds(cluster types.NamespacedName, a authorizer.Attributes) bool {
	switch p {
	case ofCluster:
		return a.GetNamespace() == cluster.Namespace && a.GetName() == cluster.Name
	case inNamespace:
		return a.GetNamespace() == cluster.Namespace
	case ofHosts:
		return a.GetNamespace() == "" && a.GetResource() == "hosts" || a.GetNamespace() == api.SystemNamespace
	}
	return false
}
