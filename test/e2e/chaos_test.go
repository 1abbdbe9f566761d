package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestChaos has things go wrong with the control plane while Ceph runs throughout and a client writes: the client loses nothing,
// and no daemon is stopped or started because contact was lost.
func TestChaos(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 5, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 3)}
	for n := 4; n <= 5; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, 5)
	b.mustApply(home.SpecFor(lab, 3, 2, 1).YAML())
	client, before := b.startClient(b.leader()%3+1), b.pids()

	for _, chaos := range []struct {
		name string
		do   func(*bed)
	}{
		{"an agent is stopped and goes on", (*bed).agentPauses},
		{"the leader is cut off from half of the hosts", (*bed).leaderCutOff},
		{"the leader is killed again and again", (*bed).leadersKilled},
	} {
		t.Run(chaos.name, func(t *testing.T) {
			b := &bed{t, b.Home}
			chaos.do(b)
			client.goesOn(t)
			b.await("Ceph to be well", func() error { return b.health(3, 5) })
			if after := b.pids(); !maps.Equal(before, after) {
				t.Errorf("daemons were started anew:\n got %v\nwant %v", after, before)
			}
			b.eventsWhole()
		})
	}
	client.end(t)
	b.noOrphans()
	b.wellByDoctor()
}

// agentPauses stops an agent with SIGSTOP until it counts as silent, and lets it go on.
func (b *bed) agentPauses() {
	agent, name := b.Server(5), b.Lab.Host(5).Name
	agent.Signal(b, syscall.SIGSTOP)
	b.await("the agent to be found silent", b.heard(1, name, false))
	agent.Signal(b, syscall.SIGCONT)
	b.await("the agent to be heard again", b.heard(1, name, true))
	for _, code := range []string{"AGENT_DOWN", "AGENT_UP"} {
		if !slices.ContainsFunc(b.events(), func(e api.ClusterEvent) bool { return e.Code == code && e.Object == "host/"+name }) {
			b.Errorf("no event %s of host %s", code, name)
		}
	}
}

// heard returns a check, by one server, of whether the agent of a host is heard.
func (b *bed) heard(server int, host string, want bool) func() error {
	return func() error {
		h, err := read[api.Host](b, server, "hosts", host)
		if err == nil && meta.IsStatusConditionTrue(h.Status.Conditions, api.HostAgentConnected) != want {
			err = fmt.Errorf("its condition is %+v", meta.FindStatusCondition(h.Status.Conditions, api.HostAgentConnected))
		}
		return err
	}
}

// leaderCutOff cuts the leader and one other host off from the rest, until another server leads and finds them silent.
func (b *bed) leaderCutOff() {
	leader := b.leader()
	other := leader%3 + 1
	var one, rest []*hosts.Host
	for n, h := range b.Lab.Hosts() {
		if n+1 == leader || n+1 == 4 {
			one = append(one, h)
		} else {
			rest = append(rest, h)
		}
	}
	heal := b.Lab.Partition(b, one, rest)
	b.await("another leader", b.leads(other, func(now int) bool { return now != leader }))
	b.await("the leader that was cut off to be found silent", b.heard(other, one[0].Name, false))
	heal()
	for _, h := range one {
		b.await("host "+h.Name+" to be heard again", b.heard(other, h.Name, true))
	}
}

// leads returns a check, by one server, of who leads.
func (b *bed) leads(server int, want func(number int) bool) func() error {
	return func() error {
		now, err := b.leaderFrom(server)
		if err == nil && !want(now) {
			err = fmt.Errorf("host %d leads", now)
		}
		return err
	}
}

// leadersKilled kills whoever leads, again and again, and tells how long it took until another one acted. That it is within the lease of 5 s
// and 2 s more (DESIGN, section 8) is held to in test/bench/leader, on a machine that does nothing else: with a whole Ceph, and four times as
// much to run as there are processors, 59 of 60 kills took 4.3 to 7.2 s here, and one 8.6 s.
func (b *bed) leadersKilled() {
	var took []time.Duration
	from := b.clusterNow(1).Generation
	for n := range rounds(20) {
		took = append(took, b.leaderKilled(n))
	}
	b.changesTold(from, b.clusterNow(1).Generation)
	slices.Sort(took)
	most, worst := took[(9*len(took)+9)/10-1], took[len(took)-1]
	b.Logf("after %d kills another leader acted after %.1f to %.1f s, median %.1f s, nine of ten within %.1f s", len(took), took[0].Seconds(), worst.Seconds(),
		took[len(took)/2].Seconds(), most.Seconds())
}

