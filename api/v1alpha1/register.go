package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all Holdfast kinds.
const Group = "holdfast.io"

const (
	// SystemNamespace is where Leases, the records of the leader and what belongs to no cluster lie.
	SystemNamespace = "holdfast-system"
	// LeaderLease is the name of the Lease in SystemNamespace that those contend for who may lead. The
	// fence of the leader has the same name.
	LeaderLease = "leader"
)

// HostLease is the name of the Lease in SystemNamespace by which the agent of a host shows that it is alive.
func HostLease(host string) string { return hostLease + host }

const hostLease = "host-"

// HostOfLease is the host that a Lease in SystemNamespace is of.
func HostOfLease(name string) (host string, ok bool) { return strings.CutPrefix(name, hostLease) }

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// SchemeBuilder collects the functions that add this package's kinds to a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

// AddToScheme adds this package's kinds to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Host{}, &HostList{},
		&StorageCluster{}, &StorageClusterList{},
		&StorageNode{}, &StorageNodeList{},
		&StorageStatus{}, &StorageStatusList{},
		&Daemon{}, &DaemonList{},
		&ClusterEvent{}, &ClusterEventList{},
		&Action{}, &ActionList{},
		&Plan{}, &PlanList{},
		&Term{}, &TermList{},
		&Term{}, &TermList{},
		&Volume{}, &VolumeList{},
		&DriveGroup{}, &DriveGroupList{},
		&Pool{}, &PoolList{},
		&Client{}, &ClientList{},
		&Filesystem{}, &FilesystemList{},
		&NFSExport{}, &NFSExportList{},
		&ObjectStore{}, &ObjectStoreList{},
		&RBDMirror{}, &RBDMirrorList{},
		&ObjectStoreUser{}, &ObjectStoreUserList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
