package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

func testEqualWrites(b *bench) {
	b.must(b.World.Create(b.ctx, b.newNode("n1", b.name+"-h1")))
	node := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-n1"}}
	cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name}}
	status := &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name}}
	write := func() string {
		b.must(b.Store.Adopt(b.ctx, b.key))
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("m1", api.WantRunning)))
		b.must(b.Store.PutNodeStatus(b.ctx, "default", engine.NodeStatus{Name: node.Name, Status: statusOf("h1", "d1")}))
		b.must(b.Store.PutStatus(b.ctx, b.cluster, api.StorageStatusStatus{Health: "HEALTH_OK"}))
		b.must(b.Store.PutClusterStatus(b.ctx, b.key, func(s *api.StorageClusterStatus) { s.ObservedGeneration = 1 }))
		for _, o := range []Object{node, cluster, status} {
			b.must(b.World.Get(b.ctx, o))
		}
		return fmt.Sprint(node.ResourceVersion, cluster.ResourceVersion, status.ResourceVersion, b.daemon("m1").ResourceVersion)
	}
	if first, second := write(), write(); first != second {
		b.Errorf("versions before and after the same writes: %s and %s", first, second)
	}
}

// testStaleNodeStatus: what was made of a node that is another one by now is not written.
func testStaleNodeStatus(b *bench) {
	b.must(b.World.Create(b.ctx, b.newNode("n1", b.name+"-h1")))
	node := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-n1"}}
	b.must(b.World.Get(b.ctx, node))
	put := func(seen *api.StorageNode, host string) error {
		return b.Store.PutNodeStatus(b.ctx, "default", engine.NodeStatus{Name: node.Name, Status: statusOf(host, "d1"), Seen: seen})
	}
	current := func() *api.StorageNode {
		now := node.DeepCopy()
		b.must(b.World.Get(b.ctx, now))
		return now
	}
	b.must(put(node, "h1"))
	stale := map[string]*api.StorageNode{"another one wrote its status": node}
	moved := current()
	before := moved.DeepCopy()
	moved.Spec.NodeSelector = map[string]string{api.LabelHostname: "h2"}
	b.must(b.World.Update(b.ctx, moved))
	stale["its spec was changed"] = before
	anew := current()
	anew.UID = "another"
	stale["it was made anew"] = anew
	for why, seen := range stale {
		if err := put(seen, "h9"); !errors.Is(err, engine.ErrStale) {
			b.Errorf("%s: %v", why, err)
		}
	}
	if host := current().Status.Host; host != "h1" {
		b.Errorf("the status says %s", host)
	}
	b.must(put(current(), "h2"))
	b.must(put(nil, "h3"))
	if host := current().Status.Host; host != "h3" {
		b.Errorf("in the end the status says %s", host)
	}
}

func testDaemonKeepsStatus(b *bench) {
	change := b.change("m1", api.WantPrepared)
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
	d := b.daemon("m1")
	if d.Labels[api.LabelCluster] != b.name || sortedKeys(map[string]bool{d.Finalizers[0]: true}) != api.FinalizerDaemon {
		b.Errorf("labels %v, finalizers %v", d.Labels, d.Finalizers)
	}
	d.Status = api.DaemonStatus{State: api.DaemonPrepared, Message: "ready"}
	b.must(b.World.UpdateStatus(b.ctx, d))
	// New is what the planner believed; the daemon may have been made since.
	change.Daemon.Spec.State = api.WantRunning
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
	if d = b.daemon("m1"); d.Status.State != api.DaemonPrepared || d.Spec.State != api.WantRunning || d.Generation != 2 {
		b.Errorf("daemon = %+v", d)
	}
}

// testService: what is said of a daemon is written once, beside all that its agent reports, and taken back.
func testService(b *bench) {
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("m1", api.WantRunning)))
	d := b.daemon("m1")
	d.Status = api.DaemonStatus{State: api.DaemonRunning, Message: "ready"}
	b.must(b.World.UpdateStatus(b.ctx, d))
	said := &api.DaemonService{
		State: api.OutOfService, Reason: api.ReasonMarkedOut, Message: "out", Since: metav1.NewTime(time.Unix(1e9, 0)),
	}
	for _, want := range []*api.DaemonService{said, said, nil} {
		before := b.daemon("m1")
		b.must(b.Store.PutService(b.ctx, "default", serving.Change{Name: d.Name, Service: want}))
		now := b.daemon("m1")
		if !equality.Semantic.DeepEqual(now.Status.Service, want) || now.Status.Message != "ready" {
			b.Errorf("daemon = %+v", now.Status)
		}
		alike := equality.Semantic.DeepEqual(before.Status.Service, want)
		if alike != (now.ResourceVersion == before.ResourceVersion) || alike == serving.Alone(before, now) {
			b.Errorf("written although it is the same: %v", now.ResourceVersion != before.ResourceVersion)
		}
	}
	b.must(b.Store.PutService(b.ctx, "default", serving.Change{Name: "none", Service: said}))
}

