package ceph

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// checkSelectors refuses a hostSelector that no host answers to, whether or not a daemon is to be placed by it now: when one is, it would be too
// late. What runs stays where it is, and everything else goes on.
func (p *planner) checkSelectors() {
	for _, s := range []struct {
		object, field string
		selector      *metav1.LabelSelector
	}{
		{"mons", "spec.ceph.mon.hostSelector", p.spec.Mon.HostSelector},
		{"mgrs", "spec.ceph.mgr.hostSelector", p.spec.Mgr.HostSelector},
	} {
		if p.selectsNone(s.selector) {
			p.decide(api.VerdictRefuse, api.ReasonInsufficientNodes, s.object, "%s selects no host: %s", s.field,
				p.noneText(s.selector))
		}
	}
}

// selectsNone says whether a selector is set that no host answers to. One that cannot be understood is told of where hosts are chosen by it.
func (p *planner) selectsNone(selector *metav1.LabelSelector) bool {
	match, err := metav1.LabelSelectorAsSelector(selector)
	return selector != nil && err == nil &&
		!slices.ContainsFunc(p.view.Hosts, func(h api.Host) bool { return match.Matches(labels.Set(h.Labels)) })
}

func (p *planner) noneText(selector *metav1.LabelSelector) string {
	if len(p.view.Hosts) == 0 {
		return "none has joined yet"
	}
	text := "no host has the labels " + metav1.FormatLabelSelector(selector)
	if near := engine.NearLabels(selector.MatchLabels, p.view.Hosts); len(near) > 0 {
		return text + ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return text + ": label a host with 'holdfast host label'; see its labels with 'holdfast host show NAME'"
}
