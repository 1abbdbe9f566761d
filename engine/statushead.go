package engine

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// maxStorageNodes is a bound of the API's schema.
const maxStorageNodes = 1024

// StatusOf is what all drivers say of a cluster alike, within the bounds of the schema: ONLINE where no reason speaks against it,
// else OFFLINE or DEGRADED for these reasons, the most telling first. nodes are those that are set up.
func StatusOf(t api.StorageType, offline bool, reasons, nodes []string) api.StorageStatusStatus {
	s := api.StorageStatusStatus{Type: t, Status: api.StorageDegraded, StorageNodes: nodes[:min(len(nodes), maxStorageNodes)]}
	s.Nodes = int32(len(s.StorageNodes))
	switch {
	case offline:
		s.Status = api.StorageOffline
	case len(reasons) == 0:
		s.Status = api.StorageOnline
	}
	for _, r := range reasons {
		if r = words.Cut(r, maxDecisionMessage); !slices.Contains(s.Reasons, r) {
			s.Reasons = append(s.Reasons, r)
		}
	}
	if n := len(s.Reasons); n > maxReasons {
		s.Reasons = append(s.Reasons[:maxReasons-1], fmt.Sprintf("and %d more", n-maxReasons+1))
	}
	if len(s.Reasons) > 0 {
		s.Message = s.Reasons[0]
	}
	return s
}

// Served says whether the cluster was seen to serve data the last time.
func (v *View) Served() bool {
	return v.Status != nil && (v.Status.Status.Status == api.StorageOnline || v.Status.Status.Status == api.StorageDegraded)
}
