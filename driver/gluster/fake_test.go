package gluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// fakeGluster is a GlusterFS in memory. It does what the real one does as far as a driver can tell, and knows of each brick
// whether it has all data of its set, so that a test can tell when data is lost.
type fakeGluster struct {
	opVersion int
	nodes     map[string]*fakeNode // by Daemon
	volumes   map[string]*fakeVolume
	serial    int
	// writing has clients write to all volumes all the time: what does not serve misses something.
	writing bool
	// silent: nothing can be asked of volumes. A node that was cut off is waited for.
	silent bool
}

type fakeNode struct {
	name, address, uuid, daemon string
	pool                        int // nodes of the same pool have the same number
	up                          bool
	// version is the release that runs, and installed the one that the next start takes.
	version, installed string
	// drop says that version 11 finds what it can read when it starts; rejected that it did not.
	drop, rejected bool
	stores         map[string]*fakeStore
}

type fakeStore struct {
	name, path, device string
	size               int64
	dead               bool
	dirs               map[string]string // path to volume id
}

type fakeVolume struct {
	name, id, state string
	layout          layout
	bricks          []*fakeBrick
	options         map[string]string
	refused         []glusterd.RefusedOption
	limit           int64
	task            *glusterd.Task
	// lazy: what bricks lack is healed only once somebody asks for it.
	lazy bool
}

type fakeBrick struct {
	node    *fakeNode
	path    string
	running bool
	stale   bool // it lacks something that its set has
	holds   bool // it has files that no other brick of a volume of single bricks has
}

func newFake() *fakeGluster {
	return &fakeGluster{opVersion: 100000, nodes: map[string]*fakeNode{}, volumes: map[string]*fakeVolume{}}
}

func (g *fakeGluster) node(d *api.Daemon) *fakeNode {
	if g.nodes[d.Name] == nil {
		g.serial++
		g.nodes[d.Name] = &fakeNode{
			name: d.Spec.ID, address: d.Spec.Parameters[glusterd.ParamAddress], uuid: fmt.Sprintf("uuid-%s-%d", d.Spec.ID, g.serial),
			daemon: d.Name, pool: g.serial, stores: map[string]*fakeStore{}, version: "10.3", installed: "10.3",
		}
	}
	g.nodes[d.Name].drop = d.Spec.Parameters[glusterd.ParamDrop] != ""
	return g.nodes[d.Name]
}

// power turns a node off, or on with the release that is installed. One that is the second to run version 11 has to read volumes that
// version 11 has written, or the others reject it.
func (g *fakeGluster) power(n *fakeNode, on bool) {
	if on && !n.up {
		n.rejected = n.rejected || release(n.version) < goneIn && release(n.installed) >= goneIn && g.newer(n) > 0 && !n.drop
		n.version = n.installed
	}
	n.up = on
}

// newer counts the other nodes of a node's pool that run version 11.
func (g *fakeGluster) newer(n *fakeNode) (count int) {
	for _, o := range g.nodes {
		if o != n && o.pool == n.pool && release(o.version) >= goneIn {
			count++
		}
	}
	return count
}

// agrees says whether two nodes of a pool accept what the other says of it: those of version 10 do not, as soon as two run version 11.
func (g *fakeGluster) agrees(a, b *fakeNode) bool {
	mixed := (release(a.version) >= goneIn) != (release(b.version) >= goneIn)
	return !a.rejected && !b.rejected && (!mixed || max(g.newer(a), g.newer(b)) < 2)
}

