package crushmap

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// CephsOwn are the pools that the mgr makes for itself: the second one up to Ceph 16.
var CephsOwn = []string{".mgr", "device_health_metrics"}

// Overlap is a set of pools that may take the same OSDs from different roots of CRUSH. Each device
// class has roots of its own (Ceph docs, "CRUSH maps: device classes"). Ceph's autoscaler leaves
// such pools alone (pg_autoscaler, "contains an overlapping root").
type Overlap struct {
	// Classed are the pools of one device class, and Others those that take OSDs of any class, in
	// the order of their names.
	Classed, Others []string
}

// Text says what a pool of a device class does to the autoscaler.
func (o Overlap) Text(pool string) string {
	return fmt.Sprintf("Ceph's autoscaler does not change the number of placement groups of %s: pool %s takes OSDs of "+
		"one device class, and others take the same OSDs as any", words.Few(slices.Concat(o.Others, o.Classed)), pool)
}

// Next says what helps; rule is that of a pool of the class.
func (o Overlap) Next(rule string) string {
	return fmt.Sprintf("give the pools that are declared a deviceClass, and Ceph's own the rule: 'holdfast ceph osd pool "+
		"set %s crush_rule %s'", own(o.Others), rule)
}

// own is the pool that Ceph made for itself, as every cluster has one.
func own(pools []string) string {
	for _, name := range CephsOwn {
		if slices.Contains(pools, name) {
			return name
		}
	}
	return "POOL"
}

// root is where a rule begins to choose.
type root struct{ name, class string }

// Overlapping finds the pools whose roots overlap; rules are those of the pools by their names.
func Overlapping(rules map[string]Rule, osds []Place) (o Overlap) {
	byRoot, reached := map[root][]string{}, map[root][]int{}
	for _, pool := range slices.Sorted(maps.Keys(rules)) {
		if len(rules[pool].Takes) == 0 {
			continue
		}
		from := root{rules[pool].Takes[0].Root, rules[pool].Takes[0].Class}
		byRoot[from] = append(byRoot[from], pool)
	}
	for from := range byRoot {
		for i, p := range osds {
			if (Take{Root: from.name, Class: from.class}).Reaches(p) {
				reached[from] = append(reached[from], i)
			}
		}
	}
	for from, pools := range byRoot {
		meets := false
		for other := range byRoot {
			oneClass := (from.class == "") != (other.class == "")
			meets = meets || oneClass && share(reached[from], reached[other])
		}
		switch {
		case meets && from.class == "":
			o.Others = append(o.Others, pools...)
		case meets:
			o.Classed = append(o.Classed, pools...)
		}
	}
	slices.Sort(o.Classed)
	slices.Sort(o.Others)
	return o
}

func share(a, b []int) bool {
	return slices.ContainsFunc(a, func(i int) bool { return slices.Contains(b, i) })
}
