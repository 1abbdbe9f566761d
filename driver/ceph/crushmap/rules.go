// Package crushmap reads what Ceph answers of its CRUSH map: where OSDs and buckets are, and how rules spread
// copies. It is pure.
package crushmap

import (
	"slices"
	"strings"
)

// Place is where CRUSH has an OSD.
type Place struct {
	// Class is its device class, such as ssd.
	Class string
	// Weight is its weight in CRUSH, mostly its size in TiB; 0 has it be given no data.
	Weight float64
	// Buckets are the names of those that it is in, by their types, such as host, rack and root; and its own
	// as osd.
	Buckets map[string]string
}

// Rule says how CRUSH spreads the copies of a pool (Ceph docs, "CRUSH maps: rules").
type Rule struct {
	Name  string
	Takes []Take
	// Erasure is set for one of pools that are erasure-coded.
	Erasure bool
}

// Take is a part of a rule: from the bucket Root, and of the device class Class unless that is empty, choose
// step by step.
type Take struct {
	Root, Class string
	Steps       []Choose
}

// Choose takes Num buckets of a type; as many as there are copies when Num is 0, and so many less when it is
// negative.
type Choose struct {
	Type string
	Num  int
}

// Domain is the only level that the rule spreads over; empty where there are several.
func (r Rule) Domain() string {
	if len(r.Takes) == 1 && len(r.Takes[0].Steps) == 1 {
		return r.Takes[0].Steps[0].Type
	}
	return ""
}

// Room is how many of size copies find a place on the OSDs.
func (r Rule) Room(osds []Place, size int) (n int) {
	for _, t := range r.Takes {
		n += chosen(slices.DeleteFunc(slices.Clone(osds), func(p Place) bool { return !t.Reaches(p) }), t.Steps, size)
	}
	return n
}

// Reaches says whether an OSD is one that it chooses from.
func (t Take) Reaches(p Place) bool {
	if t.Class != "" && t.Class != p.Class {
		return false
	}
	for _, name := range p.Buckets {
		if name == t.Root {
			return true
		}
	}
	return false
}

// chosen is how many OSDs the steps come to: of the buckets of the first step, those with the most are counted.
func chosen(osds []Place, steps []Choose, size int) (n int) {
	if len(steps) == 0 {
		return min(1, len(osds))
	}
	in := map[string][]Place{}
	for _, p := range osds {
		if name := p.Buckets[steps[0].Type]; name != "" {
			in[name] = append(in[name], p)
		}
	}
	var counts []int
	for _, bucket := range in {
		counts = append(counts, chosen(bucket, steps[1:], size))
	}
	slices.Sort(counts)
	most := steps[0].Num
	if most <= 0 {
		most += size
	}
	for _, count := range counts[max(0, len(counts)-max(0, most)):] {
		n += count
	}
	return n
}

// TypeErasure is pg_pool_t::TYPE_ERASURE, the type of pools that are erasure-coded and of their rules.
const TypeErasure = 3

// RuleAnswer is a rule as 'osd crush rule dump' has it.
type RuleAnswer struct {
	ID    int    `json:"rule_id"`
	Name  string `json:"rule_name"`
	Type  int    `json:"type"`
	Steps []struct {
		Op   string `json:"op"`
		Item string `json:"item_name"`
		Type string `json:"type"`
		Num  int    `json:"num"`
	} `json:"steps"`
}

// Rule is what the answer says.
func (a *RuleAnswer) Rule() Rule {
	rule := Rule{Name: a.Name, Erasure: a.Type == TypeErasure}
	for _, s := range a.Steps {
		last := len(rule.Takes) - 1
		switch {
		case s.Op == "take":
			root, class, _ := strings.Cut(s.Item, "~")
			rule.Takes = append(rule.Takes, Take{Root: root, Class: class})
		case s.Type != "" && last >= 0:
			rule.Takes[last].Steps = append(rule.Takes[last].Steps, Choose{Type: s.Type, Num: s.Num})
		}
	}
	return rule
}
