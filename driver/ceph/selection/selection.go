// Package selection says which hosts may run the mons and the mgrs of a cluster, or the daemons of a
// service. It is pure.
package selection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Selection is what a spec says of hosts. The zero value says nothing: the hosts of the cluster's
// nodes are meant.
type Selection struct {
	// Field is the field of the spec that selects; empty where none does.
	Field     string
	labels    *metav1.LabelSelector
	match     labels.Selector
	err       error
	placement *api.HostSelection
}

// Mons is the selection of hosts for mons.
func Mons(spec *api.CephSpec) Selection {
	return either("spec.ceph.mon.", spec.Mon.HostSelector, spec.Mon.Placement)
}

// Mgrs is the selection of hosts for managers.
func Mgrs(spec *api.CephSpec) Selection {
	return either("spec.ceph.mgr.", spec.Mgr.HostSelector, spec.Mgr.Placement)
}

// Of is the selection of hosts for a service.
func Of(placement *api.HostSelection) Selection { return either("", nil, placement) }

func either(prefix string, selector *metav1.LabelSelector, placement *api.HostSelection) (s Selection) {
	switch {
	case placement != nil && !placement.IsEmpty():
		return Selection{Field: prefix + "placement", placement: placement}
	case selector != nil:
		s = Selection{Field: prefix + "hostSelector", labels: selector}
		s.match, s.err = metav1.LabelSelectorAsSelector(selector)
	}
	return s
}

// Given says whether the spec selects hosts.
func (s Selection) Given() bool { return s.Field != "" }

// Err says what is wrong with the selection.
func (s Selection) Err() error { return s.err }

// Selects says whether a host is selected. Without a selection none is.
func (s Selection) Selects(h *api.Host) bool {
	if s.placement != nil {
		return s.placement.Selects(h)
	}
	return s.match != nil && s.err == nil && s.match.Matches(labels.Set(h.Labels))
}

// SelectsNone says whether there is a selection, and it selects none of the hosts.
func (s Selection) SelectsNone(hosts []api.Host) bool {
	return s.Given() && s.err == nil && !slices.ContainsFunc(hosts, func(h api.Host) bool { return s.Selects(&h) })
}

// Moves says whether daemons have to move that are not where they may be. A selection that cannot be
// understood, or that selects no host, moves nothing.
func (s Selection) Moves(hosts []api.Host) bool { return s.err == nil && !s.SelectsNone(hosts) }

// NoneText says why none of the hosts is selected, and what helps.
func (s Selection) NoneText(hosts []api.Host) string {
	switch {
	case len(hosts) == 0:
		return "none has joined yet"
	case s.placement != nil:
		return "no host matches " + placementText(s.placement)
	}
	text := "no host has the labels " + metav1.FormatLabelSelector(s.labels)
	if near := engine.NearLabels(s.labels.MatchLabels, hosts); len(near) > 0 {
		return text + ": did you mean " + strings.Join(near, " or ") + "?"
	}
	return text + ": label a host with 'holdfast host label'; see its labels with 'holdfast host show NAME'"
}

// More says how more hosts come to be selected.
func (s Selection) More() string {
	if s.placement != nil {
		return "select more hosts"
	}
	return "label more hosts"
}

// LeftText says that a host is no longer selected.
func (s Selection) LeftText(host string) string { return s.Field + " no longer selects host " + host }

// placementText says by what hosts are selected.
func placementText(s *api.HostSelection) string {
	var by []string
	if len(s.Hosts) > 0 {
		by = append(by, "hosts "+words.Few(s.Hosts))
	}
	if s.Pattern != "" {
		by = append(by, "pattern "+s.Pattern)
	}
	for k, v := range s.Labels {
		by = append(by, "label "+k+"="+v)
	}
	slices.Sort(by)
	return strings.Join(by, " and ")
}
