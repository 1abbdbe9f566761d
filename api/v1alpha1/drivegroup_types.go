package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DriveGroup says by their properties which disks of which hosts become OSDs of a Ceph cluster. Which ones those are
// is recorded in its status when the group is declared and whenever its selection changes; a disk that comes later and
// matches is reported, and taken only when the group says so. A disk that was taken stays, until spec.exclude names it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=dg,categories={holdfast,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Taken",type=integer,JSONPath=`.status.taken`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DriveGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DriveGroupSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DriveGroupStatus `json:"status,omitempty"`
}

// DriveGroupSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="(!has(self.dbDevices) || self.dbDevices.all(f, !has(f.match) || f.match != 'Ceph' || !has(f.all) || !f.all)) && (!has(self.walDevices) || self.walDevices.all(f, !has(f.match) || f.match != 'Ceph' || !has(f.all) || !f.all))",message="with match Ceph all is for dataDevices alone: say what the disks of dbDevices and walDevices are like"
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another DriveGroup"
// +kubebuilder:validation:XValidation:rule="has(self.dbDevices) || !has(self.dbSize) && !has(self.dbSlots)",message="dbSize and dbSlots say how the disks of dbDevices are divided: add dbDevices, or leave them out"
// +kubebuilder:validation:XValidation:rule="has(self.walDevices) || !has(self.walSize) && !has(self.walSlots)",message="walSize and walSlots say how the disks of walDevices are divided: add walDevices, or leave them out"
type DriveGroupSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the disks are for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Placement selects the hosts.
	// +kubebuilder:validation:XValidation:rule="has(self.hosts) || has(self.labels) || has(self.pattern)",message="placement must select hosts: by hosts, labels or pattern"
	Placement HostSelection `json:"placement"`
	// DataDevices selects the disks of each host: those that any of these filters matches.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	DataDevices []DriveFilter `json:"dataDevices"`
	// DeviceClass is the CRUSH device class of the OSDs. Without it Ceph finds out for itself.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_-]*$`
	DeviceClass string `json:"deviceClass,omitempty"`
	// NewDevices says what becomes of a disk that matches and was not there, or not empty, when the group was carried
	// out: Report tells of it, Take takes it. Hold takes no disk and reports none, also not of a group that is new or
	// whose selection changed: the group keeps what it has.
	// +optional
	// +kubebuilder:default=Report
	NewDevices NewDevicePolicy `json:"newDevices,omitempty"`
	// Take names disks to take beside, by id, WWN or serial number: those that are waiting.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Take []string `json:"take,omitempty"`
	// Exclude names disks that are not to be taken, by id, WWN or serial number. The OSD on one that was taken leaves the
	// cluster, as if it had been taken out of a StorageNode.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Exclude []string `json:"exclude,omitempty"`
	// Replace names disks that another one takes the place of, as exclude names them: the OSD on each leaves, and Ceph
	// keeps its number for the next OSD that the disk's host gets.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Replace []string `json:"replace,omitempty"`
	// OSDsPerDevice is how many OSDs each disk of dataDevices is divided among, evenly and by partitions, with 5 GB for
	// each at least; without it the whole disk is one OSD's. It is for disks that are taken from now on: those that were
	// taken keep what they have.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 16",message="osdsPerDevice must be from 1 to 16"
	OSDsPerDevice int32 `json:"osdsPerDevice,omitempty"`
	// Encrypted has what is on the disks encrypted (dm-crypt, LUKS 2), with a key of its own for each OSD, in the Secret
	// of the OSD. It is for disks that are taken from now on. A host whose kernel has no dm-crypt is refused.
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// DBDevices selects the disks of each host that hold the databases of its OSDs: those that any of these filters
	// matches, and that are empty. Each is divided by partitions, and serves only OSDs on its own host. When it is lost,
	// so is each OSD that it serves.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	DBDevices []DriveFilter `json:"dbDevices,omitempty"`
	// DBSize is how large each database is, 1Gi at least. Without it a disk is divided evenly among those that it serves,
	// or into dbSlots parts.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1073741824 : isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) >= 0",message="dbSize must be 1Gi or more"
	DBSize *resource.Quantity `json:"dbSize,omitempty"`
	// DBSlots is how many OSDs one disk of dbDevices serves at most. It leaves room for disks that come later.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	DBSlots int32 `json:"dbSlots,omitempty"`
	// WALDevices selects the disks for the write-ahead logs, as dbDevices does for the databases. Where there is none the
	// log lies with the database, so it is of use only where its disks are faster than those.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	WALDevices []DriveFilter `json:"walDevices,omitempty"`
	// WALSize is how large each log is, 128Mi at least.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 134217728 : isQuantity(self) && quantity(self).compareTo(quantity('128Mi')) >= 0",message="walSize must be 128Mi or more"
	WALSize *resource.Quantity `json:"walSize,omitempty"`
	// WALSlots is how many OSDs one disk of walDevices serves at most.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	WALSlots int32 `json:"walSlots,omitempty"`
}

