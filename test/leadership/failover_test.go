package leadership

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// failOvers is how many leaders die, and sweep how many writes of a leader are tried as its last: more than any change here takes.
const (
	failOvers = 50
	sweep     = 24
)

// TestFailOvers has 50 leaders die, each at another write, before it, after it, or with it still on its way, while a cluster
// changes step by step. Each change is orchestrated, told exactly once, and in an order without a gap.
func TestFailOvers(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	ctx, cancel := context.WithCancel(context.Background())
	var agents sync.WaitGroup
	agents.Go(func() { s.agents(ctx) })
	defer func() { cancel(); agents.Wait() }()
	now, kills, deaths := s.crown(1, before), 0, map[string]int{}
	for step := 0; kills < failOvers; step++ {
		done := s.change(step)
		for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
			if now.dead() {
				kills++
				deaths[now.how.String()]++
				last := now
				now = s.crown(1+kills*7%sweep, end(kills)%ends) // 7 and 24 have no common divisor: the sweep takes all of them
				s.bury(last)
			}
			if time.Now().After(deadline) {
				t.Fatalf("step %d was lost: %s", step, s.missing())
			}
		}
	}
	last := now
	last.end()
	now = s.crown(0, before)
	s.bury(last)
	s.settle()
	now.end()
	s.work.Wait()
	s.toldOnce()
	if _, performed, _ := s.toy.Counts(); performed != 1 {
		t.Errorf("the storage system was initialized %d times", performed)
	}
	t.Logf("%d leaders died at a write (%v) during %d changes; %d late writes were refused", kills, deaths, s.steps, s.lateWrites)
}

// story is a cluster that changes, and what of it has to be told.
type story struct {
	*realm
	cluster    *api.StorageCluster
	steps      int
	lateWrites int
	nodes      int
	// want are the events that have to be there, each once.
	want map[string]bool
}

func newStory(t *testing.T) *story {
	x := &realm{t: t, config: loopback.Inside(t), toy: sim.NewToy()}
	x.toy.As = api.StorageCeph
	admin, err := newClient(fence.Config(x.config))
	if err != nil {
		t.Fatal(err)
	}
	x.admin = admin
	s := &story{realm: x, want: map[string]bool{}}
	s.cluster = &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	s.cluster.Spec.Type, s.cluster.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	s.cluster.Spec.Interval = metav1.Duration{Duration: time.Minute}
	s.create(s.cluster)
	return s
}

func (s *story) create(o client.Object) {
	s.t.Helper()
	if err := s.admin.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// bury waits for what a dead leader has left on its way.
func (s *story) bury(r *reign) {
	close(r.succeeded)
	r.late.Wait()
	if r.how == late && r.dead() {
		s.lateWrites++
	}
	if r.result != nil {
		s.t.Error(r.result)
	}
}

// change changes something, asks for an orchestration, and returns how to see that both were dealt with.
func (s *story) change(step int) (done func() bool) {
	s.steps++
	var told []string
	switch step % 3 {
	case 0:
		told = s.addNode()
	case 1:
		told = s.restart(step)
	default:
		told = s.changeSpec(step)
	}
	for _, e := range told {
		s.want[e] = true
	}
	request := fmt.Sprintf("request-%03d", step)
	s.edit(s.cluster, func() { metav1.SetMetaDataAnnotation(&s.cluster.ObjectMeta, api.AnnotationOrchestrate, request) })
	return func() bool {
		c := &api.StorageCluster{}
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(s.cluster), c); err != nil {
			s.t.Fatal(err)
		}
		return c.Status.OrchestratedRequest == request && s.missing() == ""
	}
}

func (s *story) edit(o client.Object, change func()) {
	s.t.Helper()
	for {
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			s.t.Fatal(err)
		}
		change()
		err := s.admin.Update(s.t.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
}

func (s *story) addNode() []string {
	s.nodes++
	host, node := fmt.Sprintf("h%d", s.nodes), fmt.Sprintf("n%d", s.nodes)
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{api.LabelHostname: host}}}
	s.create(h)
	h.Status = api.HostStatus{BootID: "b", Addresses: []string{"10.0.0." + strings.TrimPrefix(host, "h")}, Devices: []api.Device{sim.Disk("d-"+host, "/dev/sdb")}}
	if err := s.admin.Status().Update(s.t.Context(), h); err != nil {
		s.t.Fatal(err)
	}
	s.create(&api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: node},
		Spec: api.StorageNodeSpec{
			Type: api.StorageCeph, Cluster: "c", Devices: []string{"/dev/sdb"}, NodeSelector: map[string]string{api.LabelHostname: host},
		},
	})
	daemon := "daemon/c-toy-" + node
	return []string{
		"NODE_NEW node/" + node + " the node was added to the cluster",
		"NODE_CHANGED node/" + node + " the node is accepted",
		"DAEMON_NEW " + daemon + " a toy was placed on host " + host,
		"DAEMON_RUNNING " + daemon + " the process runs on host " + host,
	}
}

