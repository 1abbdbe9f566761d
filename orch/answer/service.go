package answer

import (
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// ServiceNames are the services that the daemons of a cluster belong to, as 'ceph orch ls' shows
// them, by the names of the Daemons.
func ServiceNames(view *engine.View) map[string]string {
	groups, names := (&Call{View: view}).groupsOfOSDs(), make(map[string]string, len(view.Daemons))
	for i := range view.Daemons {
		d := &view.Daemons[i]
		names[d.Name] = spec.ServiceOf(d, groups[d.Name])
	}
	return names
}