// sync makes the stores that the daemon's spec names.
func (n *fakeNode) sync(d *api.Daemon, host *api.HostStatus) {
	wanted := map[string]bool{}
	for _, dev := range d.Spec.Devices {
		wanted[dev.Name] = true
		if n.stores[dev.Name] == nil {
			n.stores[dev.Name] = &fakeStore{name: dev.Name, device: dev.ID, path: "/m/" + dev.Name, size: 100 * gib, dirs: map[string]string{}}
		}
		for i := range host.Devices {
			if x := &host.Devices[i]; x.ID == dev.ID {
				x.Availability, x.Reasons = api.DeviceUnavailable, []string{"it has a file system"}
			}
		}
	}
	for _, dir := range directories(d) {
		wanted[dir] = true
		if n.stores[dir] == nil {
			n.stores[dir] = &fakeStore{name: dir, path: dir, size: 100 * gib, dirs: map[string]string{}}
		}
	}
	maps.DeleteFunc(n.stores, func(name string, _ *fakeStore) bool { return !wanted[name] })
}

func (n *fakeNode) store(path string) *fakeStore {
	for _, s := range n.stores {
		if strings.HasPrefix(path, s.path+"/") {
			return s
		}
	}
	return nil
}

func (b *fakeBrick) serves(v *fakeVolume) bool {
	s := b.node.store(b.path)
	return b.running && b.node.up && s != nil && !s.dead && s.dirs[b.path] == v.id
}

func (b *fakeBrick) name() string { return b.node.address + ":" + b.path }

func (v *fakeVolume) sets() [][]*fakeBrick {
	return slices.Collect(slices.Chunk(v.bricks, v.layout.setSize()))
}

// settle lets processes end whose machine or disk is gone, and has those start whose machine is up again. Clients write.
func (g *fakeGluster) settle() {
	for _, v := range g.volumes {
		for _, b := range v.bricks {
			s := b.node.store(b.path)
			if s == nil || s.dead || s.dirs[b.path] != v.id {
				b.running = false
			}
		}
		if !g.writing || v.state != glusterd.VolumeStarted || v.layout.setSize() == 1 {
			continue
		}
		for _, set := range v.sets() {
			up := slices.DeleteFunc(slices.Clone(set), func(b *fakeBrick) bool { return !b.serves(v) })
			if len(up) < v.needed() {
				continue
			}
			for _, b := range set {
				b.stale = b.stale || !b.serves(v)
			}
		}
	}
}

func (v *fakeVolume) needed() int {
	if v.layout.disperse > 0 {
		return v.layout.disperse - v.layout.redundancy
	}
	return v.layout.replica/2 + 1
}

// good are the bricks of a set that have all of its data, and can be read now or when their machine is up again.
func (v *fakeVolume) good(set []*fakeBrick) int {
	n := 0
	for _, b := range set {
		s := b.node.store(b.path)
		if !b.stale && s != nil && !s.dead && s.dirs[b.path] == v.id {
			n++
		}
	}
	return n
}

// enough is how many good bricks of a set its data can be read from.
func (v *fakeVolume) enough() int {
	if v.layout.disperse > 0 {
		return v.layout.disperse - v.layout.redundancy
	}
	return 1
}

// heal lets bricks that lack something and serve be filled from those of their set that have it.
func (g *fakeGluster) heal() {
	for _, v := range g.volumes {
		for _, set := range v.sets() {
			serving := slices.DeleteFunc(slices.Clone(set), func(b *fakeBrick) bool { return !b.serves(v) })
			if v.lazy || v.state != glusterd.VolumeStarted || v.good(serving) < v.enough() {
				continue
			}
			for _, b := range serving {
				b.stale = false
			}
		}
	}
}

// move brings tasks to their end.
func (g *fakeGluster) move() {
	for _, v := range g.volumes {
		if v.task == nil || v.task.State != glusterd.TaskInProgress {
			continue
		}
		v.task.State = glusterd.TaskCompleted
		for _, b := range v.bricks {
			if !b.serves(v) {
				v.task.State = glusterd.TaskFailed
			}
		}
		if v.task.State == glusterd.TaskCompleted && v.task.Failures == 0 && v.task.Kind == glusterd.TaskRemoveBrick {
			for _, b := range v.bricks {
				b.holds = !slices.Contains(v.task.Bricks, b.name())
			}
		}
	}
}

