package leadership

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	quorum "github.com/holdfast-storage/holdfast/driver/etcd"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/loopback"
	"github.com/holdfast-storage/holdfast/test/quorumlog"
)

// What a server counts: the writes of leaders that it has passed on to etcd, and etcd has refused, as the leader was overtaken, or
// admitted; and the orchestrations that it has done itself.
const (
	refusedWrites  = `holdfast_fenced_writes_total{result="refused"}`
	admittedWrites = `holdfast_fenced_writes_total{result="admitted"}`
	orchestrations = "holdfast_orchestrations_total"
)

// TestStoppedLeader stops the leader with SIGSTOP in the middle of its work until another server leads, and lets it go on. It
// does not know what happened, and a part of it never hears: it tries to write, and nothing that it writes is done. That the
// test would see it is shown by one more writer, which has no fence.
func TestStoppedLeader(t *testing.T) {
	t.Parallel()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := loopback.Start(t, own, 3, asHoldfast+"=1")
	f := follow(t, s)
	c := clientOf(t, s.Server(1))
	declareBusy(t, c, busyClusters)
	for round := range 2 {
		stopLeader(t, s, round)
	}
	h := f.whole(t)
	for prefix, least := range map[string]int{configMaps + claim: 200, locks: 2 * busyClusters} {
		stale, all := h.stale(prefix)
		for _, write := range stale {
			t.Error(write)
		}
		if all < least {
			t.Errorf("only %d writes of %s were found: the test saw too little", all, prefix)
		}
		t.Logf("%s: %d writes, none under a term that was over", prefix, all)
	}
	if stale, all := h.stale(configMaps + unfenced); len(stale) == 0 {
		t.Errorf("of %d writes without a fence none was stale: the test would not see one", all)
	} else {
		t.Logf("without a fence: %d writes, %d of them stale, such as: %s", all, len(stale), stale[0])
	}
	if terms := h.terms(); len(terms) < 3 {
		t.Errorf("the terms were %v, want three at least", terms)
	}
	eventsWhole(t, c, s.Server(1).Name)
}

// stopLeader stops the leader until another server leads and writes, lets it go on, and waits until it has tried to write. On a loaded
// machine any of the others may lead, one after the other.
func stopLeader(t *testing.T, s *loopback.Servers, round int) {
	t.Helper()
	old := busyLeader(t, s)
	others := slices.DeleteFunc([]*loopback.Server{s.Server(1), s.Server(2), s.Server(3)}, func(o *loopback.Server) bool { return o == old })
	earlier, admitted, orchestrated := sum(t, refusedWrites, old), sum(t, admittedWrites, others...), sum(t, orchestrations, others...)
	old.Signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	next := ""
	home.Await(t, "another leader", func() (err error) {
		_, next, err = leader(t.Context(), clientOf(t, others[0]))
		if err == nil && (next == old.Name || next == "") {
			err = fmt.Errorf("%q leads", next)
		}
		return err
	})
	t.Logf("round %d: %s leads %.1f s after %s was stopped", round+1, next, time.Since(stopped).Seconds(), old.Name)
	awaitSum(t, admittedWrites, admitted+50, others...)
	awaitSum(t, orchestrations, orchestrated+2*busyClusters, others...)
	old.Signal(t, syscall.SIGCONT)
	awaitSum(t, refusedWrites, earlier+20, old)
	t.Logf("%s went on, and %.0f writes of it were refused", old.Name, sum(t, refusedWrites, old)-earlier)
}

// busyLeader waits for a leader that is in the middle of its work, and returns it.
func busyLeader(t *testing.T, s *loopback.Servers) (old *loopback.Server) {
	t.Helper()
	home.AwaitFor(t, busyLimit, "a leader that writes", func() error {
		_, name, err := leader(t.Context(), clientOf(t, s.Server(1)))
		if err != nil || name == "" {
			return errors.Join(err, errors.New("nobody leads"))
		}
		old = s.Named(t, name)
		return atLeast(t, admittedWrites, 100, old)
	})
	return old
}

