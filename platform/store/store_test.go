package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	stands "github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/storetest"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/heartbeat"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{Store: newStore(t, "s1"), World: newWorld(t).World})
}

func TestNewStore_unreachable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s, err := bare.NewStore(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, "s1")
	if err == nil {
		s.Close()
		t.Fatal("no error")
	}
}

func newCluster(name string) *api.StorageCluster {
	return &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Interval: metav1.Duration{Duration: time.Second}, DeletionPolicy: api.DeletionRetain,
			Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}, Mgr: api.CephMgrSpec{Count: 1}},
		},
	}
}

func TestStore_locksGoWithLeadership(t *testing.T) {
	w, cluster := newWorld(t), types.NamespacedName{Namespace: "default", Name: "locks"}
	s2, s1 := newStore(t, "s2"), newStore(t, "s1")
	held, unlock, err := s1.Lock(t.Context(), cluster)
	must(t, err)
	defer unlock()
	if _, _, err := s2.Lock(t.Context(), cluster); !errors.Is(err, engine.ErrLocked) || !strings.Contains(err.Error(), "s1") {
		t.Errorf("the lock of the server that leads: %v", err)
	}
	// s1 stops renewing: its leadership is over, and its locks with it.
	must(t, w.LeadAs(t.Context(), "s2"))
	_, unlock2, err := s2.Lock(t.Context(), cluster)
	must(t, err)
	defer unlock2()
	select {
	case <-held.Done():
	case <-time.After(time.Minute):
		t.Fatal("the first server's run goes on without the lock")
	}
	if _, _, err := s1.Lock(t.Context(), cluster); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("the first server wakes up: %v", err)
	}
}

// TestStore_lockDeletedByHand: a lock that is gone protects nothing, so the run that relies on it
// ends. The next one takes the lock anew, under a term of its own.
func TestStore_lockDeletedByHand(t *testing.T) {
	w, s, cluster := newWorld(t), newStore(t, "s1"), types.NamespacedName{Namespace: "default", Name: "deleted"}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "orchestrate-default.deleted"}}
	for term := range int32(3) {
		held, unlock, err := s.Lock(t.Context(), cluster)
		must(t, err)
		must(t, w.Get(t.Context(), lease))
		if *lease.Spec.LeaseTransitions != term+1 {
			t.Errorf("term %d is taken as %d", term+1, *lease.Spec.LeaseTransitions)
		}
		must(t, w.Delete(t.Context(), lease))
		select {
		case <-held.Done():
		case <-time.After(time.Minute):
			t.Fatal("the run goes on without its lock")
		}
		if err := context.Cause(held); !errors.Is(err, engine.ErrLocked) || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("cause = %v", err)
		}
		unlock()
	}
}

func TestStore_closesHolesInTheLog(t *testing.T) {
	w, c := newWorld(t), newCluster("holes")
	for _, n := range []int64{3, 4, 6, 9} {
		must(t, w.Create(t.Context(), engine.EventFor(c, n, engine.Event{
			Code: "X", Object: fmt.Sprint(n),
			Message: "m", Time: time.Now(),
		})))
	}
	_, err := newStore(t, "s1").Emit(t.Context(), c, []engine.Event{{
		Code: "X", Object: "new", Message: "m",
		Time: time.Now(),
	}}, nil)
	must(t, err)
	if got, want := w.log(t, c), "3:3 4:4 5:6 6:9 7:new"; got != want {
		t.Errorf("log = %s, want %s", got, want)
	}
}

// log returns number and object of each event.
func (w world) log(t *testing.T, c *api.StorageCluster) string {
	t.Helper()
	events, err := w.Events(t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	must(t, err)
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("%d:%s", e.Sequence, e.Object)
	}
	return strings.Join(lines, " ")
}

// TestStore_anotherWriterOfEvents: a leader that was replaced may have a write on its way. The new
// one's numbers follow it.
func TestStore_anotherWriterOfEvents(t *testing.T) {
	w, c, s := newWorld(t), newCluster("writers"), newStore(t, "s1")
	event := func(object string) []engine.Event {
		return []engine.Event{{Code: "X", Object: object, Message: "m", Time: time.Now()}}
	}
	_, err := s.Emit(t.Context(), c, event("one"), nil)
	must(t, err)
	must(t, w.Create(t.Context(), engine.EventFor(c, 2, event("foreign")[0])))
	if n, err := s.Emit(t.Context(), c, event("two"), nil); err == nil || n != 1 {
		t.Errorf("%d accepted, error %v", n, err)
	}
	_, err = s.Emit(t.Context(), c, nil, nil)
	must(t, err)
	if got, want := w.log(t, c), "1:one 2:foreign 3:two"; got != want {
		t.Errorf("log = %s, want %s", got, want)
	}
}