// checkWithout fails if a set would have too few bricks that serve, or no good copy, without the bricks of a node.
func (g *fakeGluster) checkWithout(t tester, n *fakeNode, what string, stays func(*fakeBrick) bool) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(g.volumes)) {
		v := g.volumes[name]
		for _, set := range v.sets() {
			rest := slices.DeleteFunc(slices.Clone(set), func(b *fakeBrick) bool { return b.node == n && !stays(b) })
			if len(rest) == len(set) || v.state != glusterd.VolumeStarted {
				continue
			}
			serving := slices.DeleteFunc(rest, func(b *fakeBrick) bool { return !b.serves(v) })
			if len(serving) < v.needed() || v.good(serving) < v.needed() {
				t.Fatalf("%s, and volume %s is left with %d bricks of a set that serve, %d of them good; %d are needed\n%s",
					what, v.name, len(serving), v.good(serving), v.needed(), g.text())
			}
		}
	}
}

// do carries out a command on a node.
func (g *fakeGluster) do(n *fakeNode, c engine.Command) error {
	if n == nil || !n.up {
		return errors.New("glusterd does not run")
	}
	v := g.volumes[c.Object]
	switch c.Verb {
	case glusterd.VerbProbe:
		return g.probe(n, c.Object)
	case glusterd.VerbDetach:
		return g.detach(c.Object)
	case glusterd.VerbCreate:
		return g.create(n, c)
	case glusterd.VerbOpVersion:
		g.opVersion, _ = strconv.Atoi(c.Object)
		return nil
	}
	if v == nil {
		if c.Verb == glusterd.VerbStop || c.Verb == glusterd.VerbDelete {
			return nil
		}
		return fmt.Errorf("volume %s does not exist", c.Object)
	}
	switch c.Verb {
	case glusterd.VerbStart:
		v.start()
	case glusterd.VerbHeal:
		v.lazy = false
	case glusterd.VerbStop:
		v.state = glusterd.VolumeStopped
		for _, b := range v.bricks {
			b.running = false
		}
	case glusterd.VerbDelete:
		if v.state == glusterd.VolumeStarted {
			return errors.New("it has been started")
		}
		for _, o := range g.nodes {
			if o.pool == n.pool && !o.up {
				return errors.New("some of the peers are down")
			}
		}
		delete(g.volumes, v.name)
	case glusterd.VerbSet:
		return v.set(c.Params)
	case glusterd.VerbReset:
		for name := range c.Params {
			delete(v.options, name)
		}
	case glusterd.VerbQuota:
		v.limit, _ = strconv.ParseInt(c.Params[glusterd.ParamLimit], 10, 64)
		v.options[glusterd.OptionQuota] = map[bool]string{true: "on", false: "off"}[v.limit > 0]
	case glusterd.VerbAddBrick:
		return g.addBricks(v, c.Params)
	case glusterd.VerbRebalance:
		return v.startTask(g, glusterd.TaskRebalance, nil)
	case glusterd.VerbRemoveStart:
		return v.startTask(g, glusterd.TaskRemoveBrick, strings.Fields(c.Params[glusterd.ParamBricks]))
	case glusterd.VerbRemoveStop:
		v.task.State = glusterd.TaskStopped
	case glusterd.VerbRemoveCommit:
		if c.Params[glusterd.ParamForce] == "true" {
			return v.giveUp(strings.Fields(c.Params[glusterd.ParamBricks]))
		}
		return v.commit(strings.Fields(c.Params[glusterd.ParamBricks]))
	case glusterd.VerbReplace:
		if v.state != glusterd.VolumeStarted || v.layout.setSize() == 1 {
			return errors.New("it is not started, or has single bricks")
		}
		return g.replace(v, c.Params[glusterd.ParamOld], c.Params[glusterd.ParamNew])
	case glusterd.VerbResetBrick:
		return g.replace(v, c.Params[glusterd.ParamOld], c.Params[glusterd.ParamOld])
	default:
		return fmt.Errorf("unknown command %q", c.Verb)
	}
	return nil
}