// DriveFilter matches the disks that all that is given in it matches.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.size) || has(self.match) && self.match == 'Ceph' || self.size.size() > 0 && self.size != ':' && self.size.split(':').size() <= 2 && self.size.split(':').all(s, s.size() == 0 || isQuantity(s))",message="size must be such as 1T:2T, 1T:, :2T or 4T"
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !has(self.match) || self.match != 'Ceph' || self.size.matches('^([0-9]+[KMGT]B?:([0-9]+[KMGT]B?)?|:[0-9]+[KMGT]B?|[0-9]+[.]?[0-9]*[KMGT]B?)$')",message="with match Ceph size must be such as 10GB:40GB, 10GB:, :40GB or 3.64TB, with the units K, M, G or T"
// +kubebuilder:validation:XValidation:rule="!has(self.match) || self.match != 'Ceph' || [has(self.paths), has(self.all) && self.all, has(self.model) || has(self.vendor) || has(self.size) || has(self.rotational)].filter(x, x).size() <= 1",message="with match Ceph all and paths stand alone: remove the other fields"
// +kubebuilder:validation:XValidation:rule="!has(self.limit) && !has(self.match) || has(self.all) || has(self.paths) || has(self.model) || has(self.vendor) || has(self.size) || has(self.rotational)",message="limit or match alone selects nothing: add 'all: true' or a property of the disks"
type DriveFilter struct {
	// All matches all disks.
	// +optional
	All bool `json:"all,omitempty"`
	// Paths are the disks' ids, or their paths or links below /dev. A kernel name such as /dev/sdb may mean another disk
	// after the next boot.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=256
	Paths []string `json:"paths,omitempty"`
	// Model is a part of the model's name, in any case of letters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`
	// Vendor is a part of the vendor's name, in any case of letters.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Vendor string `json:"vendor,omitempty"`
	// Size is a range such as "1T:2T", with its ends; "1T:" and ":2T" have one. One size, such as "4T", is that size
	// within one percent. Units are those of Kubernetes: 4T is 4 times 10^12 bytes, as on the label of a disk, and 4Ti 4
	// times 2^40. See match for the sizes of Ceph.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Size string `json:"size,omitempty"`
	// Rotational is true for disks that spin.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
	// Limit is how many disks of one host the filter takes at most.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Limit int32 `json:"limit,omitempty"`
	// Match is how the filter compares: Holdfast, as the other fields say, or Ceph, as the drive groups of 'ceph orch'
	// do. With Ceph model and vendor mind the case of letters, size is in Ceph's own words (10GB:40GB, 10GB:, :40GB,
	// 3.64TB) and compares the text of ceph-volume, which counts by 1024 and rounds ("3.64 TB" for 4 TB), disks count for
	// the limit in the order of their paths, and a disk serves data before logs, and logs before databases. Without it:
	// Holdfast.
	// +optional
	Match DriveMatch `json:"match,omitempty"`
}

// DriveMatch is a way to compare disks with a filter.
// +kubebuilder:validation:Enum=Holdfast;Ceph
type DriveMatch string

