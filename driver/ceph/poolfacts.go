package ceph

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/images"
	"github.com/holdfast-storage/holdfast/driver/ceph/placing"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
	"github.com/holdfast-storage/holdfast/engine"
)

// Pool is a pool in Ceph's map.
type Pool struct {
	ID   int64
	Name string
	// Erasure is set for a pool that is erasure-coded, by the profile Profile.
	Erasure bool
	Profile string
	// Size is how many copies or pieces of an object there are, each in a failure domain of its own.
	Size, MinSize int
	Rule          int
	PGs           int
	MaxBytes      int64
	MaxObjects    int64
	// Flags are its own, and Overwrites is set where clients may change objects of an erasure-coded pool in part.
	Flags      []string
	Overwrites bool
	// Applications are what the pool is for, and Options those of its options that are set (Ceph docs, "Pools: set pool values").
	Applications map[string]bool
	Options      map[string]string
}

// PoolFacts are what has to be known to look after pools. What is in them, and how they are, is asked for only where the
// cluster has Pools.
type PoolFacts struct {
	// Rules are the CRUSH rules by their numbers, and Places where CRUSH has the OSDs.
	Rules  map[int]Rule
	Places map[int]Place
	// Profiles are the profiles of erasure coding, by their names.
	Profiles map[string]map[string]string
	// Usage is the space of the pools by their names. Busy is what their clients do just now, in operations a second, rounded up; it is asked for when a
	// pool is to be deleted, and nil as long as the manager has not said it.
	Usage map[string]PoolUsage
	Busy  map[string]int64
	// Images are the block images of pools that are to be deleted, by the numbers of the pools.
	Images map[int64]rbd.Contents
	// Unclean counts the placement groups that are not active+clean by the number of their pool and their state.
	Unclean map[int64]map[string]int
}

// PoolUsage is what is in a pool: bytes as clients see them, and objects.
type PoolUsage struct{ Stored, Available, Objects int64 }

// poolAnswer is a pool as 'osd dump' has it.
type poolAnswer struct {
	ID           int64                      `json:"pool"`
	Name         string                     `json:"pool_name"`
	Type         int                        `json:"type"`
	Profile      string                     `json:"erasure_code_profile"`
	Size         int                        `json:"size"`
	MinSize      int                        `json:"min_size"`
	Rule         int                        `json:"crush_rule"`
	PGNum        int                        `json:"pg_num"`
	Flags        string                     `json:"flags_names"`
	MaxBytes     int64                      `json:"quota_max_bytes"`
	MaxObjects   int64                      `json:"quota_max_objects"`
	Options      map[string]any             `json:"options"`
	Applications map[string]json.RawMessage `json:"application_metadata"`
}

func (a *poolAnswer) pool() Pool {
	p := Pool{
		ID: a.ID, Name: a.Name, Erasure: a.Type == crushmap.TypeErasure, Profile: a.Profile, Size: a.Size, MinSize: a.MinSize, Rule: a.Rule, PGs: a.PGNum,
		MaxBytes: a.MaxBytes, MaxObjects: a.MaxObjects, Flags: strings.Split(a.Flags, ","), Overwrites: strings.Contains(a.Flags, "ec_overwrites"),
		Applications: map[string]bool{}, Options: map[string]string{},
	}
	for name := range a.Applications {
		p.Applications[name] = true
	}
	for name, value := range a.Options {
		if text, ok := value.(string); ok {
			p.Options[name] = text
		}
	}
	return p
}

// hasPools says whether any of the resources has pools.
func hasPools(all []api.Resource) bool {
	return len(engine.OfKind[*api.Pool](all))+len(engine.OfKind[*api.Filesystem](all))+len(engine.OfKind[*api.ObjectStore](all)) > 0
}