// clusterNow is the cluster, by the server of a host.
func (b *bed) clusterNow(server int) (c api.StorageCluster) {
	b.Helper()
	b.await("the cluster to be read", func() (err error) {
		c, err = read[api.StorageCluster](b, server, "storageclusters", "ceph")
		return err
	})
	return c
}

// changesTold fails the test unless each change of the cluster's spec was told exactly once.
func (b *bed) changesTold(from, to int64) {
	b.Helper()
	told := map[string]int{}
	for _, e := range b.events() {
		if e.Code == string(engine.ClusterChanged) { // a daemon's change reads alike
			told[e.Message]++
		}
	}
	for g := from; g < to; g++ {
		if text := fmt.Sprintf("the spec was changed (generation %d to %d)", g, g+1); told[text] != 1 {
			b.Errorf("told %d times: %s", told[text], text)
		}
	}
}

// leaderKilled changes the cluster's spec, asks for an orchestration, kills whoever leads and starts it again: another one carries out what was
// asked for. It returns after what time that one acted: its first write under its own term takes the cluster's lock, whose Lease has the
// moment, by the clock that all hosts of a lab share.
func (b *bed) leaderKilled(round int) time.Duration {
	b.Helper()
	var leader int
	var name string
	b.await("the leader to have the cluster's lock", func() (err error) {
		if leader, err = b.leaderFrom(1); err != nil {
			return err
		}
		name = b.Lab.Host(leader).Name
		_, err = b.lockOf(leader, func(holder string) bool { return holder == name })
		return err
	})
	other := leader%3 + 1
	change := fmt.Sprintf(`{"metadata":{"annotations":{%q:"round-%d"}},"spec":{"interval":"%ds"}}`, api.AnnotationOrchestrate, round, 10+round)
	b.await("the change to be taken", func() error {
		_, err := b.Lab.Host(other).Try(b.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "patch", "storagecluster", "ceph",
			"--type", "merge", "-p", change)
		return err
	})
	killed := time.Now()
	b.Server(leader).Kill(b)
	var acted time.Time
	b.await("another leader to act", func() (err error) {
		acted, err = b.lockOf(other, func(holder string) bool { return holder != name })
		return err
	})
	b.StartServer(b, leader)
	b.await("the server that was killed", func() error {
		_, err := b.leaderFrom(leader)
		return err
	})
	b.await("the orchestration that was asked for", func() error {
		if c := b.clusterNow(other); c.Status.OrchestratedRequest != fmt.Sprintf("round-%d", round) {
			return fmt.Errorf("the last one was %q", c.Status.OrchestratedRequest)
		}
		return nil
	})
	return acted.Sub(killed)
}

// lockOf says by the server of a host when the cluster's lock was taken, if the right server did that.
func (b *bed) lockOf(server int, right func(holder string) bool) (taken time.Time, err error) {
	lock, err := read[coordinationv1.Lease](b, server, "leases", "orchestrate-default.ceph", "-n", "holdfast-system")
	if err != nil {
		return taken, err
	}
	if lock.Spec.HolderIdentity == nil || lock.Spec.AcquireTime == nil {
		return taken, fmt.Errorf("the lock is %+v", lock.Spec)
	}
	if holder, _, _ := strings.Cut(*lock.Spec.HolderIdentity, "_"); !right(holder) {
		return taken, fmt.Errorf("%s has the lock", holder)
	}
	return lock.Spec.AcquireTime.Time, nil
}

// events are the events of all clusters of the namespace, in their order.
func (b *bed) events() []api.ClusterEvent {
	b.Helper()
	events := list[api.ClusterEvent](b, "clusterevents")
	slices.SortFunc(events, func(x, y api.ClusterEvent) int { return int(x.Sequence - y.Sequence) })
	return events
}

// eventsWhole fails the test if the events have a gap or tell the same difference twice.
func (b *bed) eventsWhole() {
	b.Helper()
	events := b.events()
	for i := 1; i < len(events); i++ {
		was, is := events[i-1], events[i]
		if is.Sequence != was.Sequence+1 {
			b.Errorf("event %d follows event %d", is.Sequence, was.Sequence)
		}
		if is.Code == was.Code && is.Object == was.Object && is.Message == was.Message {
			b.Errorf("events %d and %d tell the same: %s of %s: %s", was.Sequence, is.Sequence, is.Code, is.Object, is.Message)
		}
	}
}