// fakeGroups are the groups of options of the fake.
var fakeGroups = map[string]map[string]string{
	"virt": {"network.ping-timeout": "20", "features.shard": "on"}, "samba": {"cluster.cache": "on"},
}

// fullNames are the options that the fake knows by a short name, and badValue is one that it takes
// of none.
var fullNames = map[string]string{"ping-timeout": "network.ping-timeout", "shard": "features.shard"}

const badValue = "bad"

// set keeps options by their full names. Values that are bad it does not take.
func (v *fakeVolume) set(params map[string]string) error {
	var err error
	v.refused = nil
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value, full := params[name], cmp.Or(fullNames[name], name)
		switch {
		case value == badValue || !strings.Contains(full, "."):
			v.refused = append(v.refused, glusterd.RefusedOption{Name: name, Value: value, Text: "it is not valid"})
			err = errors.Join(err, errors.New("option "+name+" is not valid"))
		default:
			v.options[full] = value
		}
	}
	return err
}

func (v *fakeVolume) start() {
	v.state = glusterd.VolumeStarted
	for _, b := range v.bricks {
		if b.node.up {
			b.running = true
		}
	}
}

func (g *fakeGluster) probe(n *fakeNode, address string) error {
	for _, o := range g.nodes {
		if o.address == address && o.up {
			for _, v := range g.volumes {
				for _, b := range v.bricks {
					if b.node == o {
						return errors.New("it has volumes")
					}
				}
			}
			o.pool = n.pool
			return nil
		}
	}
	return errors.New("Transport endpoint is not connected")
}

func (g *fakeGluster) detach(address string) error {
	for _, o := range g.nodes {
		if o.address != address {
			continue
		}
		for _, v := range g.volumes {
			for _, b := range v.bricks {
				if b.node == o {
					return errors.New("hosts one or more bricks")
				}
			}
		}
		g.serial++
		o.pool = g.serial
	}
	return nil
}

func (g *fakeGluster) brick(name string) (*fakeBrick, error) {
	address, path := glusterd.SplitBrick(name)
	for _, n := range g.nodes {
		if n.address != address {
			continue
		}
		s := n.store(path)
		switch {
		case !n.up:
			return nil, fmt.Errorf("host %s is not connected", address)
		case s == nil || s.dead:
			return nil, fmt.Errorf("no directory for %s", name)
		case s.dirs[path] != "":
			return nil, fmt.Errorf("%s is already part of a volume", name)
		}
		return &fakeBrick{node: n, path: path}, nil
	}
	return nil, fmt.Errorf("host %s is not in the pool", address)
}

