package engine

import (
	"errors"
	"fmt"
)

// Reports reads what the agents of the daemons of one type report (Daemon.status.report), by the names of the daemons. parse returns
// nil for an empty text. A report that cannot be read is an error; the others are returned nevertheless.
func Reports[R any](v *View, daemonType string, parse func(text string) (*R, error)) (map[string]*R, error) {
	reports := map[string]*R{}
	var errs []error
	for i := range v.Daemons {
		d := &v.Daemons[i]
		if d.Spec.Type != daemonType {
			continue
		}
		r, err := parse(d.Status.Report)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("daemon %s: %w", d.Name, err))
		case r != nil:
			reports[d.Name] = r
		}
	}
	return reports, errors.Join(errs...)
}
