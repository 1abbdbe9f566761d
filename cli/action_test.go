package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// setAction writes the status of an action, as the leader does.
func (b *bench) setAction(name string, change func(*api.Action)) {
	b.Helper()
	a := &api.Action{}
	b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: name}, a))
	change(a)
	b.must(b.client.Status().Update(b.Context(), a))
}

func (b *bench) addDaemon() {
	b.Helper()
	b.addHost("node1", metav1.ConditionTrue)
	b.must(b.client.Create(b.Context(), &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph"},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Approval: api.ApprovalRequired, Interval: metav1.Duration{Duration: 10 * time.Second},
			Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}, Mgr: api.CephMgrSpec{Count: 1}},
		},
	}))
	b.must(b.client.Create(b.Context(), &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-3"},
		Spec:       api.DaemonSpec{Cluster: "ceph", Type: "ceph-osd", ID: "3", Host: "node1", State: api.WantRunning, Command: []string{"true"}},
	}))
}

func TestLeftText(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		estimated, now time.Duration
		want           string
	}{
		{10 * time.Minute, time.Minute, "; done in about 9m"},
		{time.Minute, time.Minute, ""},
		{2 * time.Second, 31 * time.Second, ""},
		{2 * time.Second, 33 * time.Second, "; longer than estimated"},
		{10 * time.Minute, 20 * time.Minute, ""},
		{10 * time.Minute, 21 * time.Minute, "; longer than estimated"},
	} {
		a := &api.Action{Status: api.ActionStatus{
			State: api.ActionRunning, Estimated: &metav1.Time{Time: begun.Add(tt.estimated)},
			Steps: []api.ActionStep{{Name: "s", State: api.StepRunning, Started: &metav1.Time{Time: begun}}},
		}}
		if got := leftText(a, begun.Add(tt.now)); got != tt.want {
			t.Errorf("estimated after %s, now %s: %q, want %q", tt.estimated, tt.now, got, tt.want)
		}
	}
}

func TestAction_impossibleTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addHost("node1", metav1.ConditionTrue)
	for times, want := range map[string]string{
		"timeout: -5m": "spec.timeout: -5m is negative", "expiresAfter: -1h": "spec.expiresAfter: -1h is negative",
		"timeout: 99999999999h": `spec.timeout: "99999999999h" is not a valid duration`,
	} {
		b.expectInput("apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: a, namespace: default}\nspec: {kind: host.drain, target: host/node1, host: node1, "+times+"}\n",
			"apply -f -", exitRefused, want)
	}
	if all := b.actions(); len(all) > 0 {
		t.Errorf("there are %d actions", len(all))
	}
}

func TestAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDaemon()
	b.expect("action list", exitOK, "there are none")
	b.expect("action kinds", exitOK, "daemon.restart", "Agent", "host.drain", "Leader", "Rolling")
	b.expect("daemon restart osd.4", exitRefused, "daemon osd.4 does not exist in namespace default", "did you mean osd.3?")
	b.expect("daemon restart osd.3 --wait --timeout 300ms", exitTimeout, "is not done after 300ms; it continues")
	all := b.actions()
	if len(all) != 1 {
		t.Fatalf("there are %d actions", len(all))
	}
	a := all[0]
	if s := a.Spec; s.Kind != "daemon.restart" || s.Target != "daemon/ceph-osd-3" || s.Host != "node1" || s.Cluster != "ceph" || s.Approval != api.ApprovalRequired {
		t.Errorf("the action is %+v", s)
	}
	b.setAction(a.Name, func(a *api.Action) {
		a.Status.State, a.Status.WaitsFor = api.ActionPendingApproval, "an administrator to approve it"
	})
	b.expect("action list", exitOK, a.Name, "daemon.restart   daemon/ceph-osd-3   PendingApproval", "waits for an administrator to approve it")
	b.expect("action show "+a.Name, exitOK, "holdfast action approve "+a.Name, "Approval:", "Required", "Waits for:")
	b.expect("status ceph", exitOK, "actions: 1 waits for approval: 'holdfast action list'; "+a.Name+" (daemon.restart daemon/ceph-osd-3) waits for an administrator to approve it: 'holdfast action approve "+a.Name+"'")
	for _, object := range []string{"osd.3", "host/node1", "cluster/ceph"} {
		b.expect("why "+object, exitOK, "Action "+a.Name+": daemon.restart on daemon/ceph-osd-3 waits for approval.", "Next: run 'holdfast action approve "+a.Name+"' or 'holdfast action cancel "+a.Name+"'.")
	}
	b.expect("action show "+a.Name[:len(a.Name)-1], exitRefused, "did you mean "+a.Name+"?")
	b.expect("action approve "+a.Name, exitOK, "approved")
	b.expect("action approve "+a.Name, exitRefused, "already approved")
	b.setAction(a.Name, func(a *api.Action) {
		now := metav1.Now()
		a.Status.State, a.Status.WaitsFor, a.Status.Started, a.Status.Approver = api.ActionRunning, "", &now, "jo"
		a.Status.Estimated = &metav1.Time{Time: time.Now().Add(10 * time.Minute)}
		a.Status.Steps = []api.ActionStep{{Name: "look", State: api.StepDone, Started: &now, Finished: &now}, {Name: "restart", State: api.StepRunning, Started: &now, Done: 2, Total: 4, Unit: "PGs"}}
	})
	b.expect("action show "+a.Name, exitOK, "Granted by jo", "Step restart:", "2 of 4 PGs", "done in about 9m", "holdfast action cancel "+a.Name)
	b.expect("action wait --timeout 5s "+a.Name, exitTimeout, "restart: Running, 2 of 4 PGs", "done in about 9m")
	b.expect("action approve --reject "+a.Name, exitRefused, "it is already Running")
	b.expect("action cancel "+a.Name, exitOK, "is being cancelled")
	now := metav1.Now()
	b.setAction(a.Name, func(a *api.Action) {
		a.Status.State, a.Status.Message, a.Status.Finished = api.ActionCancelled, "cancelled; all steps were undone", &now
	})
	b.expect("action wait "+a.Name, exitFailed, "Cancelled: cancelled; all steps were undone")
	b.expect("action cancel "+a.Name, exitRefused, "has already ended as Cancelled")
	b.expect("action approve --reject "+a.Name, exitRefused, "has already ended as Cancelled")
	if _, out := b.run("status ceph"); strings.Contains(out, "actions:") {
		t.Errorf("nothing is under way: %s", out)
	}
	b.expect("action list", exitOK, "no action is in progress; see ended ones with 'holdfast action list --all' (1)")
	b.expect("action list --all", exitOK, a.Name, "Cancelled")
	b.expect("get actions", exitOK, a.Name, "daemon.restart")
	b.expect("action wait nine", exitRefused, "action nine does not exist")
	b.expect("action wait", exitUsage, "--help")
}

