package monset

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// Quorum are the mons that were in the quorum when the leader looked last; none while no mon
// answers the leader, and where the leader does not get as far as to ask them.
func Quorum(c *api.StorageCluster, s *api.StorageStatus) []string {
	if s == nil || s.Status.StaleSince != nil || s.Status.Health == "" || s.Status.Ceph == nil {
		return nil
	}
	if r := c.Status.Report; r == nil || r.Outcome == api.OutcomeFailed {
		return nil
	}
	return s.Status.Ceph.Quorum
}
