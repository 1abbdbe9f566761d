package fsspec

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// ActiveMDS is how many MDS a Filesystem has work. The API server sets the default; the plan of a
// file that was never sent to it does without.
func ActiveMDS(f *api.Filesystem) int { return max(1, int(f.Spec.ActiveMDS)) }

// StandbyMDS is how many stand by, as ActiveMDS says.
func StandbyMDS(f *api.Filesystem) int {
	if f.Spec.StandbyMDS == nil {
		return 1
	}
	return int(*f.Spec.StandbyMDS)
}
