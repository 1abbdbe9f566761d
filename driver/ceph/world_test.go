package ceph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/api/reasons"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/drivertest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
	"github.com/holdfast-storage/holdfast/engine/plandump"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// world is a small store and engine: it makes views and carries out plans.
type world struct {
	driver  *Driver
	now     time.Time
	cluster *api.StorageCluster
	nodes   []api.StorageNode
	hosts   []api.Host
	others  []*api.Daemon
	// clusters are further ones in the namespace.
	clusters    []api.StorageCluster
	daemons     map[string]*api.Daemon
	secrets     map[string]secret
	status      *api.StorageStatus
	groups      []*api.DriveGroup
	pools       []api.Pool
	clients     []*api.Client
	filesystems []*api.Filesystem
	exports     []*api.NFSExport
	// objects are the ObjectStores and their users, and s3 what the stores have.
	objects  []api.Resource
	s3       map[string]*s3User
	mirrored map[string]rbdmirror.Pool // by the names of pools
	actions  []api.Action
	unasked  bool // of mirroring rbd says nothing
	failures []engine.CommandFailure
	// writes counts what rounds changed, and specs how often the spec of each daemon that is there was written.
	writes int
	specs  map[string]int
	// applied is called with each plan that was carried out.
	applied func(*engine.Plan)
}

type secret struct {
	data        map[string][]byte
	annotations map[string]string
	uid         string
}

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const worldUID = "8a1c7c3e-1e5b-4b0e-9d6f-0a4f2a4d7c01"

func newWorld(mons, mgrs int32) *world {
	w := &world{
		driver: &Driver{}, now: testTime,
		daemons: map[string]*api.Daemon{}, secrets: map[string]secret{},
		specs: map[string]int{}, applied: func(*engine.Plan) {},
	}
	w.cluster = &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: types.UID(worldUID), Generation: 1},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, DeletionPolicy: api.DeletionRetain,
			Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: mons}, Mgr: api.CephMgrSpec{Count: mgrs}},
		},
	}
	return w
}

// host adds a host h<i> with the address 10.0.0.<i> and some empty disks d0, d1 …
func (w *world) host(i, disks int) *api.Host {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("h%d", i)}}
	h.Labels = map[string]string{api.LabelHostname: h.Name}
	h.Status.Addresses = []string{fmt.Sprintf("10.0.0.%d", i)}
	h.Status.BootID = "boot"
	for d := range disks {
		h.Status.Devices = append(h.Status.Devices, api.Device{
			ID: fmt.Sprintf("wwn-%d%d", i, d), Path: fmt.Sprintf("/dev/sd%c", 'b'+d), Availability: api.DeviceAvailable,
		})
	}
	w.hosts = append(w.hosts, h)
	return &w.hosts[len(w.hosts)-1]
}

// node declares all disks of h<i>, or those given.
func (w *world) node(i int, devices ...string) *api.StorageNode {
	n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("n%d", i), Generation: 1}}
	n.Spec = api.StorageNodeSpec{
		Type: api.StorageCeph, Cluster: "c", Devices: devices,
		NodeSelector: map[string]string{api.LabelHostname: fmt.Sprintf("h%d", i)},
	}
	w.nodes = append(w.nodes, n)
	return &w.nodes[len(w.nodes)-1]
}

// threeHosts is the usual world: three hosts with two disks each, the first of each declared.
func threeHosts() *world {
	w := newWorld(3, 2)
	for i := 1; i <= 3; i++ {
		w.host(i, 2)
		w.node(i, fmt.Sprintf("wwn-%d0", i))
	}
	return w
}

func (w *world) device(id string) *api.Device {
	for h := range w.hosts {
		for d := range w.hosts[h].Status.Devices {
			if w.hosts[h].Status.Devices[d].ID == id {
				return &w.hosts[h].Status.Devices[d]
			}
		}
	}
	panic("no device " + id)
}

