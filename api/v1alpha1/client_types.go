package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Client declares one who uses a Ceph cluster: the entity client.NAME with its capabilities. Its key lies in a Secret. The administrator
// writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Entity",type=string,JSONPath=`.status.entity`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secret`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name of a Client may have at most 63 lower-case letters, digits and hyphens: Ceph knows it as client.NAME"
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'admin' && !self.metadata.name.startsWith('bootstrap-')",message="client.admin and client.bootstrap-* are Ceph's own: choose another name"
type Client struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClientSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ClientStatus `json:"status,omitempty"`
}

// ClientSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another Client"
type ClientSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the client uses.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Caps is what the client may do, by what it concerns (Ceph docs, "User management: authorization").
	Caps ClientCaps `json:"caps"`
}

// ClientCaps maps mon, osd, mgr and mds to what the client may do there, such as "allow rw pool=images" or "profile rbd".
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=4
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['mon', 'osd', 'mgr', 'mds'])",message="capabilities concern mon, osd, mgr or mds"
type ClientCaps map[string]ClientCap

// ClientCap is what a client may do, as Ceph writes it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^[^\n\r"]*$`
type ClientCap string

// ClientStatus is what the engine knows of the client.
type ClientStatus struct {
	ResourceStatus `json:",inline"`
	// Entity is what Ceph calls the client.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Entity string `json:"entity,omitempty"`
	// Secret has its key as "key", and as a keyring file as "keyring".
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`
	// FSID and MonHost are what else the client's ceph.conf needs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FSID string `json:"fsid,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MonHost string `json:"monHost,omitempty"`
}

// ClientList is a list of Clients.
// +kubebuilder:object:root=true
type ClientList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Client `json:"items"`
}

var _ Resource = (*Client)(nil)

// ResourceKind is "Client".
func (*Client) ResourceKind() string { return "Client" }

// ClusterName is the StorageCluster that the client uses.
func (c *Client) ClusterName() string { return c.Spec.Cluster }

// Common is the part of the status that all resources have.
func (c *Client) Common() *ResourceStatus { return &c.Status.ResourceStatus }

// TakeStatus gives the client a copy of the status of another one.
func (c *Client) TakeStatus(from Resource) { c.Status = *from.(*Client).Status.DeepCopy() }

// NewResource is an empty Client.
func (*ClientList) NewResource() Resource { return &Client{} }