// TestStore_writesWhatWasAccepted: a leader dies after its record was written, at any moment of the
// writing of its events. The next one writes those that are missing, each once and under its
// number.
func TestStore_writesWhatWasAccepted(t *testing.T) {
	w := newWorld(t)
	for missing := range 8 {
		c := newCluster(fmt.Sprintf("accepted%d", missing))
		var events []engine.Event
		for _, object := range []string{"a", "b", "c"} {
			events = append(events, engine.Event{Code: "X", Object: object, Message: "m", Time: time.Now()})
		}
		s := newStore(t, "s1")
		_, err := s.Emit(t.Context(), c, events[:1], nil)
		must(t, err)
		_, err = s.Emit(t.Context(), c, events, map[string]*string{"k": new("v")})
		must(t, err)
		for i := range 3 {
			if missing&(1<<i) != 0 {
				must(t, w.Delete(t.Context(), engine.EventFor(c, int64(2+i), engine.Event{})))
			}
		}
		next := newStore(t, "s2")
		told, err := next.Told(t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
		must(t, err)
		if got, want := w.log(t, c), "1:a 2:a 3:b 4:c"; got != want || told["k"] != "v" {
			t.Errorf("missing %03b: log = %s, want %s; told %v", missing, got, want, told)
		}
		_, err = next.Emit(t.Context(), c, events[:1], nil)
		must(t, err)
		if got, want := w.log(t, c), "1:a 2:a 3:b 4:c 5:a"; got != want {
			t.Errorf("missing %03b: log = %s, want %s", missing, got, want)
		}
	}
}

// TestStore_anotherWriterOfTheRecord: a leader whose record somebody wrote meanwhile does not
// overwrite it. It reads the record again, and goes on from there.
func TestStore_anotherWriterOfTheRecord(t *testing.T) {
	w, c, s := newWorld(t), newCluster("records"), newStore(t, "s1")
	name := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	_, err := s.Emit(t.Context(), c, nil, map[string]*string{"mine": new("1")})
	must(t, err)
	other := newStore(t, "s1")
	_, err = other.Told(t.Context(), name)
	must(t, err)
	_, err = other.Emit(t.Context(), c, nil, map[string]*string{"theirs": new("2")})
	must(t, err)
	if _, err = s.Emit(t.Context(), c, nil, map[string]*string{"mine": new("3")}); !apierrors.IsConflict(err) {
		t.Errorf("a stale record was written: %v", err)
	}
	told, err := s.Told(t.Context(), name)
	must(t, err)
	if told["mine"] != "1" || told["theirs"] != "2" {
		t.Errorf("read again: %v", told)
	}
	_, err = s.Emit(t.Context(), c, nil, map[string]*string{"mine": new("3")})
	must(t, err)
	must(t, w.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: api.SystemNamespace,
		Name:      "told-" + c.Namespace + "." + c.Name,
	}}))
	if _, err = s.Emit(t.Context(), c, nil, map[string]*string{"mine": new("4")}); !apierrors.IsNotFound(err) {
		t.Errorf("a record that somebody deleted was written: %v", err)
	}
	_, err = s.Emit(t.Context(), c, nil, map[string]*string{"mine": new("4")})
	must(t, err)
}

