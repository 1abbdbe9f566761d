package ceph

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// DrainFacts are what has to be known to move data off hosts. They are asked for only while a host is drained or gone.
type DrainFacts struct {
	// Safe are the OSDs that Ceph calls safe to destroy.
	Safe map[int]bool
	// Rules are the CRUSH rules by their numbers, and Places where CRUSH has the OSDs.
	Rules  map[int]Rule
	Places map[int]Place
	// Usage is the space of the OSDs.
	Usage map[int]Usage
	// Buckets counts the children of CRUSH's hosts, by their names.
	Buckets map[string]int
}

// Usage is the space of an OSD, in KiB.
type Usage struct{ Total, Used int64 }

// Pool is what the copies of a pool ask for.
type Pool struct {
	Name string
	// Size is how many copies or pieces of an object there are, each in a failure domain of its own.
	Size int
	Rule int
}

// parting says whether a host is not to keep any OSDs: it is drained, or its Host is gone.
func parting(hosts map[string]*api.Host, host string) bool {
	h := hosts[host]
	return h == nil || h.ModeOf() == api.HostDrain
}

// fillDrain asks for the facts where a host is drained or gone. What is not known stays out, and is waited for.
func (c *conn) fillDrain(ctx context.Context, view *engine.View, o *Observation) error {
	hosts := view.HostsByName()
	needed := slices.ContainsFunc(view.Hosts, func(h api.Host) bool { return h.ModeOf() == api.HostDrain })
	var out []string
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if d.Spec.Type != TypeOSD || !parting(hosts, d.Spec.Host) {
			continue
		}
		needed = true
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && o.OSDs[id].UUID != "" && !o.OSDs[id].In {
			out = append(out, d.Spec.ID)
		}
	}
	if !needed {
		return nil
	}
	o.Drain = &DrainFacts{Safe: map[int]bool{}, Rules: map[int]Rule{}, Places: map[int]Place{}, Usage: map[int]Usage{}, Buckets: map[string]int{}}
	if len(out) > 0 && c.mgrIgnorance(ctx, o) == "" {
		c.fillSafe(ctx, out, o.Drain)
	}
	for _, fill := range []func(context.Context, *DrainFacts) error{c.fillRules, c.fillUsage, c.fillTree} {
		if err := fill(ctx, o.Drain); err != nil {
			return err
		}
	}
	return nil
}

// fillSafe asks what may be destroyed. The answer is no error when nothing may: the lists in it count.
func (c *conn) fillSafe(ctx context.Context, osds []string, facts *DrainFacts) {
	ctx, cancel := context.WithTimeout(ctx, laterAnswer)
	defer cancel()
	out, err := c.client.Mgr(ctx, command{"prefix": "osd safe-to-destroy", "ids": osds, "format": "json"}, nil)
	var answer struct {
		Safe []int `json:"safe_to_destroy"`
	}
	if err != nil || json.Unmarshal(out, &answer) != nil {
		return // it is asked again in the next run
	}
	for _, id := range answer.Safe {
		facts.Safe[id] = true
	}
}

func (c *conn) fillUsage(ctx context.Context, facts *DrainFacts) error {
	var df struct {
		Nodes []struct {
			ID   int   `json:"id"`
			KB   int64 `json:"kb"`
			Used int64 `json:"kb_used"`
		} `json:"nodes"`
	}
	err := c.ask(ctx, "osd df", &df)
	for _, n := range df.Nodes {
		facts.Usage[n.ID] = Usage{Total: n.KB, Used: n.Used}
	}
	return err
}
