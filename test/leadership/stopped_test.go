package leadership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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

// refusedWrites counts the writes of overtaken leaders that a server has passed on to etcd, and etcd has refused.
const refusedWrites = `holdfast_fenced_writes_total{result="refused"}`

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

// stopLeader stops the leader until another server leads and writes, lets it go on, and waits until it has tried to write.
func stopLeader(t *testing.T, s *loopback.Servers, round int) {
	t.Helper()
	name := ""
	home.Await(t, "a leader", func() (err error) {
		if _, name, err = leader(t.Context(), clientOf(t, s.Server(1))); err == nil && name == "" {
			err = errors.New("nobody leads")
		}
		return err
	})
	old := s.Named(t, name)
	awaitMetric(t, old, `holdfast_fenced_writes_total{result="admitted"}`, 100)
	other := s.Server(1)
	if other == old {
		other = s.Server(2)
	}
	earlier := awaitMetric(t, old, refusedWrites, 0)
	old.Signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	next := ""
	home.Await(t, "another leader", func() (err error) {
		_, next, err = leader(t.Context(), clientOf(t, other))
		if err == nil && (next == name || next == "") {
			err = fmt.Errorf("%q leads", next)
		}
		return err
	})
	t.Logf("round %d: %s leads %.1f s after %s was stopped", round+1, next, time.Since(stopped).Seconds(), name)
	awaitMetric(t, s.Named(t, next), `holdfast_fenced_writes_total{result="admitted"}`, 50)
	awaitMetric(t, s.Named(t, next), "holdfast_orchestrations_total", 2*busyClusters)
	old.Signal(t, syscall.SIGCONT)
	t.Logf("%s went on, and %.0f writes of it were refused", name, awaitMetric(t, old, refusedWrites, earlier+20)-earlier)
}

// awaitMetric waits until a counter of a server has come to a value. Ten busy clusters, and a client that asks for whatever is written, keep it at work:
// on a machine with one processor to spare that takes minutes.
func awaitMetric(t *testing.T, s *loopback.Server, name string, least float64) (value float64) {
	t.Helper()
	home.AwaitFor(t, 3*home.Limit, fmt.Sprintf("%s of server %s to be %.0f", name, s.Name, least), func() (err error) {
		if value, err = s.Metric(context.Background(), name); err == nil && value < least {
			err = fmt.Errorf("it is %.0f", value)
		}
		return err
	})
	return value
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