// TestStore_leavesEventsForLater: where there are too many events for one run they are accepted at
// once and written later, in their order. A leader that ends meanwhile leaves the rest to the next.
func TestStore_leavesEventsForLater(t *testing.T) {
	w, c := newWorld(t), newCluster("later")
	s := newStore(t, "s1")
	s.LeaveEvents()
	var want []string
	for i := range 30 {
		events := []engine.Event{
			{Code: "X", Object: fmt.Sprintf("%da", i), Message: "m", Time: time.Now()},
			{Code: "X", Object: fmt.Sprintf("%db", i), Message: "m", Time: time.Now()},
		}
		if n, err := s.Emit(t.Context(), c, events, nil); err != nil || n != 2 {
			t.Fatalf("%d events were accepted: %v", n, err)
		}
		want = append(want, fmt.Sprintf("%d:%da", 2*i+1, i), fmt.Sprintf("%d:%db", 2*i+2, i))
		if i == 14 {
			eventually(t, "all are written", func() bool { return w.log(t, c) == strings.Join(want, " ") })
		}
	}
	s.Close()
	_, err := newStore(t, "s2").Told(t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	must(t, err)
	if got := w.log(t, c); got != strings.Join(want, " ") {
		t.Errorf("log = %s, want %s", got, want)
	}
}

func TestStore_watchesAgents(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.WatchAgents(ctx, time.Minute) }()
	join := func(name string) *api.Host {
		host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must(t, w.Create(t.Context(), host))
		must(t, w.Beat(t.Context(), name))
		eventually(t, name+" is connected", func() bool {
			must(t, w.Get(t.Context(), host))
			c := meta.FindStatusCondition(host.Status.Conditions, api.HostAgentConnected)
			return c != nil && c.Reason == heartbeat.ReasonConnected && meta.IsStatusConditionTrue(host.Status.Conditions, api.ConditionReady)
		})
		return host
	}
	host := join("beating")
	// A heartbeat alone changes nothing of the Host.
	before := host.ResourceVersion
	must(t, w.Beat(t.Context(), host.Name))
	join("one-look-later")
	join("two-looks-later") // what the first of these looks wrote is there now
	must(t, w.Get(t.Context(), host))
	if host.ResourceVersion != before {
		t.Error("a heartbeat was written into the Host")
	}
	// The label that StorageNodes find a host by comes back, whatever becomes of it.
	for _, edit := range []func(){func() { host.Labels[api.LabelHostname] = "other" }, func() { delete(host.Labels, api.LabelHostname) }} {
		edit()
		must(t, w.Update(t.Context(), host))
		eventually(t, "the host has its name", func() bool {
			must(t, w.Get(t.Context(), host))
			return host.Labels[api.LabelHostname] == host.Name
		})
	}
	cancel()
	must(t, <-done)
}

// TestStore_marks: what an earlier version made gets the labels and the owner that tools show it
// by. Nothing else of it changes: no generation, so that no agent prepares anything, and no key of
// a Secret, which the cache does not have.
func TestStore_marks(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := newCluster("marked")
	must(t, w.Create(t.Context(), c))
	daemon := toldDaemon("nowhere", "marked")
	daemon.Spec.Cluster, daemon.Labels = c.Name, map[string]string{api.LabelCluster: c.Name, "mine": "kept"}
	daemon.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "kept"},
		{APIVersion: c.APIVersion, Kind: "StorageCluster", Name: c.Name, UID: "of a cluster that was"},
	}
	daemon.OwnerReferences[1].APIVersion = api.GroupVersion.String()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Namespace, Name: "marked-key", Labels: map[string]string{api.LabelCluster: c.Name},
	}, Data: map[string][]byte{"key": []byte("value")}}
	must(t, w.Create(t.Context(), daemon))
	must(t, w.Create(t.Context(), secret))
	s := newStore(t, "s1")
	generation, spec := daemon.Generation, daemon.Spec
	done := make(chan error, 1)
	go func() { done <- s.WatchAgents(ctx, time.Minute) }()
	eventually(t, "the objects are marked", func() bool {
		must(t, w.Get(t.Context(), daemon))
		must(t, w.Get(t.Context(), secret))
		return daemon.Labels[engine.LabelManagedBy] == "holdfast" && secret.Labels[engine.LabelManagedBy] == "holdfast"
	})
	want := map[string]string{
		"mine": "kept", api.LabelCluster: c.Name, engine.LabelInstance: c.Name, engine.LabelManagedBy: "holdfast",
		engine.LabelName: string(c.Spec.Type), engine.LabelComponent: "t",
	}
	if !maps.Equal(daemon.Labels, want) {
		t.Errorf("labels %v, want %v", daemon.Labels, want)
	}
	owners := daemon.OwnerReferences
	if len(owners) != 2 || owners[0].UID != "kept" || owners[1].UID != c.UID || owners[1].BlockOwnerDeletion != nil {
		t.Errorf("owners %+v, want that of the user and cluster %s", owners, c.UID)
	}
	if daemon.Generation != generation || !daemon.Spec.Equal(&spec) {
		t.Errorf("generation %d of %+v, was %d", daemon.Generation, daemon.Spec, generation)
	}
	if string(secret.Data["key"]) != "value" || len(secret.OwnerReferences) > 0 {
		t.Errorf("the secret holds %q, and a collector would delete it with %v", secret.Data, secret.OwnerReferences)
	}
	// What is right stays as it is.
	cancel()
	must(t, <-done)
	versions := func() string {
		must(t, w.Get(t.Context(), daemon))
		must(t, w.Get(t.Context(), secret))
		return daemon.ResourceVersion + " " + secret.ResourceVersion
	}
	before := versions()
	again, cancel := context.WithCancel(t.Context())
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "marked-look"}}
	must(t, w.Create(t.Context(), host))
	go func() { done <- s.WatchAgents(again, time.Millisecond) }()
	eventually(t, "a look is over", func() bool {
		must(t, w.Get(t.Context(), host))
		return len(host.Status.Conditions) > 0
	})
	cancel()
	must(t, <-done)
	if after := versions(); after != before {
		t.Errorf("marked objects are written again: %s, were %s", after, before)
	}
}

