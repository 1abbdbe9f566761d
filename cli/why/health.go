package why

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
)

// checkOfCode answers for a health check of Ceph, by its code in any letters, raised or not.
func checkOfCode(w *World, object string) (Answer, bool) {
	code := strings.ToUpper(strings.TrimPrefix(object, "check/"))
	for i := range w.Statuses {
		s := &w.Statuses[i]
		for j := range s.Status.Checks {
			if c := &s.Status.Checks[j]; strings.ToUpper(c.Code) == code {
				return raised(s.Name, c), true
			}
		}
	}
	known, is := health.Explain(code)
	if !is {
		return Answer{}, false
	}
	for i := range w.Statuses {
		if s := &w.Statuses[i]; s.Status.Ceph != nil && slices.Contains(s.Status.Ceph.Muted, code) {
			return answered(fmt.Sprintf("%s is muted in cluster %s. %s", code, s.Name, known.Meaning),
				fmt.Sprintf("to see it again, run 'holdfast ceph health unmute %s'.", code)).because(api.ReasonHealthCheck), true
		}
	}
	return answered(fmt.Sprintf("%s is not raised now. It says: %s", code, known.Meaning),
		"nothing now; when it is raised: "+sentence(known.Next)), true
}

// raised answers for a check that a cluster has now.
func raised(cluster string, c *api.HealthCheck) Answer {
	text := fmt.Sprintf("Cluster %s has %s (%s): %s", cluster, c.Code, c.Severity, c.Message)
	if len(c.Detail) > 0 {
		text += " (" + strings.Join(c.Detail, "; ") + ")"
	}
	known, _ := health.Explain(c.Code)
	return answered(join(text, known.Meaning), sentence(c.Next)).because(api.ReasonHealthCheck)
}
