package torus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/drivertest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
	"github.com/holdfast-storage/holdfast/engine/plandump"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is what a driver sees of a cluster, with hosts whose agents do as they are told, and a Torus in memory.
type world struct {
	t       tester
	cluster *api.StorageCluster
	hosts   []api.Host
	nodes   []api.StorageNode
	volumes []api.Volume
	daemons map[string]*api.Daemon
	others  []*api.Daemon
	now     time.Time
	writes  int
	torus   fakeTorus
}

// fakeTorus knows of each block which stores have a copy, so that a test can tell when data is lost.
type fakeTorus struct {
	made        bool
	replication int
	ring        []string
	volumes     map[string]int64
	stores      map[string]*fakeStore // by UUID
	blocks      []map[string]bool     // UUIDs of the stores with a copy
	changed     bool                  // the ring is another one since blocks were moved last
	size        int64                 // of each store
	serial      int
}

type fakeStore struct {
	uuid, url, daemon string
	up                bool // its torusd runs, and Torus hears it
	whole             bool // it was looked at, since its torusd was started, whether it has all blocks
}

func newWorld(t tester, nodes int) *world {
	w := &world{
		t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), daemons: map[string]*api.Daemon{},
		torus: fakeTorus{size: 20 << 30, volumes: map[string]int64{}, stores: map[string]*fakeStore{}},
		cluster: &api.StorageCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-c", Generation: 1},
			Spec:       api.StorageClusterSpec{Type: api.StorageTorus, DeletionPolicy: api.DeletionRetain, Torus: &api.TorusSpec{Replication: 2}},
		},
	}
	for i := 1; i <= nodes; i++ {
		w.host(i)
		w.node(i)
	}
	return w
}

func (w *world) host(i int) {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("h%d", i)}}
	h.Labels = map[string]string{api.LabelHostname: h.Name}
	h.Status.Addresses = []string{fmt.Sprintf("10.0.0.%d", i)}
	w.hosts = append(w.hosts, h)
}

func (w *world) node(i int) *api.StorageNode {
	n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("n%d", i), Generation: 1}}
	n.Spec = api.StorageNodeSpec{
		Type: api.StorageTorus, Cluster: "c", NodeSelector: map[string]string{api.LabelHostname: fmt.Sprintf("h%d", i)},
		Torus: &api.TorusNode{Size: "20Gi", Port: 40000},
	}
	w.nodes = append(w.nodes, n)
	return &w.nodes[len(w.nodes)-1]
}

func (w *world) nodeNamed(name string) *api.StorageNode {
	return &w.nodes[slices.IndexFunc(w.nodes, func(n api.StorageNode) bool { return n.Name == name })]
}

func (w *world) undeclare(name string) {
	w.nodes = slices.DeleteFunc(w.nodes, func(n api.StorageNode) bool { return n.Name == name })
}

func (w *world) volume(name, size string) *api.Volume {
	v := api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}}
	v.Spec = api.VolumeSpec{Cluster: "c", Size: resource.MustParse(size), DeletionPolicy: api.DeletionRetain}
	w.volumes = append(w.volumes, v)
	return &w.volumes[len(w.volumes)-1]
}

func (w *world) vol(name string) *api.Volume {
	for i := range w.volumes {
		if w.volumes[i].Name == name {
			return &w.volumes[i]
		}
	}
	return nil
}

func (w *world) hostNamed(name string) *api.Host {
	return &w.hosts[slices.IndexFunc(w.hosts, func(h api.Host) bool { return h.Name == name })]
}

func (w *world) setMode(i int, mode api.HostMode) {
	w.hostNamed(fmt.Sprintf("h%d", i)).Spec.Mode = mode
}

func (w *world) resources() (all []api.Resource) {
	for i := range w.volumes {
		all = append(all, &w.volumes[i])
	}
	return all
}