// TestStore_doubtsDaemons: nobody knows how the daemons of a silent host are, and the leader says
// so, once: what an agent tells then, which lives and is not heard, stays.
func TestStore_doubtsDaemons(t *testing.T) {
	w, s := newWorld(t), newStore(t, "s1")
	ctx, cancel := context.WithCancel(t.Context())
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "falls-silent"}}
	must(t, w.Create(t.Context(), host))
	told, old := toldDaemon(host.Name, "told"), toldDaemon(host.Name, "old")
	for _, d := range []*api.Daemon{told, old} {
		must(t, w.Create(t.Context(), d))
	}
	tell := func(d *api.Daemon) {
		must(t, w.Get(t.Context(), d))
		d.Status = api.DaemonStatus{State: api.DaemonRunning, ObservedGeneration: d.Generation}
		ready := stands.Standing{Ready: true, Reason: api.ReasonReady}
		stands.Set(&d.Status.Conditions, d.Generation, ready, time.Now())
		must(t, w.UpdateStatus(t.Context(), d))
	}
	tell(told)
	done := make(chan error, 1)
	go func() { done <- s.WatchAgents(ctx, 2*time.Second) }()
	ready := func(d *api.Daemon) metav1.Condition {
		must(t, w.Get(t.Context(), d))
		if c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	eventually(t, "the daemon is in doubt", func() bool { return ready(told).Status == metav1.ConditionUnknown })
	c := ready(told)
	if is, why := kstatus.Of(t, told); is != kstatus.InProgress || c.Reason != string(api.ReasonAgentDisconnected) {
		t.Errorf("%s, %s: %+v", is, why, c)
	}
	if !strings.Contains(c.Message, "falls-silent is disconnected; it last reported the daemon as Running") {
		t.Errorf("message %q", c.Message)
	}
	eventually(t, "a second has passed", func() bool {
		return time.Since(c.LastTransitionTime.Time) > 1100*time.Millisecond
	})
	tell(told)
	other := toldDaemon(host.Name, "later") // said in doubt by a later look than the one that would doubt again
	must(t, w.Create(t.Context(), other))
	must(t, w.Get(t.Context(), host))
	silent := meta.FindStatusCondition(host.Status.Conditions, api.HostAgentConnected).LastTransitionTime
	other.Status.Conditions = []metav1.Condition{{
		Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: silent,
	}}
	must(t, w.UpdateStatus(t.Context(), other))
	eventually(t, "the other daemon is in doubt", func() bool { return ready(other).Status == metav1.ConditionUnknown })
	if c := ready(told); c.Status != metav1.ConditionTrue {
		t.Errorf("what an agent told while it was not heard is written over: %+v", c)
	}
	if c := ready(old); c.Type != "" {
		t.Errorf("an agent that tells no conditions would not take this back: %+v", c)
	}
	cancel()
	must(t, <-done)
}

func toldDaemon(host, name string) *api.Daemon {
	return &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: host + "-" + name},
		Spec: api.DaemonSpec{
			Cluster: "c", Type: "t", ID: name, Host: host, State: api.WantRunning, Command: []string{"true"},
		},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: did not come true", what)
		}
	}
}