// busyLimit bounds what the busy leader does. Ten clusters, and a client that asks for whatever is written, keep it at work: on a machine
// with one processor to spare that takes minutes.
const busyLimit = 3 * home.Limit

// awaitSum waits until the counters of these servers have come to a value together.
func awaitSum(t *testing.T, name string, least float64, servers ...*loopback.Server) {
	t.Helper()
	home.AwaitFor(t, busyLimit, fmt.Sprintf("%s to be %.0f", name, least), func() error { return atLeast(t, name, least, servers...) })
}

// atLeast says how much a counter of these servers lacks.
func atLeast(t *testing.T, name string, least float64, servers ...*loopback.Server) error {
	var all []string
	var total float64
	for _, s := range servers {
		value, err := s.Metric(t.Context(), name)
		if err != nil {
			return err
		}
		total, all = total+value, append(all, fmt.Sprintf("%.0f at %s", value, s.Name))
	}
	if total < least {
		return fmt.Errorf("it is %s", strings.Join(all, ", "))
	}
	return nil
}

// sum is what the counters of these servers have come to.
func sum(t *testing.T, name string, servers ...*loopback.Server) (total float64) {
	t.Helper()
	for _, s := range servers {
		home.Await(t, name+" of "+s.Name, func() error {
			value, err := s.Metric(t.Context(), name)
			total += value
			return err
		})
	}
	return total
}

func clientOf(t *testing.T, s *loopback.Server) client.Client {
	t.Helper()
	c, err := newClient(s.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// busyClusters is how many clusters keep the leader at work.
const busyClusters = 10

// declareBusy declares clusters that keep the leader at work: each is orchestrated once a second and waits for its first node.
func declareBusy(t *testing.T, c client.Client, count int) {
	t.Helper()
	for n := range count {
		cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("busy%d", n)}}
		cluster.Spec.Type, cluster.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
		cluster.Spec.Interval = metav1.Duration{Duration: time.Second}
		if err := c.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
}

// recurs are the codes of what may be so more than once.
var recurs = map[string]bool{
	"LEADER_CHANGED": true, "HEALTH_CHANGED": true, "ORCHESTRATE_REPORT": true,
	"CLUSTER_ONLINE": true, "CLUSTER_DEGRADED": true, "CLUSTER_OFFLINE": true,
}

// eventsWhole fails the test if the events of a cluster, or of the control plane, whose first server is the founder, have a gap, or tell
// the same twice.
func eventsWhole(t *testing.T, c client.Client, founder string) {
	t.Helper()
	var all api.ClusterEventList
	if err := c.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	ofQuorum := func(e api.ClusterEvent) bool { return e.Labels[api.LabelCluster] == quorum.ControlPlane }
	if _, err := quorumlog.Follow(slices.DeleteFunc(slices.Clone(all.Items), func(e api.ClusterEvent) bool { return !ofQuorum(e) }), founder); err != nil {
		t.Error(err)
	}
	logs := map[string]map[int64]*api.ClusterEvent{}
	for i := range all.Items {
		e := &all.Items[i]
		if ofQuorum(*e) {
			continue
		}
		cluster := e.Labels[api.LabelCluster]
		if logs[cluster] == nil {
			logs[cluster] = map[int64]*api.ClusterEvent{}
		}
		logs[cluster][e.Sequence] = e
	}
	for cluster, log := range logs {
		told := map[string]int64{}
		for n := int64(1); n <= int64(len(log)); n++ {
			e := log[n]
			if e == nil {
				t.Errorf("cluster %s: %d events, and none has the number %d", cluster, len(log), n)
				break
			}
			text := e.Code + " " + e.Object + " " + e.Message
			if told[text] != 0 && !recurs[e.Code] {
				t.Errorf("cluster %s: events %d and %d tell the same: %s", cluster, told[text], n, text)
			}
			told[text] = n
		}
	}
	if len(logs) == 0 {
		t.Error("there are no events")
	}
}
