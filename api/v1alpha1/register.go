package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of all Holdfast kinds.
const Group = "holdfast.io"

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