// testDaemonGone: a daemon that was removed since it was looked at is not made anew by a change of it, and the next look makes one.
func testDaemonGone(b *bench) {
	change := b.change("m1", api.WantPrepared)
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
	d := b.daemon("m1")
	d.Finalizers = nil
	b.must(b.World.Update(b.ctx, d))
	b.must(b.Store.RemoveDaemon(b.ctx, "default", d.Name))
	change.New, change.Daemon.Spec.State = false, api.WantRunning
	if err := b.Store.PutDaemon(b.ctx, b.cluster, change); !errors.Is(err, engine.ErrStale) {
		b.Errorf("a change of a daemon that is gone: %v", err)
	}
	if err := b.World.Get(b.ctx, d); err == nil {
		b.Errorf("it was made anew: %+v", d)
	}
	change.New = true
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
}

// testWritesBesideTheAgent: the agent writes a daemon's status all the time, and no write of the engine is lost by it.
func testWritesBesideTheAgent(b *bench) {
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("m1", api.WantPrepared)))
	ctx, stop := context.WithCancel(b.ctx)
	var agent sync.WaitGroup
	agent.Go(func() {
		for i := int32(1); ctx.Err() == nil; i++ {
			d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-m1"}}
			if b.World.Get(ctx, d) == nil {
				d.Status.Restarts = i
				_ = b.World.UpdateStatus(ctx, d) // A conflict is tried again by the next round.
			}
			time.Sleep(25 * time.Millisecond) // an agent reports a few times a second at most
		}
	})
	for i := range 20 {
		change := b.change("m1", api.WantRunning)
		change.Daemon.Spec.Parameters = map[string]string{"round": fmt.Sprint(i)}
		if err := b.Store.PutDaemon(b.ctx, b.cluster, change); err != nil {
			b.Errorf("round %d: %v", i, err)
		}
	}
	stop()
	agent.Wait()
	if d := b.daemon("m1"); d.Spec.Parameters["round"] != "19" {
		b.Errorf("parameters = %v", d.Spec.Parameters)
	}
}

func testSecrets(b *bench) {
	want, calls := engine.SecretWant{Name: b.name + "-key"}, 0
	data := func() (map[string][]byte, error) {
		calls++
		return map[string][]byte{"key": []byte("one")}, nil
	}
	for range 2 {
		b.must(b.Store.MakeSecret(b.ctx, b.cluster, want, data))
		b.view()
	}
	got, err := b.Store.Secrets(b.key).Secret(b.ctx, want.Name)
	b.must(err)
	if calls != 1 || string(got["key"]) != "one" {
		b.Errorf("made %d times, holds %q", calls, got)
	}
	other := newCluster(b.name + "-other")
	b.must(b.World.Create(b.ctx, other))
	if err := b.Store.MakeSecret(b.ctx, other, want, data); err == nil {
		b.Error("a cluster took another one's secret for its own")
	}
	otherKey := b.key
	otherKey.Name = other.Name
	if _, err := b.Store.Secrets(otherKey).Secret(b.ctx, want.Name); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("another cluster's secret: %v", err)
	}
	b.must(b.Store.RemoveSecret(b.ctx, otherKey, want.Name))
	if _, err := b.Store.Secrets(b.key).Secret(b.ctx, want.Name); err != nil {
		b.Errorf("removed for another cluster: %v", err)
	}
	for range 2 {
		b.must(b.Store.RemoveSecret(b.ctx, b.key, want.Name))
		if len(b.view().Secrets) > 0 {
			b.Error("a secret that was removed is in the view")
		}
	}
	fault := errors.New("no entropy")
	want.Name = b.name + "-none"
	if err := b.Store.MakeSecret(b.ctx, b.cluster, want, func() (map[string][]byte, error) { return nil, fault }); !errors.Is(err, fault) {
		b.Errorf("error = %v", err)
	}
}

func testRemoveDaemon(b *bench) {
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("m1", api.WantRunning)))
	for range 2 {
		b.must(b.Store.RemoveDaemon(b.ctx, "default", b.name+"-m1"))
	}
	d := b.daemon("m1")
	if d.DeletionTimestamp == nil {
		b.Error("the daemon is not marked as deleted")
	}
	d.Finalizers = nil
	b.must(b.World.Update(b.ctx, d))
	b.eventually("the daemon is gone", func() bool { return len(b.view().Daemons) == 0 })
}

func (b *bench) emit(from, n int, at time.Time) {
	b.Helper()
	var events []engine.Event
	for i := range n {
		events = append(events, engine.Event{
			Code: engine.DaemonNew, Object: fmt.Sprintf("daemon/%d", from+i), Message: "a message", Time: at,
		})
	}
	written, err := b.Store.Emit(b.ctx, b.cluster, events, nil)
	b.must(err)
	if written != n {
		b.Errorf("%d of %d events were written", written, n)
	}
}

