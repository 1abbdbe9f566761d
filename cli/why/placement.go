package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

var (
	aPlacementGroup = regexp.MustCompile(`^(?:pg/|pg\.)?(([0-9]+)\.[0-9a-f]+)(?:s[0-9]+)?$`)
	aPoolID         = regexp.MustCompile(`^(?:pool/)?([0-9]+)$`)
	aPoolName       = regexp.MustCompile(`^(?:pool/)?([A-Za-z0-9._-]+)$`)
)

// placementGroup answers for a placement group, by what is known of its pool and what Ceph says of it in its health.
func placementGroup(w *World, object string) (Answer, bool) {
	match := aPlacementGroup.FindStringSubmatch(object)
	if match == nil {
		return Answer{}, false
	}
	pg, query := match[1], fmt.Sprintf("its own state: 'holdfast ceph pg %s query'.", match[1])
	said, check := saidOf(w, pg)
	a, known := poolByID(w, match[2])
	switch {
	case said != "" && known && a.Reason != "":
		return answered(join(fmt.Sprintf("Ceph says of placement group %s: %s", pg, said), a.Text),
			a.Next+" "+upper(query)).because(a.Reason), true
	case said != "":
		next := cmp.Or(sentence(check.Next), query)
		return answered(join(fmt.Sprintf("Ceph says of placement group %s: %s", pg, said), a.Text), next).
			because(api.ReasonHealthCheck), true
	case known:
		return answered(join(fmt.Sprintf("Ceph's health says nothing of placement group %s", pg), a.Text),
			strings.TrimSpace(a.Next+" "+upper(query))).because(a.Reason), true
	}
	return answered(fmt.Sprintf("No object declares the pool %s of placement group %s, and Ceph's health says "+
		"nothing of "+
		"it.", match[2], pg), query), true
}

// saidOf is what a health check says of a placement group in its detail.
func saidOf(w *World, pg string) (string, *api.HealthCheck) {
	for i := range w.Statuses {
		for j := range w.Statuses[i].Status.Checks {
			c := &w.Statuses[i].Status.Checks[j]
			of := func(line string) bool { return slices.Contains(strings.Fields(line), pg) }
			if k := slices.IndexFunc(c.Detail, of); k >= 0 {
				return c.Detail[k], c
			}
		}
	}
	return "", nil
}

// part is a pool of a resource as its status has it.
type part struct {
	id   int64
	name string
}

// partsOf are the pools in Ceph that a resource has.
func partsOf(r api.Resource) (parts []part) {
	switch x := r.(type) {
	case *api.Pool:
		parts = append(parts, part{x.Status.ID, x.Name})
	case *api.Filesystem:
		for _, p := range x.Status.Pools {
			parts = append(parts, part{p.ID, p.Name})
		}
	case *api.ObjectStore:
		for _, p := range x.Status.Pools {
			parts = append(parts, part{p.ID, p.Name})
		}
	}
	return parts
}

// poolByID answers for a pool by Ceph's number.
func poolByID(w *World, number string) (Answer, bool) {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return Answer{}, false
	}
	return partOf(w, func(p part) bool { return p.id == id && id > 0 })
}

// partOf answers for a pool in Ceph by the resource that it is, or is a part of.
func partOf(w *World, is func(part) bool) (Answer, bool) {
	for _, r := range w.Resources {
		for _, p := range partsOf(r) {
			if !is(p) {
				continue
			}
			a := w.resource(r)
			text := fmt.Sprintf("Pool %s, id %d in Ceph, is of %s", p.name, p.id, engine.ResourceObject(r))
			return answered(join(text, a.Text), a.Next).because(a.Reason), true
		}
	}
	return Answer{}, false
}

// poolInCeph answers for a pool by Ceph's number, or by the name of one that is a part of something.
func poolInCeph(w *World, object string) (Answer, bool) {
	if match := aPoolID.FindStringSubmatch(object); match != nil {
		if a, known := poolByID(w, match[1]); known {
			return a, true
		}
		if !strings.HasPrefix(object, "pool/") {
			return Answer{}, false
		}
		return answered(fmt.Sprintf("No object declares a pool with the id %s.", match[1]),
			"see its name with 'holdfast ceph osd pool ls detail'; to have Holdfast manage it, declare a Pool of "+
				"its name."), true
	}
	match := aPoolName.FindStringSubmatch(object)
	if match == nil {
		return Answer{}, false
	}
	return partOf(w, func(p part) bool { return p.name == match[1] })
}
