package ceph

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// isEncrypted says whether an OSD was made with encrypted devices.
func isEncrypted(d *api.Daemon) bool {
	return slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.KeySecret != "" })
}

// encrypts says whether a group has the OSD on a device encrypted.
func encrypts(o *drives.Outcome, at devicePlace) bool {
	x := groupDevice(o, at)
	return x != nil && x.Encrypted
}

// sealed says whether what is on a device is the data of an OSD, encrypted: it is opened with the key of that OSD, whoever names the device now.
func sealed(device *api.Device) bool {
	return device.Ceph != nil && device.Filesystem != nil && device.Filesystem.Type == "crypto_LUKS"
}

// keyless says whether an encrypted OSD would get a Secret that is older than such keys, or was made by a person: nothing can be opened with it.
func (p *planner) keyless(o *osd) bool {
	if !o.encrypted {
		return false
	}
	name := secretName(p.cluster.Name, o.label())
	for _, s := range p.view.Secrets {
		if s.Name == name {
			return !slices.Contains(s.Keys, api.KeyLUKS)
		}
	}
	return false
}