// Who asks for what cannot begin is told what it waits for.
func TestAction_firstWord(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.addDaemon()
	b.withCeph()
	b.expect("daemon restart osd.3", exitRefused, "cannot check osd.3: the mons do not answer", "'holdfast daemon restart ceph-osd-3 --force'")
	b.expect("daemon restart osd.3 --force", exitOK, "an administrator must approve it: 'holdfast action approve restart-ceph-osd-3-", "; follow it with 'holdfast action wait ")
	forced := b.actions()[slices.IndexFunc(b.actions(), func(a api.Action) bool { return a.Spec.Parameters["force"] == "Yes" })].Name
	b.expect("action show "+forced, exitOK, "force", "Yes")
	b.expect("action approve "+forced, exitOK, "approved")
	b.must(b.client.Patch(b.Context(), &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph"}},
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"approval":"Granted"}}`))))
	b.expect("daemon restart osd.3 --force", exitOK, "\nwaiting for action restart-ceph-osd-3-", ": one action at a time on host node1; ", "; follow it with 'holdfast action wait ")
}

// What came too late was not refused: nobody was against it.
func TestEndedAction_expired(t *testing.T) {
	for reason, want := range map[string]string{
		action.ReasonExpired: "expired, and nothing was changed: not approved within 24h0m0s", action.ReasonRefused: "refused, and nothing was changed: not approved within 24h0m0s",
	} {
		a := &api.Action{Status: api.ActionStatus{
			State: api.ActionFailed, Message: "not approved within 24h0m0s",
			Conditions: []metav1.Condition{{Type: api.ActionEffective, Status: metav1.ConditionFalse, Reason: reason}},
		}}
		err := newPrinter(&bytes.Buffer{}, "").endedAction(a)
		if e := (*exitError)(nil); !errors.As(err, &e) || e.code != exitRefused || err.Error() != want {
			t.Errorf("%s: %v, want %s", reason, err, want)
		}
	}
}

// What an action waits for is told when it has waited for that alone for a while, and not what was over at once.
func TestQueued_lasts(t *testing.T) {
	var q queued
	for i, tt := range []struct {
		state api.ActionState
		by    string
		at    time.Duration
		want  bool
	}{
		{"", "", 0, false},
		{api.ActionPendingSchedule, "an answer", time.Second, false},
		{api.ActionPendingSchedule, "an answer", queueTime, false},
		{api.ActionPendingSchedule, "another action", 2 * queueTime, false},
		{api.ActionPendingSchedule, "another action", 3*queueTime - 1, false},
		{api.ActionPendingSchedule, "another action", 3 * queueTime, true},
		{api.ActionNew, "", 4 * queueTime, false},
		{api.ActionNew, "", 9 * queueTime, false},
		{api.ActionPendingSchedule, "another action", 10 * queueTime, false},
		{api.ActionPendingSchedule, "another action", 11 * queueTime, true},
	} {
		if got := q.lasts(&api.ActionStatus{State: tt.state, WaitsFor: tt.by}, time.Time{}.Add(tt.at)); got != tt.want {
			t.Errorf("%d: after %s %t", i, tt.at, got)
		}
	}
}

// What comes from elsewhere cannot break a table or move the cursor.
func TestActionTable_printable(t *testing.T) {
	a := api.Action{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: api.ActionStatus{State: api.ActionRunning, Message: "one\ntwo\x1b[2J"}}
	var out bytes.Buffer
	if err := actionTable(&out, []api.Action{a}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}