// restart has the process of the first daemon end and be started again, by the word of its agent.
func (s *story) restart(step int) []string {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-toy-n1"}}
	for {
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			s.t.Fatal(err)
		}
		d.Status.Restarts++
		err := s.admin.Status().Update(s.t.Context(), d)
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) {
			s.t.Fatalf("step %d: %v", step, err)
		}
	}
	return []string{fmt.Sprintf("DAEMON_RESTARTED daemon/c-toy-n1 the process on host h1 restarted (%d times so far)", d.Status.Restarts)}
}

func (s *story) changeSpec(step int) []string {
	was := s.cluster.Generation
	s.edit(s.cluster, func() { s.cluster.Spec.Interval = metav1.Duration{Duration: time.Duration(100+step) * time.Second} })
	return []string{fmt.Sprintf("CLUSTER_CHANGED cluster/c the spec was changed (generation %d to %d)", was, s.cluster.Generation)}
}

func (s *story) events() []api.ClusterEvent {
	s.t.Helper()
	var list api.ClusterEventList
	if err := s.admin.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// missing lists events that are still to be told.
func (s *story) missing() string {
	told := map[string]bool{}
	for _, e := range s.events() {
		told[e.Code+" "+e.Object+" "+e.Message] = true
	}
	var missing []string
	for e := range s.want {
		if !told[e] {
			missing = append(missing, e)
		}
	}
	return strings.Join(missing, "; ")
}

// settle waits until nothing is left to do.
func (s *story) settle() {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c := &api.StorageCluster{}
		if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(s.cluster), c); err != nil {
			s.t.Fatal(err)
		}
		if meta.IsStatusConditionTrue(c.Status.Conditions, api.ClusterReady) && c.Status.Report.Outcome == api.OutcomeUnchanged {
			return
		}
	}
	s.t.Fatal("the cluster does not come to rest")
}

// toldOnce checks the whole log: its numbers, that nothing is told twice, and that states follow from each other.
func (s *story) toldOnce() {
	s.t.Helper()
	eventsWhole(s.t, s.admin, "s1")
	log := map[int64]api.ClusterEvent{}
	for _, e := range s.events() {
		log[e.Sequence] = e
	}
	last := map[string]string{}
	for n := int64(1); n <= int64(len(log)); n++ {
		e := log[n]
		kind, was := stateOf(&e)
		if kind == "" {
			continue
		}
		if last[kind] != was && last[kind] != "" {
			s.t.Errorf("event %d says %q, and the event before it of this sort said %s", n, e.Message, last[kind])
		}
		last[kind] = now(&e)
	}
}

// stateOf says of which state an event tells the change, and what it was before.
func stateOf(e *api.ClusterEvent) (kind, was string) {
	switch e.Code {
	case "CLUSTER_ONLINE", "CLUSTER_DEGRADED", "CLUSTER_OFFLINE":
		kind = "state"
	case "HEALTH_CHANGED":
		kind = "health"
	case "LEADER_CHANGED":
		kind = "leader"
		_, rest, _ := strings.Cut(e.Message, "leads, ")
		was, _, _ = strings.Cut(rest, " ")
		return kind, was
	default:
		return "", ""
	}
	_, rest, _ := strings.Cut(e.Message, ", was ")
	was, _, _ = strings.Cut(rest, ":")
	return kind, was
}

// now is the state that an event tells.
func now(e *api.ClusterEvent) string {
	switch e.Code {
	case "LEADER_CHANGED":
		return strings.TrimPrefix(e.Object, "leader/")
	case "HEALTH_CHANGED":
		state, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "health is "), ",")
		return state
	default:
		return strings.TrimPrefix(e.Code, "CLUSTER_")
	}
}

// agents does what the agents of all hosts do, and lets the toy see which daemons run.
func (s *story) agents(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var daemons api.DaemonList
		if s.admin.List(ctx, &daemons) != nil {
			continue
		}
		var running []api.Daemon
		for i := range daemons.Items {
			d := &daemons.Items[i]
			want := map[api.WantedState]api.DaemonState{api.WantPrepared: api.DaemonPrepared, api.WantRunning: api.DaemonRunning}[d.Spec.State]
			if d.Status.State == want && want == api.DaemonRunning {
				running = append(running, *d)
			}
			if d.Status.State != want {
				d.Status.State = want
				_ = s.admin.Status().Update(ctx, d) // a conflict is tried again by the next round
			}
		}
		s.toy.Step(time.Now(), running)
	}
}
