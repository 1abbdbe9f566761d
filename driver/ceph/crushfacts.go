package ceph

import (
	"context"
	"maps"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/engine"
)

// These are what is known of CRUSH.
type (
	Place  = crushmap.Place
	Bucket = crushmap.Bucket
	Rule   = crushmap.Rule
	Take   = crushmap.Take
	Choose = crushmap.Choose
)

// crushMap is CRUSH as of a version of it, as far as it was asked for. Nobody writes to what is in it.
type crushMap struct {
	version int
	rules   map[int]Rule
	tree    *crushmap.Tree
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
	up := func(id int) bool { return o.OSDs[id].Up }
	o.Crush, o.Found.Strays = tree.Buckets, c.strays.Find(c.osds.Epoch, tree, maps.Keys(o.OSDs), up)
	if anySplit(view.Daemons, tree.Buckets) {
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
	var answers []crushmap.RuleAnswer
	if err := c.ask(ctx, "osd crush rule dump", &answers); err != nil {
		return nil, err
	}
	known.rules = make(map[int]Rule, len(answers))
	for _, a := range answers {
		known.rules[a.ID] = a.Rule()
	}
	return known.rules, nil
}

// crushTree asks what is where in CRUSH, when that has changed. It is empty where Ceph does not answer.
func (c *conn) crushTree(ctx context.Context) (*crushmap.Tree, error) {
	known := c.knownCrush()
	if known.tree != nil {
		return known.tree, nil
	}
	var answer struct {
		Nodes []crushmap.Node `json:"nodes"`
	}
	if err := c.ask(ctx, "osd tree", &answer); err != nil {
		return &crushmap.Tree{}, err
	}
	known.tree = crushmap.TreeOf(answer.Nodes)
	return known.tree, nil
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
