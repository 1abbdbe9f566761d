// Package radostest is a Ceph cluster in memory, for tests. It answers the commands that Holdfast sends in the shape of the
// answers that a real Ceph 16.2.15 gave (testdata), and is driven by which daemons run: a quorum is there when more than half
// of the mons run, an OSD is up when it runs and was registered with its own uuid.
package radostest

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd/rbdtest"
)

// Cluster is a Ceph cluster in memory. It is safe for concurrent use.
type Cluster struct {
	// Images answers what is asked of librbd; nil where there is none.
	Images *rbdtest.Images
	// Ghosts are MDS that ended without a word: Ceph lists them until it has missed their beacons.
	Ghosts []string

	mu       sync.Mutex
	fsid     string
	mons     []string // the monmap
	monEpoch int
	expelled map[string]bool     // mons that were in the map once
	seeds    map[string][]string // by mon: the entities that its store was made with
	running  map[string]bool     // by name, such as mon.a
	releases map[string]string   // that these run, where they say
	uuids    map[string]string   // of running OSDs
	starts   map[string]start    // where running OSDs put themselves in CRUSH when they start
	kernels  map[string]string   // what the kernels of hosts call them, where that is another name
	auth     map[string]string   // entity to key; nil before the first quorum
	osds     map[int]*osd
	without  string // a type that CRUSH has no buckets of, although a new Ceph has
	epoch    int    // of the OSD map
	looks    int    // how often Sync was called: time goes by secondsPerLook each
	election int
	unseen   int // how many rounds the mgr's report lags behind
	warnings map[string]string
	calls    map[string]int
	active   string // the mgr that was active last
	managers managers
	buckets  map[string]bucket // those of CRUSH but for the root, by their names
	crush    int               // its version
	lastTree string            // what CRUSH was in that version
	birth    string            // what the first CRUSH rule spreads copies over
	domain   string            // what it does since somebody changed it
	own      *pool             // the pool that the mgr has made for itself
	stuck    map[int]bool      // OSDs whose data cannot be moved
	space    map[int]int64     // KiB used by OSDs, where it is not next to nothing
	caps     map[string]map[string]string
	pools    map[string]*pool
	lastPool int
	made     []madeRule
	lastRule int
	profiles map[string]map[string]string
	config   map[string]bool   // options of the mons that were set
	stored   map[string]string // options that are stored, by "section name"
	keys     map[string]string
	cut      func()
	cutAfter int
	muted    map[string]bool // commands that nobody answers
	flags    map[string]bool // of the whole cluster, that somebody has set
	// schedules of pools whose images are mirrored by snapshots
	schedules map[string][]string

	filesystems  map[string]*filesystem
	lastFS       int
	fsEpoch      int
	lastStandbys string
}

type osd struct {
	uuid           string
	up, in, booted bool
	noout          bool
	downAt         int // epoch
	downStamp      time.Time
	weight         float64 // in CRUSH
	destroyed      bool
	host           string // the bucket that CRUSH has it in
	address        string // where it listens
}

// reportLag is how many times 'status' is answered before the mgr's report shows what has changed. Until then Ceph says
// HEALTH_OK of what it does not know, as the real one does.
const reportLag = 2

// New returns a cluster of which nothing runs.
func New() *Cluster {
	return &Cluster{
		managers:  managers{loaded: map[string]string{}},
		schedules: map[string][]string{}, flags: map[string]bool{},
		expelled: map[string]bool{}, starts: map[string]start{}, kernels: map[string]string{}, buckets: map[string]bucket{}, stuck: map[int]bool{}, space: map[int]int64{}, seeds: map[string][]string{}, running: map[string]bool{}, releases: map[string]string{}, uuids: map[string]string{},
		osds: map[int]*osd{}, epoch: 1, warnings: map[string]string{}, calls: map[string]int{},
		caps: map[string]map[string]string{}, pools: map[string]*pool{}, lastPool: 1, profiles: map[string]map[string]string{}, config: map[string]bool{}, stored: map[string]string{}, keys: map[string]string{}, muted: map[string]bool{}, filesystems: map[string]*filesystem{}, fsEpoch: 1,
	}
}

// Clock is a clock for drivers by which no report of Ceph is ever old: an hour goes by from one look at it to the next.
func Clock() func() time.Time {
	var hours atomic.Int64
	return func() time.Time { return time.Unix(0, 0).Add(time.Duration(hours.Add(1)) * time.Hour) }
}

const secondsPerLook = 10

// Sync makes the cluster run those daemons whose status says that they run, with the parameters and keys that they have.
func (c *Cluster) Sync(daemons []api.Daemon) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	before := c.quorum()
	running := map[string]bool{}
	for i := range daemons {
		d := &daemons[i]
		if d.Status.State != api.DaemonRunning {
			continue
		}
		name := strings.TrimPrefix(d.Spec.Type, "ceph-") + "." + d.Spec.ID
		running[name] = true
		c.releases[name] = d.Status.Version
		switch d.Spec.Type {
		case "ceph-mon":
			c.makeMon(d)
		case "ceph-osd":
			c.uuids[name] = d.Spec.Parameters["osdUUID"]
			c.starts[name] = c.startOf(d)
		case "ceph-mgr":
			c.managers.start(d)
		}
	}
	c.running = running
	c.joinMons()
	if !slices.Equal(before, c.quorum()) {
		c.election += 2
	}
	c.settle()
}

// settle follows what runs: the first quorum makes the auth database, and OSDs come up and go down.
func (c *Cluster) settle() {
	quorum := c.quorum()
	if len(quorum) == 0 {
		return
	}
	if c.auth == nil {
		c.auth = map[string]string{}
		for _, entity := range c.seeds[quorum[0]] {
			c.auth[entity], c.caps[entity] = "", cephx.Caps(entity)
		}
	}
	for id, o := range c.osds {
		name := "osd." + strconv.Itoa(id)
		up := c.running[name] && c.uuids[name] == o.uuid
		if up && !o.up && !c.starts[name].stays {
			o.host = c.starts[name].host
			c.hostStarts(o.host)
		}
		if up && !o.up {
			o.address = c.starts[name].address
		}
		if up != o.up {
			o.up, o.booted = up, o.booted || up
			c.changed()
			if !up {
				o.downAt, o.downStamp = c.epoch, time.Unix(int64(c.looks)*secondsPerLook, 0)
			}
		}
	}
}

func (c *Cluster) changed() {
	c.epoch++
	c.unseen = reportLag
}

// mgrs are the running managers that the mons let in.
func (c *Cluster) mgrs() []string {
	var in []string
	for name := range c.running {
		if id, ok := strings.CutPrefix(name, "mgr."); ok {
			if _, known := c.auth[name]; known {
				in = append(in, id)
			}
		}
	}
	slices.Sort(in)
	return in
}

// Warn sets a health check; an empty message takes it away.
func (c *Cluster) Warn(code, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if message == "" {
		delete(c.warnings, code)
		return
	}
	c.warnings[code] = message
}

// Register puts an OSD into the map, as if someone else had done it.
func (c *Cluster) Register(id int, uuid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.osds[id] = &osd{uuid: uuid, in: true, weight: osdWeight}
	c.changed()
}

// OSDs returns the uuids of the OSDs in the map.
func (c *Cluster) OSDs() map[int]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	uuids := map[int]string{}
	for id, o := range c.osds {
		uuids[id] = o.uuid
	}
	return uuids
}

// Calls says how often a command was asked.
func (c *Cluster) Calls(prefix string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[prefix]
}

// Dial connects to the cluster; it has the form that the driver wants.
func (c *Cluster) Dial(rados.Config) rados.Client { return client{c} }