func (w *world) view() *engine.View {
	v := &engine.View{Cluster: w.cluster.DeepCopy(), Others: slices.Clone(w.others), Failures: w.failures, Actions: slices.Clone(w.actions)}
	clusters := append([]api.StorageCluster{*w.cluster}, w.clusters...)
	nodes := slices.Clone(w.nodes)
	for i := range nodes {
		if engine.ClusterOf(&nodes[i], clusters) == w.cluster.Name {
			v.Nodes = append(v.Nodes, *nodes[i].DeepCopy())
		}
	}
	for i := range w.hosts {
		v.Hosts = append(v.Hosts, *w.hosts[i].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		v.Daemons = append(v.Daemons, *w.daemons[name].DeepCopy())
	}
	for _, name := range slices.Sorted(maps.Keys(w.secrets)) {
		s := w.secrets[name]
		v.Secrets = append(v.Secrets, engine.SecretInfo{Name: name, UID: s.uid, Keys: slices.Sorted(maps.Keys(s.data)), Annotations: s.annotations})
	}
	for _, g := range w.groups {
		v.Resources = append(v.Resources, g.DeepCopy())
	}
	for _, c := range w.clients {
		v.Resources = append(v.Resources, c.DeepCopy())
	}
	for _, x := range w.exports {
		v.Resources = append(v.Resources, x.DeepCopy())
	}
	for _, x := range w.filesystems {
		v.Resources = append(v.Resources, x.DeepCopy())
	}
	for _, o := range w.objects {
		v.Resources = append(v.Resources, engine.CopyResource(o))
	}
	for i := range w.pools {
		v.Resources = append(v.Resources, w.pools[i].DeepCopy())
	}
	if w.status != nil {
		v.Status = w.status.DeepCopy()
	}
	all := slices.Clone(v.Others)
	for i := range v.Daemons {
		all = append(all, &v.Daemons[i])
	}
	v.Claims = engine.ClaimsOf(nodes, all, v.Hosts, clusters)
	return v
}

// Secret makes the world an engine.SecretReader.
func (w *world) Secret(_ context.Context, name string) (map[string][]byte, error) {
	s, ok := w.secrets[name]
	if !ok {
		return nil, fmt.Errorf("secret %s: %w", name, engine.ErrNotFound)
	}
	return s.data, nil
}

// plan plans for the world as it is, without asking Ceph.
func (w *world) plan() *engine.Plan { return w.planAt(w.view(), w.now) }

// planAt plans for a view.
func (w *world) planAt(v *engine.View, now time.Time) *engine.Plan {
	p := w.driver.Plan(v, now)
	for _, d := range p.Decisions {
		if reasons.All[d.Reason] == "" {
			panic(fmt.Sprintf("a decision has the reason %q, which there is not: %+v", d.Reason, d))
		}
	}
	return plandump.Write(p)
}

// observed plans with Ceph's answer.
func (w *world) observed(ctx context.Context) (*engine.View, *engine.Plan, error) {
	v := w.view()
	system, err := w.driver.Observe(ctx, v, w)
	if err != nil {
		return v, nil, err
	}
	v.System = system
	return v, w.planAt(v, w.now), nil
}

// round runs one orchestration, in bounded time, as the engine does: a mgr that has just handed over may leave a question without an answer.
func (w *world) round(t testing.TB) *engine.Plan {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, p, err := w.observed(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.apply(ctx, v, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) apply(ctx context.Context, v *engine.View, p *engine.Plan) error {
	if lost := drivertest.Withdrawn(v, p); len(lost) > 0 {
		return fmt.Errorf("clients lose something: %q", lost)
	}
	w.failures = nil
	w.writes += len(p.Nodes) + len(p.Resources) + len(p.Secrets) + len(p.Daemons) + len(p.Remove) + len(p.Commands)
	w.status = &api.StorageStatus{Status: engine.Aggregate(v, p, w.now)}
	for _, s := range p.Nodes {
		i := slices.IndexFunc(w.nodes, func(n api.StorageNode) bool { return n.Name == s.Name })
		w.nodes[i].Status = s.Status
	}
	w.applyResources(p)
	for _, want := range p.Secrets {
		if want.Gone {
			delete(w.secrets, want.Name)
			continue
		}
		if _, ok := w.secrets[want.Name]; ok {
			return fmt.Errorf("secret %s was asked for although it is there", want.Name)
		}
		data, err := w.driver.MakeSecret(want)
		if err != nil {
			return err
		}
		w.secrets[want.Name] = secret{data, want.Annotations, fmt.Sprint(len(w.secrets), w.writes)}
	}
	if err := w.applyDaemons(p, false); err != nil {
		return err
	}
	for _, r := range p.Remove {
		now := metav1.NewTime(w.now)
		w.daemons[r.Name].DeletionTimestamp = &now
	}
	for _, cmd := range p.Commands {
		if cmd.Daemon != "" && w.daemons[cmd.Daemon].Spec.Type == rbdmirror.Type {
			w.mirrorPool(cmd)
			continue
		}
		if cmd.Daemon != "" {
			if err := w.askGateway(w.daemons[cmd.Daemon], cmd); err != nil {
				w.failures = append(w.failures, engine.CommandFailure{Command: cmd, Message: err.Error()})
			}
			continue
		}
		if err := w.driver.Perform(ctx, v, cmd, w); err != nil {
			return err
		}
	}
	defer w.applied(p)
	return w.applyDaemons(p, true)
}

// applyDaemons writes the Daemons that rely on the plan's commands, or the others.
func (w *world) applyDaemons(p *engine.Plan, relying bool) error {
	for _, c := range p.Daemons {
		if c.AfterCommands != relying {
			continue
		}
		if (w.daemons[c.Daemon.Name] == nil) != c.New {
			return fmt.Errorf("daemon %s: New is %v", c.Daemon.Name, c.New)
		}
		if err := specWritten(w.daemons[c.Daemon.Name], &c.Daemon); err != nil {
			return err
		}
		d := c.Daemon.DeepCopy()
		if c.New {
			d.CreationTimestamp = metav1.NewTime(w.now)
		} else if !d.Spec.Equal(&w.daemons[d.Name].Spec) {
			w.specs[d.Name]++
		}
		w.daemons[d.Name] = d
	}
	return nil
}

// decisions lists a plan's decisions.
var decisions = conformance.Decisions

// reasonOf is why a plan first decided so on an object; empty where it did not.
func reasonOf(p *engine.Plan, verdict api.Verdict, object string) api.Reason {
	for _, d := range p.Decisions {
		if d.Verdict == verdict && d.Object == object {
			return d.Reason
		}
	}
	return ""
}

// decidedFor says whether a plan decided so on anything for a reason.
func decidedFor(p *engine.Plan, verdict api.Verdict, reason api.Reason) bool {
	return slices.ContainsFunc(p.Decisions, func(d api.Decision) bool {
		return d.Verdict == verdict && d.Reason == reason
	})
}

func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}

func daemonNames(p *engine.Plan) []string {
	var names []string
	for _, c := range p.Daemons {
		names = append(names, c.Daemon.Name+"@"+c.Daemon.Spec.Host+"="+string(c.Daemon.Spec.State))
	}
	return names
}