// fillPools asks for the facts: for how pools are spread when CRUSH has changed, and for the rest where the cluster has
// Pools.
func (c *conn) fillPools(ctx context.Context, view *engine.View, o *Observation) error {
	pools := engine.OfKind[*api.Pool](view.Resources)
	rules, err := c.crushRules(ctx)
	if err != nil {
		return err
	}
	tree, err := c.crushTree(ctx)
	if err != nil {
		return err
	}
	o.PoolFacts = &PoolFacts{
		Rules: rules, Places: tree.Places, Profiles: c.osds.Profiles,
		Usage: map[string]PoolUsage{}, Unclean: map[int64]map[string]int{},
	}
	if !o.MgrAvailable || !hasPools(view.Resources) {
		return nil
	}
	if err := c.fillPoolUsage(ctx, o.PoolFacts); err != nil {
		return err
	}
	if o.PGsClean < o.PGs {
		c.fillUnclean(ctx, o.PoolFacts)
	}
	for _, p := range pools {
		if p.DeletionTimestamp != nil && p.Spec.DeletionPolicy == api.DeletionWipe {
			c.fillBusy(ctx, o.PoolFacts)
			o.PoolFacts.Images = images.Of(ctx, c.client, pools, o.PGsActive >= o.PGs)
			break
		}
	}
	return nil
}

// poolStats is what 'df' says of a pool, in bytes: Used is what it takes with all copies.
type poolStats struct {
	Name  string `json:"name"`
	Stats struct {
		Stored    int64 `json:"stored"`
		Objects   int64 `json:"objects"`
		Used      int64 `json:"bytes_used"`
		Available int64 `json:"max_avail"`
	} `json:"stats"`
}

func (c *conn) poolStats(ctx context.Context) ([]poolStats, error) {
	var df struct {
		Pools []poolStats `json:"pools"`
	}
	err := c.ask(ctx, "df", &df)
	return df.Pools, err
}

func (c *conn) fillPoolUsage(ctx context.Context, facts *PoolFacts) error {
	pools, err := c.poolStats(ctx)
	for _, p := range pools {
		facts.Usage[p.Name] = PoolUsage{Stored: p.Stats.Stored, Objects: p.Stats.Objects, Available: p.Stats.Available}
	}
	return err
}

// fillUnclean asks the manager for the states of all placement groups. What it does not answer is asked again in the next run.
func (c *conn) fillUnclean(ctx context.Context, facts *PoolFacts) {
	var dump struct {
		Stats []struct {
			ID    string `json:"pgid"`
			State string `json:"state"`
		} `json:"pg_stats"`
	}
	if c.askMgr(ctx, command{"prefix": "pg dump", "dumpcontents": []string{"pgs_brief"}, "format": "json"}, &dump) != nil {
		return
	}
	for _, pg := range dump.Stats {
		number, _, _ := strings.Cut(pg.ID, ".")
		pool, err := strconv.ParseInt(number, 10, 64)
		if err != nil || placing.IsClean(pg.State) {
			continue
		}
		if facts.Unclean[pool] == nil {
			facts.Unclean[pool] = map[string]int{}
		}
		facts.Unclean[pool][pg.State]++
	}
}

// fillBusy asks what clients do with the pools.
func (c *conn) fillBusy(ctx context.Context, facts *PoolFacts) {
	var stats []struct {
		Name string `json:"pool_name"`
		Rate struct {
			Reads        int64 `json:"read_op_per_sec"`
			Writes       int64 `json:"write_op_per_sec"`
			BytesRead    int64 `json:"read_bytes_sec"`
			BytesWritten int64 `json:"write_bytes_sec"`
		} `json:"client_io_rate"`
	}
	if c.askMgr(ctx, command{"prefix": "osd pool stats", "format": "json"}, &stats) != nil {
		return
	}
	facts.Busy = map[string]int64{}
	for _, p := range stats {
		facts.Busy[p.Name] = p.Rate.Reads + p.Rate.Writes
		// The mgr rounds down: of a client that does less than one operation a second only the bytes tell.
		if p.Rate.BytesRead+p.Rate.BytesWritten > 0 {
			facts.Busy[p.Name] = max(1, facts.Busy[p.Name])
		}
	}
}

// mgrAnswer is how long the manager is waited for about pools. It may hang, and what else is asked in a run needs its time, too.
const mgrAnswer = time.Second

// askMgr asks the manager.
func (c *conn) askMgr(ctx context.Context, cmd command, into any) error {
	ctx, cancel := context.WithTimeout(ctx, mgrAnswer)
	defer cancel()
	out, err := c.client.Mgr(ctx, cmd, nil)
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	return err
}
