package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectStoreUser declares a user of an ObjectStore, who is called as it is. Its keys lie in a Secret. The administrator writes its spec, the
// engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=osu,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Store",type=string,JSONPath=`.spec.store`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secret`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name of an ObjectStoreUser may have at most 63 lower-case letters, digits and hyphens: it is the user's name in the store"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'anonymous'",message="anonymous is the gateways' own word for those without a key: choose another name"
type ObjectStoreUser struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ObjectStoreUserSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ObjectStoreUserStatus `json:"status,omitempty"`
}

// ObjectStoreUserSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster && self.store == oldSelf.store",message="cluster and store cannot be changed: create another ObjectStoreUser"
type ObjectStoreUserSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the store lies in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Store is the ObjectStore.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Store string `json:"store"`
	// DisplayName is what others read who see whose a bucket is. Without it the name.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\n\r]*$`
	DisplayName string `json:"displayName,omitempty"`
	// Quota bounds what the user may have.
	// +optional
	Quota ObjectStoreQuota `json:"quota,omitempty"`
	// Capabilities let the user administer the store by the gateways' Admin Ops API, such as {usage: read, buckets: "*"}. Without any it has its
	// own buckets alone.
	// +optional
	Capabilities ObjectStoreCaps `json:"capabilities,omitempty"`
	// DeletionPolicy says what happens when the ObjectStoreUser is deleted. Its keys are taken away in any case. Under Retain a user that has
	// buckets stays with them, and an ObjectStoreUser of the same name takes them over again; under Wipe the deletion waits until it has none.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ObjectStoreQuota bounds what a user may have. When it is reached, requests for more are refused. The gateways count objects and bytes each by
// itself, and tell each other of them only every few minutes, so that several can let in somewhat more.
type ObjectStoreQuota struct {
	// MaxBuckets is 1000 where nothing is said.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxBuckets *int32 `json:"maxBuckets,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxObjects *int64 `json:"maxObjects,omitempty"`
	// MaxSize is how much there may be in all buckets together, such as 100Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="maxSize must be more than nothing, such as 100Gi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !isQuantity(self) || quantity(self).isInteger()",message="maxSize must be whole bytes: m stands for thousandths; write 500Mi"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// ObjectStoreCaps maps what an administrator's request may be about to what may be done with it (Ceph docs, "RGW admin guide: add admin capabilities").
// +kubebuilder:validation:MaxProperties=8
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['users', 'buckets', 'metadata', 'usage', 'zone', 'info'])",message="capabilities concern users, buckets, metadata, usage, zone or info"
type ObjectStoreCaps map[string]ObjectStorePerm

// ObjectStorePerm is what may be done: "*" is both.
// +kubebuilder:validation:Enum=read;write;*
type ObjectStorePerm string

// ObjectStoreUserStatus is what the engine knows of the user.
type ObjectStoreUserStatus struct {
	ResourceStatus `json:",inline"`
	// Secret has the user's keys as accessKey and secretKey.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`
	// Endpoints are where the store is served.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Endpoints []string `json:"endpoints,omitempty"`
	// Applied tells which spec and which keys the store has, for the engine alone.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Applied string `json:"applied,omitempty"`
}

// ObjectStoreUserList is a list of ObjectStoreUsers.
// +kubebuilder:object:root=true
type ObjectStoreUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectStoreUser `json:"items"`
}

var _ Resource = (*ObjectStoreUser)(nil)

// ResourceKind is "ObjectStoreUser".
func (*ObjectStoreUser) ResourceKind() string { return "ObjectStoreUser" }

// ClusterName is the StorageCluster that the user's store lies in.
func (u *ObjectStoreUser) ClusterName() string { return u.Spec.Cluster }

// Common is the part of the status that all resources have.
func (u *ObjectStoreUser) Common() *ResourceStatus { return &u.Status.ResourceStatus }

// TakeStatus gives the user a copy of the status of another one.
func (u *ObjectStoreUser) TakeStatus(from Resource) {
	u.Status = *from.(*ObjectStoreUser).Status.DeepCopy()
}

// NewResource is an empty ObjectStoreUser.
func (*ObjectStoreUserList) NewResource() Resource { return &ObjectStoreUser{} }