// The ways to compare.
const (
	DriveMatchHoldfast DriveMatch = "Holdfast"
	DriveMatchCeph     DriveMatch = "Ceph"
)

// NewDevicePolicy says what becomes of disks that come later.
// +kubebuilder:validation:Enum=Report;Take;Hold
type NewDevicePolicy string

// The policies of new devices.
const (
	NewDevicesReport NewDevicePolicy = "Report"
	NewDevicesTake   NewDevicePolicy = "Take"
	// NewDevicesHold: none is taken and none is reported, not even when the selection changes or spec.take names it.
	NewDevicesHold NewDevicePolicy = "Hold"
)

// DriveGroupStatus is what the engine knows of the group.
type DriveGroupStatus struct {
	ResourceStatus `json:",inline"`
	// Selection stands for the placement and the filters that the group was carried out with.
	// +optional
	Selection string `json:"selection,omitempty"`
	// Unseen are hosts whose disks were not known then, or that lacked a disk for databases or logs. They are looked at
	// when that is over.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4096
	Unseen []string `json:"unseen,omitempty"`
	// Devices are the disks that were taken, each OSD's part of a disk by itself.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=4096
	Devices []GroupDevice `json:"devices,omitempty"`
	// Candidates are disks that match and were not taken, because spec.take does not name them; the first of them.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=64
	Candidates []GroupDevice `json:"candidates,omitempty"`
	// Taken and Waiting count them all; of disks that are divided Taken counts the disks.
	// +optional
	Taken int32 `json:"taken,omitempty"`
	// +optional
	Waiting int32 `json:"waiting,omitempty"`
}

// GroupDevice is a disk of a host, or the part of one that an OSD has.
type GroupDevice struct {
	Host string `json:"host"`
	// ID is the identity of the device, as in the Host's inventory: of the disk, or of the partition.
	ID string `json:"id"`
	// Serial is the serial number of the disk.
	// +optional
	Serial string `json:"serial,omitempty"`
	// Encrypted is set where the OSD was made so.
	// +optional
	Encrypted bool `json:"encrypted,omitempty"`
	// Data is what the device is a part of, where it is no whole disk.
	// +optional
	Data *DeviceSlot `json:"data,omitempty"`
	// DB and WAL are where the database and the log of its OSD are, if not on the disk itself.
	// +optional
	DB *DeviceSlot `json:"db,omitempty"`
	// +optional
	WAL *DeviceSlot `json:"wal,omitempty"`
}

// DeviceSlot is a part of a disk of the same host.
type DeviceSlot struct {
	// ID is the identity of the disk, as in the Host's inventory.
	ID string `json:"id"`
	// +optional
	Serial string            `json:"serial,omitempty"`
	Size   resource.Quantity `json:"size"`
	// Parts is into how many parts of this size the disk was divided for data, which stays so when the disk grows.
	// +optional
	Parts int32 `json:"parts,omitempty"`
}

var _ Placed = (*DriveGroup)(nil)

// ResourceKind is DriveGroup.
func (*DriveGroup) ResourceKind() string { return "DriveGroup" }

// ClusterName is spec.cluster.
func (g *DriveGroup) ClusterName() string { return g.Spec.Cluster }

// SelectedHosts are the hosts whose disks it takes.
func (g *DriveGroup) SelectedHosts() *HostSelection { return &g.Spec.Placement }

// Common is the part of the status that all kinds have.
func (g *DriveGroup) Common() *ResourceStatus { return &g.Status.ResourceStatus }

// TakeStatus copies the status of another group.
func (g *DriveGroup) TakeStatus(from Resource) { g.Status = *from.(*DriveGroup).Status.DeepCopy() }

// DriveGroupList is a list of DriveGroups.
// +kubebuilder:object:root=true
type DriveGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DriveGroup `json:"items"`
}

// NewResource is an empty DriveGroup.
func (*DriveGroupList) NewResource() Resource { return &DriveGroup{} }
