package gluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// simulated is a GlusterFS of the simulator.
type simulated struct {
	mu    sync.Mutex
	g     *fakeGluster
	ticks int
}

var (
	_ sim.System       = (*simulated)(nil)
	_ sim.ServiceAgent = (*simulated)(nil)
	_ sim.Performer    = (*simulated)(nil)
	_ sim.Reporter     = (*simulated)(nil)
)

// Heals and moves of files take place each healTicks ticks.
const healTicks = 30

func (s *simulated) Step(_ time.Time, daemons []api.Daemon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := map[string]bool{}
	for i := range daemons {
		running[daemons[i].Name] = true
	}
	for name, n := range s.g.nodes {
		s.g.power(n, running[name])
	}
	s.g.settle()
	if s.ticks++; s.ticks%healTicks == 0 {
		s.g.heal()
		s.g.move()
	}
}

func (s *simulated) Prepare(d *api.Daemon, host *api.HostStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.node(d).sync(d, host)
	return nil
}

func (s *simulated) Remove(d *api.Daemon, _ *api.HostStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.g.nodes, d.Name)
}

func (s *simulated) Knows(daemonType string) bool { return daemonType == glusterd.Type }

func (s *simulated) Command(d *api.Daemon, c engine.Command) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Verb == glusterd.VerbDropBrick {
		return "", s.g.drop(s.g.node(d), c)
	}
	defer s.g.settle()
	return "", s.g.do(s.g.node(d), c)
}

func (s *simulated) Report(d *api.Daemon) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.g.node(d)
	s.g.power(n, true)
	n.sync(d, &api.HostStatus{})
	return s.g.report(d).Text()
}

// TestScenarios plays the files of testdata; 'go test ./driver/gluster -rewrite' writes anew what comes of each command:
//
//	add-host NAME [disks=(ID,…)]                   a host joins
//	add-cluster NAME [policy=Wipe]
//	add-node NAME host=HOST [zone=N] [devices=(ENTRY,…)]
//	add-volume NAME size=SIZE [policy=Wipe] [replica=N | arbiter | disperse=K+M | distribute]
//	resize NAME size=SIZE
//	delete cluster=NAME | node=NAME | volume=NAME
//	fail-host NAME, restore-host NAME              power off and on
//	host-mode NAME mode=MODE
//	mode Active|Observed                           of the cluster
//	install RELEASE                                on all hosts; what runs goes on
//	kill-brick VOLUME brick=N, fail-disk VOLUME brick=N
//	fail-files VOLUME                              the drain that goes on cannot move some files
//	kill-leader                                    another leader, that knows nothing, takes its place
//	settle                                         time passes until nothing happens any more
//	show status | volumes | decisions
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, file) })
		})
	}
}

// stage is where a scenario plays.
type stage struct {
	*sim.World
	ctx     context.Context
	gluster *simulated
	told    int
	leaders int
	depose  context.CancelFunc
	ended   chan error
}

func play(t *testing.T, file string) {
	g := &simulated{g: newFake()}
	g.g.writing = true
	s := &stage{World: sim.NewWorld(g), ctx: t.Context(), gluster: g}
	s.lead()
	defer func() {
		if err := s.kill(); err != nil {
			t.Error(err)
		}
	}()
	datadriven.RunTest(t, file, func(_ *testing.T, d *datadriven.TestData) string {
		out, err := s.do(d)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		return out
	})
}

// lead starts a leader that knows nothing of any before it.
func (s *stage) lead() {
	s.leaders++
	ctx, cancel := context.WithCancel(s.ctx)
	s.depose, s.ended = cancel, make(chan error, 1)
	log, ended := slog.New(slog.DiscardHandler), s.ended
	config := engine.Config{Store: s.Memory, Log: log, Managers: []engine.ServiceManager{&engine.Orchestrator{
		Store: s.Memory, Driver: Driver{}, Leader: fmt.Sprintf("s%d", s.leaders), Log: log,
	}}}
	go func() { ended <- engine.Run(ctx, config) }()
}

func (s *stage) kill() error {
	s.depose()
	return <-s.ended
}

func arg(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return ""
}

