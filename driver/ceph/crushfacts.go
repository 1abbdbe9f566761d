package ceph

import (
	"context"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Bucket is a bucket of CRUSH, or an OSD that has a place in it.
type Bucket struct {
	Type string
	// In are the names of those that it is in, by their types, such as rack and root.
	In map[string]string
	// Class is the device class of an OSD.
	Class string
	// Weight is that of the OSDs below it: with none it holds no data.
	Weight float64
}

// crushMap is CRUSH as of a version of it, as far as it was asked for. Nobody writes to what is in it.
type crushMap struct {
	version int
	rules   map[int]Rule
	tree    *crushTree
}

// crushTree is what CRUSH has: the places of OSDs, its buckets and OSDs by their names, and how many children hosts have.
type crushTree struct {
	places   map[int]Place
	buckets  map[string]Bucket
	children map[string]int
}

// knownCrush is what was asked of CRUSH, and nothing when it has changed since.
func (c *conn) knownCrush() *crushMap {
	if c.crush == nil || c.crush.version != c.osds.Crush {
		c.crush = &crushMap{version: c.osds.Crush}
	}
	return c.crush
}

// fillCrush asks for the buckets and the OSDs in them; and for the rules where one host has OSDs in several buckets, so that copies may come together there.
func (c *conn) fillCrush(ctx context.Context, view *engine.View, o *Observation) error {
	tree, err := c.crushTree(ctx)
	if err != nil {
		return err
	}
	o.Crush = tree.buckets
	if anySplit(view.Daemons, tree.buckets) {
		o.Rules, err = c.crushRules(ctx)
	}
	return err
}

// crushRules are the CRUSH rules by their numbers.
func (c *conn) crushRules(ctx context.Context) (map[int]Rule, error) {
	known := c.knownCrush()
	if known.rules != nil {
		return known.rules, nil
	}
	var answers []ruleAnswer
	if err := c.ask(ctx, "osd crush rule dump", &answers); err != nil {
		return nil, err
	}
	known.rules = make(map[int]Rule, len(answers))
	for _, a := range answers {
		known.rules[a.ID] = a.rule()
	}
	return known.rules, nil
}

// ruleAnswer is a rule as 'osd crush rule dump' has it.
type ruleAnswer struct {
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

func (a *ruleAnswer) rule() Rule {
	rule := Rule{Name: a.Name, Erasure: a.Type == typeErasure}
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

// treeNode is a bucket of CRUSH, or an OSD, which has no children and a number that is not negative.
type treeNode struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Class    string  `json:"device_class"`
	Weight   float64 `json:"crush_weight"`
	Children []int   `json:"children"`
}

// crushTree asks what is where in CRUSH, when that has changed. It is empty where Ceph does not answer.
func (c *conn) crushTree(ctx context.Context) (*crushTree, error) {
	known := c.knownCrush()
	if known.tree != nil {
		return known.tree, nil
	}
	var answer struct {
		Nodes []treeNode `json:"nodes"`
	}
	if err := c.ask(ctx, "osd tree", &answer); err != nil {
		return &crushTree{}, err
	}
	known.tree = treeOf(answer.Nodes)
	return known.tree, nil
}

func treeOf(nodes []treeNode) *crushTree {
	t := &crushTree{places: map[int]Place{}, buckets: map[string]Bucket{}, children: map[string]int{}}
	parents := map[int]*treeNode{}
	for i := range nodes {
		for _, child := range nodes[i].Children {
			parents[child] = &nodes[i]
		}
	}
	above := func(id int) map[string]string {
		in := map[string]string{}
		for n := parents[id]; n != nil && in[n.Type] == ""; n = parents[n.ID] {
			in[n.Type] = n.Name
		}
		return in
	}
	for _, n := range nodes {
		switch {
		case n.ID < 0:
			t.buckets[n.Name] = Bucket{Type: n.Type, In: above(n.ID)}
			if n.Type == "host" {
				t.children[n.Name] = len(n.Children)
			}
		case parents[n.ID] != nil:
			p := Place{Class: n.Class, Weight: n.Weight, Buckets: above(n.ID)}
			p.Buckets["osd"] = osdName(n.ID)
			t.places[n.ID] = p
			t.buckets[osdName(n.ID)] = Bucket{Type: "osd", In: above(n.ID), Class: n.Class}
		}
	}
	t.weigh()
	return t
}

// weigh gives each bucket the weight of all OSDs below it.
func (t *crushTree) weigh() {
	for _, p := range t.places {
		for _, name := range p.Buckets {
			if b, is := t.buckets[name]; is {
				b.Weight += p.Weight
				t.buckets[name] = b
			}
		}
	}
}

// anySplit says whether CRUSH has OSDs of one host in several buckets.
func anySplit(daemons []api.Daemon, buckets map[string]Bucket) bool {
	in := map[string]string{}
	for i := range daemons {
		d := &daemons[i]
		bucket := buckets[label(d)].In["host"]
		if d.Spec.Type != TypeOSD || bucket == "" {
			continue
		}
		if was := in[d.Spec.Host]; was != "" && was != bucket {
			return true
		}
		in[d.Spec.Host] = bucket
	}
	return false
}
