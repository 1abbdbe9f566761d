package ceph

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
	"github.com/holdfast-storage/holdfast/engine"
)

// DrainFacts are what has to be known to move data off OSDs. They are asked for only while an OSD
// is to leave.
type DrainFacts struct {
	// Safe are the OSDs that Ceph calls safe to destroy.
	Safe map[int]bool
	// Rules are the CRUSH rules by their numbers, and Places where CRUSH has the OSDs.
	Rules  map[int]Rule
	Places map[int]Place
	// Usage is the space of the OSDs, and Stored that of the pools with all copies, by their names,
	// in bytes.
	Usage  map[int]Usage
	Stored map[string]int64
	// Buckets counts the children of CRUSH's hosts, by their names.
	Buckets map[string]int
}

// Usage is the space of an OSD, in KiB, and how many placement groups it has.
type Usage struct {
	Total, Used int64
	PGs         int
}

// PGsOn counts the placement groups on an OSD; known is false where Ceph did not say.
func (o *Observation) PGsOn(osd string) (count int, known bool) {
	id, err := strconv.Atoi(osd)
	if o == nil || err != nil || o.Drain == nil {
		return 0, false
	}
	u, known := o.Drain.Usage[id]
	return u.PGs, known
}

// placeOf is what the Daemon of an OSD lies on.
func placeOf(d *api.Daemon) devicePlace {
	at := devicePlace{host: d.Spec.Host}
	for _, device := range d.Spec.Devices {
		if device.Name == DeviceBlock {
			at.device = device.ID
		}
	}
	return at
}

// fillDrain asks for the facts where an OSD is to leave. What is not known stays out, and is waited
// for.
func (c *conn) fillDrain(ctx context.Context, view *engine.View, o *Observation) error {
	going := leaving.Of(view)
	needed := len(orphans(view, o)) > 0 || slices.ContainsFunc(view.Hosts, func(h api.Host) bool { return h.ModeOf() == api.HostDrain })
	var leave []string
	for i := range view.Daemons {
		d := &view.Daemons[i]
		if d.Spec.Type != TypeOSD || !drains(d) && !going.Place(placeOf(d).drive()) {
			continue
		}
		needed = true
		if drains(d) {
			leave = append(leave, d.Spec.ID)
		}
	}
	if !needed {
		return nil
	}
	o.Drain = &DrainFacts{Safe: map[int]bool{}, Usage: map[int]Usage{}, Stored: map[string]int64{}}
	for _, fill := range []func(context.Context, *DrainFacts) error{c.fillUsage, c.fillStored, c.fillPlaces} {
		if err := fill(ctx, o.Drain); err != nil {
			return err
		}
	}
	leave = slices.DeleteFunc(leave, func(id string) bool { return !o.weightless(id) })
	if len(leave) > 0 && c.mgrIgnorance(ctx, o) == "" {
		c.fillSafe(ctx, leave, o.Drain)
	}
	return nil
}

// weightless says whether CRUSH gives an OSD of Ceph's map no data: it has no weight, or is out.
func (o *Observation) weightless(osd string) bool {
	id, err := strconv.Atoi(osd)
	return err == nil && o.OSDs[id].UUID != "" && (o.Drain.Places[id].Weight == 0 || !o.OSDs[id].In)
}

// fillSafe asks what may be destroyed. The answer is no error when nothing may: the lists in it
// count.
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

// fillDestroyed finds the hosts of numbers that wait for another OSD.
func (c *conn) fillDestroyed(ctx context.Context, o *Observation) error {
	if len(o.Destroyed) == 0 {
		return nil
	}
	tree, err := c.crushTree(ctx)
	for id := range o.Destroyed {
		o.Destroyed[id] = tree.Places[id].Buckets["host"]
	}
	return err
}

// fillPlaces has where the OSDs are, and the rules.
func (c *conn) fillPlaces(ctx context.Context, facts *DrainFacts) error {
	rules, err := c.crushRules(ctx)
	if err != nil {
		return err
	}
	tree, err := c.crushTree(ctx)
	facts.Rules, facts.Places, facts.Buckets = rules, tree.Places, tree.Children
	return err
}

func (c *conn) fillStored(ctx context.Context, facts *DrainFacts) error {
	pools, err := c.poolStats(ctx)
	for _, p := range pools {
		facts.Stored[p.Name] = p.Stats.Used
	}
	return err
}

func (c *conn) fillUsage(ctx context.Context, facts *DrainFacts) error {
	var df struct {
		Nodes []struct {
			ID   int   `json:"id"`
			KB   int64 `json:"kb"`
			Used int64 `json:"kb_used"`
			PGs  int   `json:"pgs"`
		} `json:"nodes"`
	}
	err := c.ask(ctx, "osd df", &df)
	for _, n := range df.Nodes {
		facts.Usage[n.ID] = Usage{Total: n.KB, Used: n.Used, PGs: n.PGs}
	}
	return err
}
