package health

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Named are those of the daemons, such as mds.a, that a check names in its detail: 'mds.a(mds.0): …'.
func Named(checks []api.HealthCheck, code string, daemons []string) (named []string) {
	i := slices.IndexFunc(checks, func(c api.HealthCheck) bool { return c.Code == code })
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
