package engine

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
)

// ResolvedNode is a StorageNode with what it means on the hosts that are there now.
type ResolvedNode struct {
	Node *api.StorageNode
	// Host is the one host that the node's selector selects, or nil.
	Host *api.Host
	// Address is the node's address for storage traffic: the first of spec.storageNetwork.ips, else of the host's addresses.
	// Where the cluster names a public network, the first of them in that network. Empty when there is none.
	Address string
	// Devices has one element for each entry of spec.devices, in that order, but for those in Out.
	Devices []ResolvedDevice
	// Out are the devices of spec.exclude and spec.replace: they count as if spec.devices did not name them.
	Out exclusions.Set
	// Problems says why the node cannot be used as it is declared; someone has to change something.
	Problems []string
	// Waits says what is not there yet and may come by itself.
	Waits []string
}

// ResolvedDevice is an entry of spec.devices.
type ResolvedDevice struct {
	// Name is the entry.
	Name string
	// ID is the identity that the entry was found to mean; empty when nothing on the host matches. An entry with neither
	// ID nor Problem waits for the host's first inventory.
	ID string
	// Device is the device as the host's inventory shows it now, or nil.
	Device *api.Device
	// Problem says why the entry cannot be used: nothing matches, two entries mean the same device, another node claims it.
	// That a device has data on it is for the driver to judge, which may find its own data there.
	Problem string
}