func (w *world) view() *engine.View {
	x := conformance.World{Cluster: w.cluster, Hosts: w.hosts, Nodes: w.nodes, Resources: w.resources(), Daemons: w.daemons}
	v := x.View(w.others...)
	system, err := Driver{}.Observe(context.Background(), v, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	v.System = system
	return v
}

// round runs one orchestration and returns its plan.
func (w *world) round() *engine.Plan {
	view := w.view()
	p := plandump.Write(Driver{}.Plan(view, w.now))
	if lost := drivertest.Withdrawn(view, p); len(lost) > 0 {
		w.t.Fatalf("clients lose something: %q", lost)
	}
	w.writes += len(p.Nodes) + len(p.Resources) + len(p.Daemons) + len(p.Remove) + len(p.Commands)
	for _, s := range p.Nodes {
		w.nodeNamed(s.Name).Status = s.Status
	}
	for _, c := range p.Resources {
		s := c.Resource.(*api.Volume)
		if c.Gone {
			w.volumes = slices.DeleteFunc(w.volumes, func(v api.Volume) bool { return v.Name == s.Name })
			continue
		}
		w.vol(s.Name).Status = s.Status
	}
	for _, c := range p.Daemons {
		if (w.daemons[c.Daemon.Name] == nil) != c.New {
			w.t.Fatalf("daemon %s: New is %v", c.Daemon.Name, c.New)
		}
		d := c.Daemon.DeepCopy()
		d.Generation++
		w.daemons[d.Name] = d
	}
	if p.Finished {
		w.volumes = nil // as engine.Store.Finish does
	}
	for _, r := range p.Remove {
		w.checkRemoval(w.daemons[r.Name])
		now := metav1.NewTime(w.now)
		w.daemons[r.Name].DeletionTimestamp = &now
	}
	for _, c := range p.Commands {
		if d := w.daemons[c.Daemon]; d == nil || !w.heard(d.Spec.Host) || w.torus.do(c) != nil {
			break // like the engine: a plan ends with the first that fails
		}
	}
	return p
}

// checkRemoval fails if a torusd goes that is a member of the ring, or an etcd whose loss takes the majority.
func (w *world) checkRemoval(d *api.Daemon) {
	if w.cluster.DeletionTimestamp != nil {
		return
	}
	for _, s := range w.torus.stores {
		if s.daemon != d.Name {
			continue
		}
		if slices.Contains(w.torus.ring, s.uuid) {
			w.t.Fatalf("%s is removed and belongs to the ring", d.Name)
		}
		if s.up && slices.ContainsFunc(w.torus.blocks, func(b map[string]bool) bool { return b[s.uuid] }) {
			w.t.Fatalf("%s is removed and has blocks", d.Name)
		}
	}
	// Without a store there is no block, and never was a volume: a ring that was made is never empty again.
	if d.Spec.Parameters[torus.ParamRole] == torus.RoleMember && w.torus.made && len(w.torus.stores)+len(w.torus.ring) > 0 {
		w.t.Fatalf("%s is removed and is a member of the etcd", d.Name)
	}
}

func (w *world) heard(host string) bool { return w.hostNamed(host).AgentHeard() }

// power turns h<i> off or on.
func (w *world) power(i int, on bool) {
	h := w.hostNamed(fmt.Sprintf("h%d", i))
	h.Status.Conditions = nil
	if !on {
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	}
	for _, s := range w.torus.stores {
		if d := w.daemons[s.daemon]; d != nil && d.Spec.Host == h.Name && !on {
			s.up = false // the agent starts it
		}
	}
}

// agents bring each daemon as far as its spec says, and report.
func (w *world) agents() {
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		d := w.daemons[name]
		s := w.torus.store(d)
		switch {
		case !w.heard(d.Spec.Host):
			continue
		case d.DeletionTimestamp != nil:
			if s != nil {
				delete(w.torus.stores, s.uuid)
			}
			delete(w.daemons, name)
		case d.Spec.State == api.WantStopped:
			d.Status.State = api.DaemonStopped
			if s != nil {
				s.up = false
			}
		case d.Spec.Type == torus.TypeEtcd:
			d.Status.State = api.DaemonRunning
		default:
			w.torus.start(d, s, w.now)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		if d := w.daemons[name]; w.heard(d.Spec.Host) && d.Spec.Type == torus.TypeTorusd && d.Status.State == api.DaemonRunning {
			d.Status.Report = w.torus.report(w.t, d)
		}
	}
}

func (f *fakeTorus) store(d *api.Daemon) *fakeStore {
	for _, s := range f.stores {
		if s.daemon == d.Name {
			return s
		}
	}
	return nil
}

func (f *fakeTorus) start(d *api.Daemon, s *fakeStore, now time.Time) {
	if d.Spec.Parameters[torus.ParamInit] != "" && s == nil && !f.made {
		f.made, f.replication = true, 2
	}
	if !f.made {
		d.Status.State = api.DaemonBackOff
		return
	}
	if s == nil {
		f.serial++
		s = &fakeStore{uuid: fmt.Sprintf("uuid-%02d", f.serial), daemon: d.Name, url: d.Spec.Parameters[torus.ParamPeer]}
		f.stores[s.uuid] = s
		s.whole = true
	} else if !s.up {
		s.whole = false
	}
	if !s.up {
		d.Status.Started = &metav1.MicroTime{Time: now}
	}
	s.up = true
	d.Status.State = api.DaemonRunning
}

// do carries out a command as torusctl does.
func (f *fakeTorus) do(c engine.Command) error {
	if _, err := torus.Arguments(c.Verb, c.Object, c.Params); err != nil {
		return err
	}
	peers := strings.Fields(c.Object)
	f.changed = f.changed || !strings.HasPrefix(c.Verb, "volume")
	switch c.Verb {
	case torus.VerbPeerAdd, torus.VerbPeerRemove:
		for _, u := range peers {
			if s := f.stores[u]; s == nil || !s.up {
				return errors.New("not currently healthy")
			}
		}
		if c.Verb == torus.VerbPeerAdd {
			f.ring = append(f.ring, peers...)
			break
		}
		fallthrough
	case torus.VerbPeerForce:
		f.ring = slices.DeleteFunc(f.ring, func(u string) bool { return slices.Contains(peers, u) })
	case torus.VerbReplication:
		f.replication, _ = strconv.Atoi(c.Object)
	case torus.VerbCreate:
		f.volumes[c.Object], _ = strconv.ParseInt(c.Params[torus.ParamBytes], 10, 64)
	case torus.VerbDelete:
		delete(f.volumes, c.Object)
	}
	return nil
}

func (f *fakeTorus) upMembers() (up []string) {
	for _, u := range f.ring {
		if s := f.stores[u]; s != nil && s.up {
			up = append(up, u)
		}
	}
	return up
}

// write has a client write a block, where it can: also with fewer copies than there are to be.
func (f *fakeTorus) write() {
	up := f.upMembers()
	if !f.made || len(up) == 0 {
		return
	}
	b := map[string]bool{}
	for i := range min(f.replication, len(up)) {
		b[up[(len(f.blocks)+i)%len(up)]] = true
	}
	f.blocks = append(f.blocks, b)
}

// move has blocks copied to where the ring wants them, and then dropped where it does not.
func (f *fakeTorus) move() {
	up := f.upMembers()
	for i, b := range f.blocks {
		readable := slices.ContainsFunc(slices.Collect(maps.Keys(b)), func(u string) bool { return f.stores[u] != nil && f.stores[u].up })
		if !readable || len(up) < f.replication {
			continue
		}
		for k := range f.replication {
			b[up[(i+k)%len(up)]] = true
		}
		for u := range b {
			if s := f.stores[u]; s != nil && s.up && !slices.Contains(f.ring, u) {
				delete(b, u)
			}
		}
	}
	f.changed = f.changed && f.short()
	for _, s := range f.stores {
		s.whole = s.whole || s.up && !f.short()
	}
}

// short says whether some block has fewer copies on members than it should.
func (f *fakeTorus) short() bool {
	return slices.ContainsFunc(f.blocks, func(b map[string]bool) bool {
		n := 0
		for u := range b {
			if f.stores[u] != nil && slices.Contains(f.ring, u) {
				n++
			}
		}
		return n < f.replication
	})
}

func (f *fakeTorus) lost() bool {
	return slices.ContainsFunc(f.blocks, func(b map[string]bool) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(b)), func(u string) bool { return f.stores[u] != nil })
	})
}

