package answer

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// available says whether there is an orchestrator: (yes, why not, details). Of the details 'ceph
// orch status' shows "paused". A detail "backend" would replace the name of the back end.
func available(c *Call) (any, error) {
	paused := c.View.Cluster.ModeOf() != api.ClusterActive
	return []any{true, "", map[string]any{"paused": paused, "leader": c.Leader}}, nil
}
