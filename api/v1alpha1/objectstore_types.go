package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectStore declares S3 storage in a Ceph cluster: two pools, and the gateways (radosgw) that serve them. Stores of one cluster share nothing
// but its OSDs. The administrator writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ost,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Gateways",type=string,JSONPath=`.status.gateways`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoints[0]`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",message="the name of an ObjectStore may have at most 40 lower-case letters, digits and hyphens: its pools and gateways are named after it"
type ObjectStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ObjectStoreSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ObjectStoreStatus `json:"status,omitempty"`
}

// ObjectStoreSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another ObjectStore and copy the data"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata) || !has(self.metadata.erasureCoded)",message="metadata cannot be erasureCoded: Ceph keeps indexes in whole copies"
// +kubebuilder:validation:XValidation:rule="(has(self.data) && has(self.data.erasureCoded)) == (has(oldSelf.data) && has(oldSelf.data.erasureCoded)) && (!has(self.data) || !has(self.data.erasureCoded) || self.data.erasureCoded == oldSelf.data.erasureCoded)",message="data cannot be made erasure-coded or replicated later, nor its chunks be changed: create another ObjectStore and copy the data"
type ObjectStoreSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the store lies in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Metadata is how users, the indexes of buckets and all else but the objects are kept, in the pool NAME.rgw.meta. It belongs onto fast devices.
	// +optional
	Metadata ObjectStorePool `json:"metadata,omitempty"`
	// Data is how the objects are kept, in the pool NAME.rgw.data.
	// +optional
	Data ObjectStorePool `json:"data,omitempty"`
	// Gateways are the processes that speak S3.
	// +optional
	Gateways ObjectStoreGateways `json:"gateways,omitempty"`
	// DeletionPolicy says what happens to the data when the ObjectStore is deleted: under Retain the pools stay in Ceph, and an ObjectStore of
	// the same name takes them over again.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ObjectStorePool is how a part of a store is kept. The fields are those of a Pool.
// +kubebuilder:validation:XValidation:rule="!(has(self.replicated) && has(self.erasureCoded))",message="a pool is either replicated or erasureCoded"
type ObjectStorePool struct {
	// Replicated keeps whole copies. It is the default, with three copies.
	// +optional
	Replicated *PoolReplicated `json:"replicated,omitempty"`
	// ErasureCoded cuts objects into chunks, of which some may be lost.
	// +optional
	ErasureCoded *PoolErasureCoded `json:"erasureCoded,omitempty"`
	// FailureDomain is the bucket of CRUSH that holds at most one copy or chunk; without it the widest that has enough of them.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	FailureDomain string `json:"failureDomain,omitempty"`
	// DeviceClass has only devices of one class used.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	DeviceClass string `json:"deviceClass,omitempty"`
	// Compression has devices compress what they write.
	// +optional
	Compression PoolCompression `json:"compression,omitempty"`
}

// ObjectStoreGateways are the processes that speak S3.
type ObjectStoreGateways struct {
	// Placement says on which hosts they run and how many, two without a count. Each has a host of its own, and each serves the whole store.
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// Port is where they listen, at each host's address in the public network.
	// +optional
	// +kubebuilder:default=7480
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// TLS has them speak HTTPS, and nothing else.
	// +optional
	TLS *ObjectStoreTLS `json:"tls,omitempty"`
}

// ObjectStoreTLS is what gateways show for themselves.
type ObjectStoreTLS struct {
	// SecretName is a Secret of type kubernetes.io/tls in the same namespace: tls.crt with the certificate and those that lead to a trusted one,
	// tls.key with its key. When it changes, the gateways are restarted one after the other.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// ObjectStoreStatus is what the engine knows of the store.
type ObjectStoreStatus struct {
	ResourceStatus `json:",inline"`
	// Gateways are those that answer out of those that are wanted, such as "2/2".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Gateways string `json:"gateways,omitempty"`
	// Endpoints are the URLs at which the store is served, whether the gateway answers just now or not.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Endpoints []string `json:"endpoints,omitempty"`
	// Pools are the pools in Ceph by their numbers, which tell them from others of these names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Pools []ObjectStorePoolStatus `json:"pools,omitempty"`
	// CertificateExpires is when the certificate in the Secret ends.
	// +optional
	CertificateExpires *metav1.Time `json:"certificateExpires,omitempty"`
	// Used is what the objects take, to two digits, and Available how much more there is room for.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
	// +optional
	Available *resource.Quantity `json:"available,omitempty"`
}

// ObjectStorePoolStatus is a pool of a store.
type ObjectStorePoolStatus struct {
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	ID   int64  `json:"id"`
}

// ObjectStoreList is a list of ObjectStores.
// +kubebuilder:object:root=true
type ObjectStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectStore `json:"items"`
}

var _ Placed = (*ObjectStore)(nil)

// ResourceKind is "ObjectStore".
func (*ObjectStore) ResourceKind() string { return "ObjectStore" }

// ClusterName is the StorageCluster that the store lies in.
func (s *ObjectStore) ClusterName() string { return s.Spec.Cluster }

// Common is the part of the status that all resources have.
func (s *ObjectStore) Common() *ResourceStatus { return &s.Status.ResourceStatus }

// TakeStatus gives the store a copy of the status of another one.
func (s *ObjectStore) TakeStatus(from Resource) { s.Status = *from.(*ObjectStore).Status.DeepCopy() }

// SelectedHosts selects the hosts of the gateways.
func (s *ObjectStore) SelectedHosts() *HostSelection { return &s.Spec.Gateways.Placement.HostSelection }

// NewResource is an empty ObjectStore.
func (*ObjectStoreList) NewResource() Resource { return &ObjectStore{} }