func args(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

func (s *stage) do(d *datadriven.TestData) (string, error) {
	name := ""
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	if d.Cmd == "show" {
		return s.show(name)
	}
	if err := s.act(d, name); err != nil {
		return "", err
	}
	time.Sleep(50 * time.Millisecond)
	return s.news()
}

func (s *stage) act(d *datadriven.TestData, name string) error {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	switch d.Cmd {
	case "add-host":
		return s.AddHost(s.ctx, name, args(d, "disks"))
	case "add-cluster":
		c := &api.StorageCluster{ObjectMeta: meta, Spec: api.StorageClusterSpec{
			Type: api.StorageGlusterFS, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionPolicy(cmp.Or(arg(d, "policy"), "Retain")),
		}}
		return s.Create(s.ctx, c)
	case "add-node":
		return s.addNode(d, meta)
	case "add-volume":
		return s.addVolume(d, meta)
	case "resize":
		v := &api.Volume{ObjectMeta: meta}
		if err := s.Get(s.ctx, v); err != nil {
			return err
		}
		v.Spec.Size = resource.MustParse(arg(d, "size"))
		return s.Update(s.ctx, v)
	case "delete":
		return s.delete(d)
	case "fail-host":
		return s.FailHost(s.ctx, name)
	case "restore-host":
		return s.RestoreHost(s.ctx, name)
	case "host-mode":
		return s.SetMode(s.ctx, name, api.HostMode(arg(d, "mode")))
	case "install":
		s.gluster.mu.Lock()
		defer s.gluster.mu.Unlock()
		for _, n := range s.gluster.g.nodes {
			n.installed = name
		}
		return nil
	case "mode":
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
		if err := s.Get(s.ctx, c); err != nil {
			return err
		}
		c.Spec.Mode = api.ClusterMode(name)
		return s.Update(s.ctx, c)
	case "kill-brick", "fail-disk", "fail-files":
		return s.harm(d, name)
	case "kill-leader":
		if err := s.kill(); err != nil {
			return err
		}
		s.lead()
		return nil
	case "settle":
		return s.settle()
	}
	return fmt.Errorf("unknown command %q", d.Cmd)
}

func (s *stage) addNode(d *datadriven.TestData, meta metav1.ObjectMeta) error {
	n := &api.StorageNode{ObjectMeta: meta, Spec: api.StorageNodeSpec{
		Type: api.StorageGlusterFS, NodeSelector: map[string]string{api.LabelHostname: arg(d, "host")}, Devices: args(d, "devices"),
	}}
	if zone, err := strconv.Atoi(arg(d, "zone")); err == nil {
		n.Spec.GlusterFS = &api.GlusterFSNode{Zone: int32(zone)}
	}
	return s.Create(s.ctx, n)
}

func (s *stage) addVolume(d *datadriven.TestData, meta metav1.ObjectMeta) error {
	v := &api.Volume{ObjectMeta: meta, Spec: api.VolumeSpec{
		Cluster: "c", Size: resource.MustParse(arg(d, "size")), DeletionPolicy: api.DeletionPolicy(cmp.Or(arg(d, "policy"), "Retain")),
	}}
	switch {
	case d.HasArg("arbiter"):
		v.Spec.Durability = &api.VolumeDurability{Arbiter: &api.VolumeArbiter{}}
	case d.HasArg("distribute"):
		v.Spec.Durability = &api.VolumeDurability{Distribute: &api.VolumeDistribute{}}
	case d.HasArg("disperse"):
		x := &api.VolumeDisperse{}
		if _, err := fmt.Sscanf(arg(d, "disperse"), "%d+%d", &x.Data, &x.Redundancy); err != nil {
			return err
		}
		v.Spec.Durability = &api.VolumeDurability{Disperse: x}
	}
	return s.Create(s.ctx, v)
}

func (s *stage) delete(d *datadriven.TestData) error {
	a := d.CmdArgs[0]
	meta := metav1.ObjectMeta{Namespace: "default", Name: a.Vals[0]}
	switch a.Key {
	case "cluster":
		return s.Delete(s.ctx, &api.StorageCluster{ObjectMeta: meta})
	case "node":
		return s.Delete(s.ctx, &api.StorageNode{ObjectMeta: meta})
	}
	return s.Delete(s.ctx, &api.Volume{ObjectMeta: meta})
}

// harm does something to a brick of a volume, or to what goes on with the volume.
func (s *stage) harm(d *datadriven.TestData, volume string) error {
	s.gluster.mu.Lock()
	defer s.gluster.mu.Unlock()
	v := s.gluster.g.volumes[volume]
	if d.Cmd == "fail-files" {
		if v.task == nil {
			return errors.New("nothing goes on")
		}
		v.task.Failures = 5
		return nil
	}
	i, err := strconv.Atoi(arg(d, "brick"))
	if err != nil {
		return err
	}
	if b := v.bricks[i-1]; d.Cmd == "kill-brick" {
		b.running = false
	} else {
		b.node.store(b.path).dead = true
	}
	s.gluster.g.settle()
	return nil
}

// settle lets time pass until nothing has changed for longer than a driver may wait before it looks again.
func (s *stage) settle() error {
	const quiet, step = 65 * time.Second, 100 * time.Millisecond
	last, since := "", time.Now()
	for range 10000 {
		time.Sleep(step)
		if err := s.Tick(s.ctx); err != nil {
			return err
		}
		synctest.Wait()
		now, err := s.fingerprint()
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > quiet {
			return nil
		}
	}
	return errors.New("the world does not come to rest")
}

// fingerprint differs when anything but the time of the next orchestration differs.
func (s *stage) fingerprint() (string, error) {
	v, err := s.View(s.ctx, types.NamespacedName{Namespace: "default", Name: "c"})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return "gone", nil
	case err != nil:
		return "", err
	}
	var b strings.Builder
	if v.Cluster.Status.Report != nil {
		b.WriteString(v.Cluster.Status.Report.Started.String())
	}
	if v.Status != nil {
		b.WriteString(v.Status.ResourceVersion)
	}
	for i := range v.Daemons {
		b.WriteString(" " + v.Daemons[i].ResourceVersion)
	}
	for _, r := range v.Resources {
		b.WriteString(" " + r.GetResourceVersion())
	}
	for i := range v.Nodes {
		b.WriteString(" " + v.Nodes[i].ResourceVersion)
	}
	return b.String(), nil
}

