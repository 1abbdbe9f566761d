package ceph

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/selection"
	"github.com/holdfast-storage/holdfast/engine"
)

// checkSelectors refuses a selection for mons or mgrs that no host answers to, whether or not a daemon is
// placed by it now: when one is, it would be too late. What runs stays where it is, and all else continues.
func (p *planner) checkSelectors() {
	for i, s := range []selection.Selection{selection.Mons(&p.spec), selection.Mgrs(&p.spec)} {
		if s.SelectsNone(p.view.Hosts) {
			p.object([...]string{"mons", "mgrs"}[i], engine.Refusal(api.ReasonInsufficientNodes,
				"%s selects no host: %s", s.Field, s.NoneText(p.view.Hosts)))
		}
	}
}