func (g *fakeGluster) bricks(names string) ([]*fakeBrick, error) {
	var all []*fakeBrick
	for name := range strings.FieldsSeq(names) {
		b, err := g.brick(name)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func (g *fakeGluster) create(n *fakeNode, c engine.Command) error {
	if g.volumes[c.Object] != nil {
		return nil // Has
	}
	bricks, err := g.bricks(c.Params[glusterd.ParamBricks])
	if err != nil {
		return err
	}
	number := func(p string) int { n, _ := strconv.Atoi(c.Params[p]); return n }
	l := layout{
		replica: max(1, number(glusterd.ParamReplica)+number(glusterd.ParamArbiter)), arbiter: number(glusterd.ParamArbiter),
		disperse: number(glusterd.ParamDisperse), redundancy: number(glusterd.ParamRedundancy),
	}
	g.serial++
	v := &fakeVolume{name: c.Object, id: fmt.Sprintf("id-%s-%d", c.Object, g.serial), state: glusterd.VolumeCreated, layout: l, bricks: bricks, options: map[string]string{}}
	if len(bricks)%l.setSize() != 0 {
		return errors.New("incorrect brick count")
	}
	for _, set := range v.sets() {
		nodes := map[*fakeNode]bool{}
		for _, b := range set {
			if nodes[b.node] || b.node.pool != n.pool {
				return fmt.Errorf("bad brick order: %s", c.Params[glusterd.ParamBricks])
			}
			nodes[b.node] = true
		}
	}
	g.volumes[v.name] = v
	v.keep()
	return nil
}

// keep writes the volume's id onto its bricks' directories.
func (v *fakeVolume) keep() {
	for _, b := range v.bricks {
		if s := b.node.store(b.path); s != nil && !s.dead && s.dirs[b.path] == "" {
			s.dirs[b.path] = v.id
			b.holds = true
		}
	}
}

func (g *fakeGluster) addBricks(v *fakeVolume, params map[string]string) error {
	if has := len(strings.Fields(params[glusterd.ParamHas])); has != len(v.bricks) {
		return fmt.Errorf("it has %d bricks, not %d", len(v.bricks), has)
	}
	bricks, err := g.bricks(params[glusterd.ParamBricks])
	if err != nil || len(bricks)%v.layout.setSize() != 0 {
		return errors.Join(err, errors.New("incorrect brick count"))
	}
	v.bricks = append(v.bricks, bricks...)
	v.keep()
	v.start()
	return nil
}

func (v *fakeVolume) startTask(g *fakeGluster, kind string, bricks []string) error {
	if v.task != nil && (v.task.State == glusterd.TaskInProgress || v.task.Kind == glusterd.TaskRemoveBrick && v.task.State != glusterd.TaskStopped) {
		return errors.New("an earlier task exists")
	}
	g.serial++
	v.task = &glusterd.Task{Kind: kind, ID: fmt.Sprintf("task-%d", g.serial), State: glusterd.TaskInProgress, Bricks: bricks}
	return nil
}

// giveUp lets bricks go as they are.
func (v *fakeVolume) giveUp(names []string) error {
	if v.layout.setSize() > 1 || len(names) >= len(v.bricks) {
		return errors.New("deleting all the bricks of the volume is not allowed")
	}
	v.bricks = slices.DeleteFunc(v.bricks, func(b *fakeBrick) bool { return slices.Contains(names, b.name()) })
	return nil
}

func (v *fakeVolume) commit(names []string) error {
	if v.task == nil || v.task.State != glusterd.TaskCompleted || v.task.Failures > 0 {
		return errors.New("migration is in progress or has failed")
	}
	v.bricks = slices.DeleteFunc(v.bricks, func(b *fakeBrick) bool { return slices.Contains(names, b.name()) })
	v.task = nil
	return nil
}

func (g *fakeGluster) replace(v *fakeVolume, old, with string) error {
	i := slices.IndexFunc(v.bricks, func(b *fakeBrick) bool { return b.name() == old })
	if i < 0 {
		return nil // Has
	}
	b, err := g.brick(with)
	if err != nil {
		return err
	}
	b.stale, b.running = true, true
	v.bricks[i] = b
	v.keep()
	return nil
}

// drop removes the directory of a brick, as an agent does.
func (g *fakeGluster) drop(n *fakeNode, c engine.Command) error {
	for _, v := range g.volumes {
		for _, b := range v.bricks {
			if b.node == n && b.path == c.Object {
				return fmt.Errorf("brick %s of volume %s is in use", c.Object, v.name)
			}
		}
	}
	if s := n.store(c.Object); s != nil && s.dirs[c.Object] == c.Params[glusterd.ParamVolumeID] {
		delete(s.dirs, c.Object)
	}
	return nil
}

// report is what an agent says.
func (g *fakeGluster) report(d *api.Daemon) *glusterd.Report {
	n := g.nodes[d.Name]
	r := &glusterd.Report{Generation: d.Generation, UUID: n.uuid, Version: n.version, Installed: n.installed, Outdated: n.version != n.installed}
	for _, name := range slices.Sorted(maps.Keys(g.nodes)) {
		if o := g.nodes[name]; o != n && o.pool == n.pool {
			state := glusterd.PeerInCluster
			if !g.agrees(n, o) {
				state = "Peer Rejected"
			}
			r.Peers = append(r.Peers, glusterd.Peer{Address: o.address, UUID: o.uuid, Connected: o.up, State: state})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.stores)) {
		s := n.stores[name]
		x := glusterd.Store{Name: s.name, Path: s.path, Device: s.device, Size: s.size, Free: s.size}
		if s.dead {
			x.Problem = "it does not answer"
		} else {
			for _, path := range slices.Sorted(maps.Keys(s.dirs)) {
				x.Bricks = append(x.Bricks, glusterd.StoredBrick{Path: path, Volume: s.dirs[path], Limit: g.limitOf(s.dirs[path])})
			}
		}
		r.Stores = append(r.Stores, x)
	}
	if d.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool {
		r.OpVersion, r.MaxOpVersion = g.opVersion, 10000*release(n.version)
		r.Pool = &glusterd.Pool{}
		r.Groups = fakeGroups
		for _, name := range slices.Sorted(maps.Keys(g.volumes)) {
			if v := g.volumes[name]; slices.ContainsFunc(v.bricks, func(b *fakeBrick) bool { return b.node.pool == n.pool }) {
				x := v.report(func(o *fakeNode) bool { return g.agrees(n, o) })
				if g.silent {
					silence(&x)
				}
				r.Pool.Volumes = append(r.Pool.Volumes, x)
			}
		}
	}
	return r
}

func silence(v *glusterd.Volume) {
	v.Unknown, v.Silent, v.Task = "gluster did not answer", true, nil
	for i := range v.Bricks {
		v.Bricks[i].State, v.Bricks[i].Heal = glusterd.BrickUnknown, nil
	}
}

func (g *fakeGluster) limitOf(id string) int64 {
	for _, v := range g.volumes {
		if v.id == id {
			return v.limit
		}
	}
	return 0
}

// report is what a node says that hears some of the others.
func (v *fakeVolume) report(heard func(*fakeNode) bool) glusterd.Volume {
	out := glusterd.Volume{
		Name: v.name, ID: v.id, State: v.state, Replica: v.layout.replica, Arbiter: v.layout.arbiter,
		Disperse: v.layout.disperse, Redundancy: v.layout.redundancy, Options: maps.Clone(v.options),
		Refused: v.refused,
	}
	if v.task != nil {
		t := *v.task
		out.Task = &t
	}
	for _, set := range v.sets() {
		stale := int64(0)
		for _, b := range set {
			if b.stale {
				stale += 10
			}
		}
		for _, b := range set {
			x := glusterd.Brick{Address: b.node.address, UUID: b.node.uuid, Path: b.path}
			switch {
			case v.state != glusterd.VolumeStarted, !heard(b.node) && (v.layout.setSize() == 1 || !b.serves(v)):
			case b.serves(v):
				x.State = glusterd.BrickOnline
				if v.layout.setSize() > 1 {
					x.Heal = &glusterd.Heal{}
					// Where each copy lacks something, each has what another one lacks, and lists it.
					if !b.stale || v.good(set) == 0 {
						x.Heal.Pending = stale
					}
				}
			case b.node.up:
				x.State = glusterd.BrickOffline
			}
			out.Bricks = append(out.Bricks, x)
		}
	}
	return out
}

// text shows all volumes.
func (g *fakeGluster) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.volumes)) {
		v := g.volumes[name]
		fmt.Fprintf(&b, "%s %s %s %v\n", v.name, v.state, v.layout, v.task)
		for _, x := range v.bricks {
			fmt.Fprintf(&b, "  %s serves=%v stale=%v\n", x.name(), x.serves(v), x.stale)
		}
	}
	return b.String()
}