// news prints the events that were not printed before.
func (s *stage) news() (string, error) {
	synctest.Wait()
	events, err := s.Events(s.ctx, types.NamespacedName{Namespace: "default", Name: "c"})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range events[min(s.told, len(events)):] {
		fmt.Fprintf(&b, "#%d %s %s: %s\n", e.Sequence, e.Code, e.Object, e.Message)
	}
	s.told = len(events)
	if b.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}

func (s *stage) show(what string) (string, error) {
	v, err := s.View(s.ctx, types.NamespacedName{Namespace: "default", Name: "c"})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	switch what {
	case "status":
		x := v.Status.Status
		fmt.Fprintf(&b, "%s %s nodes=%v\n", x.Status, x.Health, x.StorageNodes)
		for _, r := range x.Reasons {
			fmt.Fprintf(&b, "  %s\n", r)
		}
	case "decisions":
		for _, d := range v.Cluster.Status.Report.Decisions {
			fmt.Fprintf(&b, "%s %s: %s\n", d.Verdict, d.Object, d.Message)
		}
	case "volumes":
		for _, x := range engine.OfKind[*api.Volume](v.Resources) {
			showVolume(&b, x)
		}
	default:
		return "", fmt.Errorf("nothing is known of %q", what)
	}
	if b.Len() == 0 {
		return "nothing\n", nil
	}
	return b.String(), nil
}

func showVolume(b *strings.Builder, v *api.Volume) {
	s := &v.Status
	fmt.Fprintf(b, "%s %s %s %s %s %q\n", v.Name, s.State, s.Layout, s.Capacity, s.Source, s.Message)
	for _, x := range s.Bricks {
		fmt.Fprintf(b, "  %s %s online=%v %s\n", x.Node, x.Path, x.Online, x.Message)
	}
}
