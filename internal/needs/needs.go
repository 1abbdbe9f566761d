// Package needs says which Secrets a host has to read for what runs on it. Holdfast's own API
// servers and the Roles in Kubernetes go by the same answer.
package needs

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Secrets are the names of the Secrets that a Daemon names, sorted. They lie in its namespace.
func Secrets(d *api.Daemon) []string {
	var names []string
	for _, device := range d.Spec.Devices {
		if device.KeySecret != "" {
			names = append(names, device.KeySecret)
		}
	}
	for _, file := range d.Spec.Files {
		for _, source := range file.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
