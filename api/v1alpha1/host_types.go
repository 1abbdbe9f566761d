package v1alpha1

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelHostname is the label that every Host carries with its own name, or in Kubernetes with its Node's value of the
// label, so that a StorageNode's nodeSelector can name a machine the same way in both homes.
const LabelHostname = "kubernetes.io/hostname"

// Host is one machine that runs a Holdfast agent. The agent creates it when it joins and writes its status; the
// leader alone writes the condition AgentConnected; labels and spec belong to the administrator.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ho,categories=holdfast
// +kubebuilder:printcolumn:name="Agent",type=string,JSONPath=`.status.conditions[?(@.type=="AgentConnected")].reason`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.addresses[0]`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.agentVersion`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="NodeReady")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec HostSpec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status HostStatus `json:"status,omitempty"`
}

// HostSpec is what the administrator wants of the machine.
type HostSpec struct {
	// Mode says what storage systems may do with the host. Every storage system is prepared before a daemon is stopped. The
	// Actions host.enter-maintenance, host.exit-maintenance, host.drain and host.remove check first whether it is possible, set
	// it, and wait until it is so.
	// +optional
	// +kubebuilder:default=Active
	Mode HostMode `json:"mode,omitempty"`
	// Reason says why, for those who look later.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// HostMode says what storage systems may do with a host.
// +kubebuilder:validation:Enum=Active;Maintenance;Drain
type HostMode string

// The modes of a host.
const (
	HostActive HostMode = "Active"
	// HostMaintenance: daemons are stopped for a while; data stays where it is, and nothing is rebuilt elsewhere.
	HostMaintenance HostMode = "Maintenance"
	// HostDrain: data and daemons move to other hosts; nothing new is placed here.
	HostDrain HostMode = "Drain"
)

// ModeOf is the host's mode; Active where none is set. A nil Host, of which nothing can be looked
// after any more, is Active.
func (h *Host) ModeOf() HostMode {
	if h == nil || h.Spec.Mode == "" {
		return HostActive
	}
	return h.Spec.Mode
}

// AgentHeard says whether the host's agent is connected. Before the leader's first check it counts as connected.
func (h *Host) AgentHeard() bool {
	_, silent := h.SilentSince()
	return !silent
}

// SilentSince says since when the host's agent is disconnected; ok is false while it is connected.
func (h *Host) SilentSince() (since time.Time, ok bool) {
	c := meta.FindStatusCondition(h.Status.Conditions, HostAgentConnected)
	if c == nil || c.Status != metav1.ConditionFalse {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// Hostname is the value of the label by which a StorageNode selects the host: in Kubernetes that of
// its Node, which may differ from its name.
func (h *Host) Hostname() string { return cmp.Or(h.Labels[LabelHostname], h.Name) }

// The labels that say where a host is, from the smallest to the largest failure domain, named as
// Kubernetes names them where it has a name. The values are the administrator's.
const (
	LabelChassis    = "topology.holdfast.io/chassis"
	LabelRack       = "topology.holdfast.io/rack"
	LabelRow        = "topology.holdfast.io/row"
	LabelDatacenter = "topology.holdfast.io/datacenter"
	LabelZone       = "topology.kubernetes.io/zone"
	LabelRegion     = "topology.kubernetes.io/region"
)

// LabelServer is on the Hosts that run 'holdfast server'. The server itself sets it.
const LabelServer = "holdfast.io/server"

// LocationLabels lists the location labels, the smallest failure domain first.
func LocationLabels() []string {
	return []string{LabelChassis, LabelRack, LabelRow, LabelDatacenter, LabelZone, LabelRegion}
}

// HostAgentReturned is the message of HostAgentConnected while the agent is connected and was
// disconnected before. It is not a reason, because tables show the reason.
const HostAgentReturned = "reconnected after it was disconnected"

// Conditions of a Host.
const (
	// HostAgentConnected says whether the agent's heartbeat is fresh. It says nothing of the
	// storage on the host, which may serve while the agent is disconnected.
	HostAgentConnected = "AgentConnected"
	// HostNodeReady says what Kubernetes knows of the node that the host is. Only a host in Kubernetes has it.
	HostNodeReady = "NodeReady"
	// HostAgentPod says what Kubernetes knows of the agent's pod. Only a host in Kubernetes has it,
	// while its agent is disconnected.
	HostAgentPod = "AgentPod"
	// HostEncryption says whether devices of the host can be encrypted, and if not, why.
	HostEncryption = "DeviceEncryption"
	// HostDirectoryWritable says whether the agent can write to its directory, which also has what daemons keep.
	HostDirectoryWritable = "DirectoryWritable"
	// HostClockInSync says whether the host's clock agrees with the server's.
	HostClockInSync = "ClockInSync"
	// HostSingleMachine says whether one machine alone runs as the host. It is not set before two did.
	HostSingleMachine = "SingleMachine"
)

// Twins says that several machines run as the host, such as one and its clone, and names them; ok
// is false where it is one.
func (h *Host) Twins() (text string, ok bool) {
	c := meta.FindStatusCondition(h.Status.Conditions, HostSingleMachine)
	if c == nil || c.Status != metav1.ConditionFalse {
		return "", false
	}
	return c.Message, true
}

// HostStatus is what the agent reports of its machine.
type HostStatus struct {
	// ObservedGeneration is the generation of the spec that the condition Ready belongs to. The leader writes it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Addresses are the machine's own unicast addresses, the one that clusters use first.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Fa-f:.]+$`
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="an address must be an IP address"
	Addresses []string `json:"addresses,omitempty"`
	// AgentVersion is the version of the holdfast binary that reports.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	AgentVersion string `json:"agentVersion,omitempty"`
	// BootID changes whenever the machine boots (/proc/sys/kernel/random/boot_id).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	BootID string `json:"bootID,omitempty"`
	// Runtime is how daemons are supervised on this host.
	// +optional
	Runtime RuntimeKind `json:"runtime,omitempty"`
	// Packages maps the storage systems and types of daemons whose programs were found on the host (ceph, ceph-osd, …) to their releases.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Packages map[string]Release `json:"packages,omitempty"`
	// Devices is the inventory of block devices.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=512
	Devices []Device `json:"devices,omitempty"`
	// Foreign are daemons of storage systems that run on the host and that Holdfast did not start.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Foreign []ForeignDaemon `json:"foreign,omitempty"`
	// Facts describe the machine: its hardware and its kernel.
	Facts *HostFacts `json:"facts,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostFacts describe a machine as its kernel shows it in /proc and /sys: its architecture as the kernel
// names it, the vendor and model of its hardware by its firmware, and when it booted by its own clock.
type HostFacts struct {
	// Kernel is the release of the kernel, and OS the name of the distribution.
	Kernel       FactText `json:"kernel,omitempty"`
	OS           FactText `json:"os,omitempty"`
	Architecture FactText `json:"architecture,omitempty"`
	Vendor       FactText `json:"vendor,omitempty"`
	Model        FactText `json:"model,omitempty"`
	// CPUThreads counts the processors that the kernel uses, on CPUCores cores in CPUSockets sockets.
	CPUModel   FactText           `json:"cpuModel,omitempty"`
	CPUSockets int32              `json:"cpuSockets,omitempty"`
	CPUCores   int32              `json:"cpuCores,omitempty"`
	CPUThreads int32              `json:"cpuThreads,omitempty"`
	Memory     *resource.Quantity `json:"memory,omitempty"`
	BootTime   *metav1.Time       `json:"bootTime,omitempty"`
	// Interfaces are those of hardware, and others that are up and have an address.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Interfaces []HostInterface `json:"interfaces,omitempty"`
}

// FactText is a text that a machine has of itself.
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
type FactText string

// HostInterface is a network interface. Speed is in Mbit/s; Up says whether it can carry traffic.
type HostInterface struct {
	Name  FactText `json:"name"`
	MAC   FactText `json:"mac,omitempty"`
	MTU   int32    `json:"mtu,omitempty"`
	Speed int32    `json:"speed,omitempty"`
	Up    bool     `json:"up"`
	// +kubebuilder:validation:MaxItems=16
	Addresses []FactText `json:"addresses,omitempty"`
}

// Release is the version of an installed program, such as 16.2.15.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
type Release string

// Release is the version of a program or a storage system on the host; empty where there is none.
func (s *HostStatus) Release(program string) string { return string(s.Packages[program]) }

// ForeignDaemon is a process of a storage system that Holdfast did not start, as /proc shows it.
type ForeignDaemon struct {
	// Type is the program: ceph-mon, ceph-osd …
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]+$`
	Type string `json:"type"`
	// ID is the daemon's name within its type.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	ID string `json:"id"`
	// PID is the process on the host.
	PID int32 `json:"pid"`
	// Started is when it was started.
	Started metav1.MicroTime `json:"started"`
	// Cluster is the fsid of the cluster that it belongs to, as its files say; empty where they say nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	Cluster string `json:"cluster,omitempty"`
	// Data is the directory of its data.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Data string `json:"data,omitempty"`
	// Unit is the systemd unit that keeps it running; empty for a process that was started by hand.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Unit string `json:"unit,omitempty"`
	// Container is set when it runs with another root directory than the host's.
	// +optional
	Container bool `json:"container,omitempty"`
}

// RuntimeKind is a way to supervise daemons.
// +kubebuilder:validation:Enum=Detached;Systemd;Pod
type RuntimeKind string

// The runtimes.
const (
	RuntimeDetached RuntimeKind = "Detached"
	RuntimeSystemd  RuntimeKind = "Systemd"
	// RuntimePod: each daemon is a pod of Kubernetes. The end of its process ends all that the process started.
	RuntimePod RuntimeKind = "Pod"
)

// Device is one block device, known by what stays the same when it is renamed, moved or seen by another kernel.
type Device struct {
	// ID is the stable identity: "wwn-…", "serial-<model>-<serial>", "partuuid-…" or "file-<path>" for a loop device.
	// A device with none of them has an ID that starts with "unstable-" and is never available.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][^\p{C}\p{Zl}\p{Zp}]*$`
	ID string `json:"id"`
	// Path is where the kernel shows the device now, such as /dev/sdb. It may change at any boot.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/dev/[^\p{C}\p{Zl}\p{Zp}]*$`
	Path string `json:"path,omitempty"`
	// Links are the stable names of the device below /dev/disk.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Links []string `json:"links,omitempty"`
	// +optional
	Kind DeviceKind `json:"kind,omitempty"`
	// +optional
	Size resource.Quantity `json:"size,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Vendor string `json:"vendor,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Model string `json:"model,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Serial string `json:"serial,omitempty"`
	// WWN is the world wide name without a prefix.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	WWN string `json:"wwn,omitempty"`
	// +optional
	Media MediaKind `json:"media,omitempty"`
	// Parent is the ID of the device that a partition lies on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Parent string `json:"parent,omitempty"`
	// Filesystem is what a probe found on the device: a file system, a volume manager's or a storage system's label.
	// +optional
	Filesystem *DeviceFilesystem `json:"filesystem,omitempty"`
	// MountPoints are the places where the device is mounted now.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:items:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	MountPoints []string `json:"mountPoints,omitempty"`
	// Holders are the kernel names of devices built on this one (device-mapper, md).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Holders []string `json:"holders,omitempty"`
	// Ceph says which OSD lives on the device, as its BlueStore label tells.
	// +optional
	Ceph *DeviceCeph `json:"ceph,omitempty"`
	// Availability is Available only if nothing at all was found on the device.
	Availability Availability `json:"availability"`
	// Reasons says, in sentences, why the device is not available.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Reasons []string `json:"reasons,omitempty"`
}

// Taken says why a device cannot be given to anybody, in a clause; nothing where it can. Whoever
// uses a device asks that first, on the leader and on its host.
func (d *Device) Taken() string {
	if d.Availability == DeviceAvailable {
		return ""
	}
	if why := strings.TrimSuffix(strings.Join(d.Reasons, "; "), "."); why != "" {
		return why
	}
	return "it is not empty"
}

// DeviceKind is what sort of block device it is.
// +kubebuilder:validation:Enum=Disk;Partition;Loop;Mapped;Raid;Other
type DeviceKind string

// The device kinds.
const (
	DeviceDisk      DeviceKind = "Disk"
	DevicePartition DeviceKind = "Partition"
	DeviceLoop      DeviceKind = "Loop"
	DeviceMapped    DeviceKind = "Mapped"
	DeviceRaid      DeviceKind = "Raid"
	DeviceOther     DeviceKind = "Other"
)

// MediaKind tells spinning disks from those that do not spin.
// +kubebuilder:validation:Enum=Rotational;SolidState
type MediaKind string

// The media.
const (
	MediaRotational MediaKind = "Rotational"
	MediaSolidState MediaKind = "SolidState"
)

// Availability tells whether a device may be claimed.
// +kubebuilder:validation:Enum=Available;Unavailable
type Availability string

// The availabilities.
const (
	DeviceAvailable   Availability = "Available"
	DeviceUnavailable Availability = "Unavailable"
)

// DeviceFilesystem is what is written on a device.
type DeviceFilesystem struct {
	// Type as libblkid names it: ext4, xfs, LVM2_member, ceph_bluestore …
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	Type string `json:"type"`
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	UUID string `json:"uuid,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Label string `json:"label,omitempty"`
}

// DeviceCeph is what the BlueStore label of a device says.
type DeviceCeph struct {
	// FSID is the cluster that the OSD belongs to.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	FSID string `json:"fsid,omitempty"`
	// OSDID is the number of the OSD.
	// +optional
	OSDID *int32 `json:"osdID,omitempty"`
	// OSDUUID is the OSD's own identity.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	OSDUUID string `json:"osdUUID,omitempty"`
	// Part is db or wal where the device holds the database or the log of an OSD, whose data is on another device. Its label says no
	// number and no cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._:+~-]*$`
	Part string `json:"part,omitempty"`
}

// HostList is a list of Hosts.
// +kubebuilder:object:root=true
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Host `json:"items"`
}
