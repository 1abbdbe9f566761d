package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NFSExport declares a directory of a cluster's storage that NFS clients mount (NFSv4). The administrator writes its spec, the engine its
// status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=nfse,categories={holdfast,storage,ceph,glusterfs}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volume`
// +kubebuilder:printcolumn:name="Access",type=string,JSONPath=`.spec.accessType`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NFSExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NFSExportSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status NFSExportStatus `json:"status,omitempty"`
}

// NFSExportSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster && has(self.volume) == has(oldSelf.volume) && (!has(self.volume) || self.volume == oldSelf.volume) && has(self.filesystem) == has(oldSelf.filesystem) && (!has(self.filesystem) || self.filesystem == oldSelf.filesystem)",message="cluster, volume and filesystem cannot be changed: clients would find other files behind the ones that they have open. Create another NFSExport"
// +kubebuilder:validation:XValidation:rule="has(self.volume) != has(self.filesystem)",message="say what to export: the volume of a GlusterFS cluster, or the filesystem of a Ceph cluster"
type NFSExportSpec struct {
	// Cluster is the StorageCluster, in the same namespace, whose storage is exported.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Volume is the Volume to export.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume,omitempty"`
	// Filesystem is the Filesystem to export.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Filesystem string `json:"filesystem,omitempty"`
	// Path is the directory in it. It has to be there.
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/([A-Za-z0-9_.@+-]+(/[A-Za-z0-9_.@+-]+)*)?$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('/[.][.]?(/|$)')",message="path goes neither up nor to itself: . and .. have no place in it"
	Path string `json:"path,omitempty"`
	// Pseudo is the path by which clients mount it; without it, a slash and the name of the NFSExport. No two of a cluster have the same.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]*)+$`
	Pseudo string `json:"pseudo,omitempty"`
	// AccessType says what clients may do.
	// +optional
	// +kubebuilder:default=ReadWrite
	AccessType NFSAccess `json:"accessType,omitempty"`
	// Squash says whose requests are taken for those of nobody.
	// +optional
	// +kubebuilder:default=Root
	Squash NFSSquash `json:"squash,omitempty"`
	// Clients are the addresses or networks (10.0.0.0/24) that may use it; none: everybody.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || isCIDR(self)",message="a client is an address such as 10.0.0.7, or a network such as 10.0.0.0/24"
	Clients []string `json:"clients,omitempty"`
}

// NFSAccess says what the clients of an export may do.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type NFSAccess string

// What clients may do.
const (
	NFSReadWrite NFSAccess = "ReadWrite"
	NFSReadOnly  NFSAccess = "ReadOnly"
)

// NFSSquash says whose requests are taken for those of nobody.
// +kubebuilder:validation:Enum=None;Root;All
type NFSSquash string

// Whose requests are taken for those of nobody.
const (
	NFSSquashNone NFSSquash = "None"
	NFSSquashRoot NFSSquash = "Root"
	NFSSquashAll  NFSSquash = "All"
)

// NFSExportStatus is what the engine knows.
type NFSExportStatus struct {
	ResourceStatus `json:",inline"`
	// Source is what clients mount, such as 10.0.0.1:/vol1. It changes when the server moves to another node.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Source string `json:"source,omitempty"`
	// Node is the StorageNode that serves it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// ExportID is the number by which clients' open files know the export. It stays the same until path is another one:
	// files that are open then can be used no longer.
	// +optional
	ExportID int32 `json:"exportID,omitempty"`
	// Path is the directory that ExportID stands for.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
}

// NFSExportList is a list of NFSExports.
// +kubebuilder:object:root=true
type NFSExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NFSExport `json:"items"`
}

var _ Resource = (*NFSExport)(nil)

// ResourceKind is "NFSExport".
func (*NFSExport) ResourceKind() string { return "NFSExport" }

// ClusterName is the StorageCluster whose storage is exported.
func (e *NFSExport) ClusterName() string { return e.Spec.Cluster }

// Common is the part of the status that all resources have.
func (e *NFSExport) Common() *ResourceStatus { return &e.Status.ResourceStatus }

// TakeStatus gives the export a copy of the status of another one.
func (e *NFSExport) TakeStatus(from Resource) { e.Status = *from.(*NFSExport).Status.DeepCopy() }

// NewResource is an empty NFSExport.
func (*NFSExportList) NewResource() Resource { return &NFSExport{} }

// PseudoOf is the path by which clients mount it.
func (e *NFSExport) PseudoOf() string {
	if e.Spec.Pseudo != "" {
		return e.Spec.Pseudo
	}
	return "/" + e.Name
}