// log returns the cluster's events, of which the sequence must have no gap and the content be in order.
func (b *bench) log() []api.ClusterEvent {
	b.Helper()
	events, err := b.World.Events(b.ctx, b.key)
	b.must(err)
	for i, e := range events {
		if want := fmt.Sprintf("daemon/%d", e.Sequence); e.Object != want {
			b.Errorf("event %d is of %s", e.Sequence, e.Object)
		}
		if i > 0 && e.Sequence != events[i-1].Sequence+1 {
			b.Errorf("event %d follows event %d", e.Sequence, events[i-1].Sequence)
		}
	}
	return events
}

func testEvents(b *bench) {
	now := time.Now()
	b.emit(1, 3, now)
	b.emit(4, 30, now)
	b.emit(34, 0, now)
	events := b.log()
	if len(events) != 33 || events[0].Sequence != 1 {
		b.Errorf("%d events from %d", len(events), events[0].Sequence)
	}
	if e := events[0]; e.Labels[api.LabelCluster] != b.name || e.Cluster != b.name || e.Code != "DAEMON_NEW" || e.Message != "a message" {
		b.Errorf("event = %+v", e)
	}
}

func testEventsAreBounded(b *bench) {
	b.emit(1, 10, time.Now().Add(-8*24*time.Hour))
	b.emit(11, 1, time.Now())
	// Many events are written in the background, side by side: on the way there are gaps.
	reaches := func(n int, last int64) func() bool {
		return func() bool {
			events, err := b.World.Events(b.ctx, b.key)
			b.must(err)
			return len(events) == n && events[n-1].Sequence == last
		}
	}
	b.eventually("old events are removed", reaches(1, 11))
	b.emit(12, 499, time.Now())
	b.emit(511, 20, time.Now())
	b.eventually("the log is bounded", reaches(500, 530))
	if events := b.log(); events[len(events)-1].Sequence != 530 || len(events) != 500 {
		b.Errorf("%d events to %d", len(events), events[len(events)-1].Sequence)
	}
}

func testFinish(b *bench, policy api.DeletionPolicy) {
	b.must(b.World.Get(b.ctx, b.cluster))
	b.cluster.Spec.DeletionPolicy = policy
	b.must(b.World.Update(b.ctx, b.cluster))
	b.must(b.Store.Adopt(b.ctx, b.key))
	b.must(b.Store.MakeSecret(b.ctx, b.cluster, engine.SecretWant{Name: b.name + "-key"}, secretData))
	b.must(b.Store.PutStatus(b.ctx, b.cluster, api.StorageStatusStatus{Health: "HEALTH_OK"}))
	b.emit(1, 2, time.Now())
	_, err := b.Store.Emit(b.ctx, b.cluster, nil, map[string]*string{"a": new("1")})
	b.must(err)
	b.must(b.World.Delete(b.ctx, b.cluster))
	b.must(b.World.Get(b.ctx, b.cluster))
	if b.cluster.DeletionTimestamp == nil {
		b.Fatal("the cluster is not marked as deleted")
	}
	b.must(b.Store.Adopt(b.ctx, b.key))
	b.must(b.Store.Finish(b.ctx, b.cluster))
	if _, err := b.Store.Cluster(b.ctx, b.key); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("the cluster after Finish: %v", err)
	}
	if len(b.log()) > 0 {
		b.Error("events are left")
	}
	if err := b.World.Get(b.ctx, &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name}}); err == nil {
		b.Error("the StorageStatus is left")
	}
	_, err = b.Store.Secrets(b.key).Secret(b.ctx, b.name+"-key")
	if gone := errors.Is(err, engine.ErrNotFound); gone != (policy == api.DeletionWipe) {
		b.Errorf("under %s the secret: %v", policy, err)
	}
	// A cluster of the same name starts its log anew.
	b.cluster = newCluster(b.name)
	b.must(b.World.Create(b.ctx, b.cluster))
	b.wantTold(engine.Told{})
	b.emit(1, 1, time.Now())
	b.log()
}

func testLock(b *bench) {
	first, unlock, err := b.Store.Lock(b.ctx, b.key)
	b.must(err)
	unlock()
	if first.Err() == nil {
		b.Error("the context outlives its lock")
	}
	held, unlock, err := b.Store.Lock(b.ctx, b.key)
	b.must(err)
	defer unlock()
	if held.Err() != nil {
		b.Errorf("a lock just taken: %v", context.Cause(held))
	}
	b.must(b.World.TakeLock(b.ctx, b.key, "another"))
	select {
	case <-held.Done():
	case <-b.ctx.Done():
		b.Fatal("the context lives on after another took the lock")
	}
	if err := context.Cause(held); !errors.Is(err, engine.ErrLocked) {
		b.Errorf("cause = %v", err)
	}
	if _, _, err := b.Store.Lock(b.ctx, b.key); !errors.Is(err, engine.ErrLocked) {
		b.Errorf("a lock that another holds: %v", err)
	}
}
