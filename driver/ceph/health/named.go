package health

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// readOnly are the codes of an MDS that serves read-only, of different releases.
var readOnly = []string{"MDS_READ_ONLY", "MDS_HEALTH_READ_ONLY"}

// ReadOnly are those of the MDS, such as mds.a, that serve read-only: 'mds.a(mds.0): MDS in read-only mode'.
func ReadOnly(checks []api.HealthCheck, daemons []string) (named []string) {
	i := slices.IndexFunc(checks, func(c api.HealthCheck) bool { return slices.Contains(readOnly, c.Code) })
	if i < 0 {
		return nil
	}
	for _, d := range daemons {
		of := func(line string) bool { return strings.HasPrefix(line, d+"(") || strings.HasPrefix(line, d+" ") }
		if slices.ContainsFunc(checks[i].Detail, of) {
			named = append(named, d)
		}
	}
	return named
}