func (f *fakeTorus) report(t tester, d *api.Daemon) string {
	r := torus.Report{Generation: d.Generation, UUID: f.store(d).uuid, Started: torus.StartText(d.Status.Started), Settled: f.store(d).whole}
	if d.Spec.Parameters[torus.ParamReport] == torus.DepthCluster {
		r.Cluster = &torus.Cluster{Replication: f.replication, Moving: f.changed}
		for _, u := range slices.Sorted(maps.Keys(f.stores)) {
			s := f.stores[u]
			x := torus.Peer{Address: s.url, UUID: u, State: torus.PeerAvail, Size: f.size}
			for _, b := range f.blocks {
				if b[u] {
					x.Used += 512 << 10
				}
			}
			switch in := slices.Contains(f.ring, u); {
			case in && s.up:
				x.State = torus.PeerOK
			case in:
				x = torus.Peer{UUID: u, State: torus.PeerDown}
			case !s.up:
				continue
			}
			r.Cluster.Peers = append(r.Cluster.Peers, x)
		}
		for _, name := range slices.Sorted(maps.Keys(f.volumes)) {
			r.Cluster.Volumes = append(r.Cluster.Volumes, torus.Volume{Name: name, Size: torus.SizeText(f.volumes[name])})
		}
	}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// settle runs rounds until some in a row have changed nothing, and returns the last plan.
func (w *world) settle() *engine.Plan {
	w.t.Helper()
	for idle := 0; ; idle++ {
		w.agents()
		before := w.writes
		p := w.round()
		w.now = w.now.Add(10 * time.Second)
		w.torus.move()
		switch {
		case w.writes > 1000:
			w.t.Fatalf("does not settle:\n%s", strings.Join(decisions(p), "\n"))
		case w.writes != before:
			idle = 0
		case idle >= 3:
			return p
		}
	}
}

// decisions lists a plan's decisions.
var decisions = conformance.Decisions

func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}

func commands(p *engine.Plan) []string {
	var all []string
	for _, c := range p.Commands {
		all = append(all, c.Daemon+": "+c.Verb+" "+c.Object)
	}
	return all
}
