package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/screen"
)

func testSnapshot(generation, observed int64, conditions ...metav1.Condition) snapshot {
	return snapshot{Cluster: &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "ceph", Generation: generation},
		Status:     api.StorageClusterStatus{ObservedGeneration: observed, Conditions: conditions},
	}}
}

func TestOutcome(t *testing.T) {
	isReady := metav1.Condition{Type: api.ClusterReady, Status: metav1.ConditionTrue}
	isRefused := metav1.Condition{Type: api.ClusterAccepted, Status: metav1.ConditionFalse}
	behind := testSnapshot(1, 1, isReady)
	behind.Nodes = []api.StorageNode{{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: api.StorageNodeStatus{ObservedGeneration: 1}}}
	tests := []struct {
		name string
		s    snapshot
		want outcome
	}{
		{"no cluster", snapshot{}, underWay},
		{"ready", testSnapshot(1, 1, isReady), ready},
		{"ready was said of an older spec", testSnapshot(2, 1, isReady), underWay},
		{"a node's newest spec is not seen yet", behind, underWay},
		{"refused", testSnapshot(1, 1, isRefused), refused},
		{"refused was said of an older spec", testSnapshot(2, 1, isRefused), underWay},
		{"paused", testSnapshot(1, 0, metav1.Condition{Type: api.ClusterReady, Reason: "Paused", ObservedGeneration: 1}), held},
		{"observed", testSnapshot(1, 1, metav1.Condition{Type: api.ClusterReady, Reason: "Observed", ObservedGeneration: 1}), held},
		{"paused was said of an older spec", testSnapshot(2, 0, metav1.Condition{Type: api.ClusterReady, Reason: "Paused", ObservedGeneration: 1}), underWay},
		{"nothing said yet", testSnapshot(1, 1), underWay},
	}
	for _, tt := range tests {
		if got := tt.s.outcome(); got != tt.want {
			t.Errorf("%s: outcome %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Each resource that was applied is waited for by its own conditions, and others are told of at the end.
func TestOutcome_resources(t *testing.T) {
	pool := func(name string, generation int64, kind string, state api.ResourceState) api.Resource {
		p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}}
		p.Status.State, p.Status.ObservedGeneration = state, 1
		if kind != "" {
			p.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Message: "no"}}
		}
		return p
	}
	stalledFor := func(reason string) api.Resource {
		p := pool("mine", 1, api.ConditionStalled, "")
		p.Common().Conditions[0].Reason = reason
		return p
	}
	mine := &applied{resources: map[string]bool{"pool/mine": true}}
	cluster := func(ready metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: api.ClusterReady, Status: ready}
	}
	other := pool("other", 1, api.ConditionStalled, api.ResourcePending)
	for _, tt := range []struct {
		name    string
		applied *applied
		pool    api.Resource
		ready   metav1.ConditionStatus
		report  api.OrchestrationOutcome
		want    outcome
	}{
		{"it is there", mine, pool("mine", 1, api.ConditionReady, api.ResourceOnline), "True", "", ready},
		{"it is there, and the cluster is not well", mine, pool("mine", 1, api.ConditionReady, api.ResourceOnline), "False", "", ready},
		{"it is made", mine, pool("mine", 1, api.ConditionReconciling, api.ResourceCreating), "True", "", underWay},
		{"it is refused", mine, pool("mine", 1, api.ConditionStalled, api.ResourcePending), "True", "", refused},
		{"it was refused, and is changed", mine, pool("mine", 2, api.ConditionStalled, api.ResourcePending), "True", "", underWay},
		{"it was ready, and is changed", mine, pool("mine", 2, api.ConditionReady, api.ResourceOnline), "True", "", underWay},
		{"the cluster was applied after it", mine, stalledFor("NoCluster"), "True", "", underWay},
		{"nothing is made at all", mine, pool("mine", 1, "", ""), "False", api.OutcomeRefused, refused},
		{"it is not in sight", mine, pool("unlike", 1, api.ConditionReady, api.ResourceOnline), "True", "", underWay},
		{"the cluster is, and not the pool", &applied{whole: true}, pool("mine", 1, api.ConditionReconciling, ""), "True", "", ready},
		{"both are", &applied{whole: true, resources: mine.resources}, pool("mine", 1, api.ConditionReady, ""), "False", "", underWay},
		{"both are, and the pool is refused", &applied{whole: true, resources: mine.resources}, pool("mine", 1, api.ConditionStalled, ""), "False", "", refused},
	} {
		s := testSnapshot(1, 1, cluster(tt.ready))
		s.Resources, s.applied = []api.Resource{tt.pool, other}, tt.applied
		s.Cluster.Status.Report = &api.OrchestrationReport{Outcome: tt.report, Decisions: []api.Decision{
			{Object: "pool/other", Verdict: api.VerdictRefuse, Message: "no"}, {Object: "node/n", Verdict: api.VerdictRefuse, Message: "no"},
		}}
		if got := s.outcome(); got != tt.want {
			t.Errorf("%s: outcome %v, want %v", tt.name, got, tt.want)
		}
		if got := s.refusedBeside(); len(got) != 1 || got[0] != "pool/other: no" {
			t.Errorf("%s: told at the end %q", tt.name, got)
		}
		if tt.want == underWay && s.missing() == "" {
			t.Errorf("%s: nothing is missing", tt.name)
		}
	}
}

// TestRefusal: what a cluster that goes on cannot carry out is told once, and nobody is told that nothing was made of the rest.
func TestRefusal(t *testing.T) {
	const word = "EINVAL: osd capability parse failed"
	stalled := []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Message: "Ceph refuses its capabilities: " + word}}
	for _, tt := range []struct {
		outcome api.OrchestrationOutcome
		want    string
	}{
		{api.OutcomeFailed, "parts of ceph cannot be carried out:\n  client/vms2: Ceph refuses its capabilities: " + word +
			"\nThey stay declared and are carried out when possible: correct and apply them again, or delete them"},
		{api.OutcomeRefused, "ceph is refused, and nothing was created:\n  mons: there is one host\n  client/vms2: Ceph refuses its capabilities: " + word},
	} {
		accepted := metav1.Condition{Type: api.ClusterAccepted, Status: metav1.ConditionTrue}
		if tt.outcome == api.OutcomeRefused {
			accepted.Status, accepted.Message = metav1.ConditionFalse, "mons: there is one host"
		}
		s := testSnapshot(1, 1, accepted)
		s.Resources = []api.Resource{
			&api.Client{ObjectMeta: metav1.ObjectMeta{Name: "vms2"}, Status: api.ClientStatus{ResourceStatus: api.ResourceStatus{Conditions: stalled}}},
			&api.Client{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Status: api.ClientStatus{ResourceStatus: api.ResourceStatus{Conditions: stalled}}},
		}
		s.applied = &applied{resources: map[string]bool{"client/vms2": true}}
		s.Cluster.Status.Report = &api.OrchestrationReport{Outcome: tt.outcome, Decisions: []api.Decision{
			{Object: "client/vms2", Verdict: api.VerdictRefuse, Message: "Ceph refuses its capabilities: " + word},
			{Object: "client/vms2", Verdict: api.VerdictWait, Reason: api.ReasonCommandFailed, Message: word},
			{Object: "osd.1", Verdict: api.VerdictSkip, Message: "it stays"},
		}}
		if diff := cmp.Diff(tt.want, refusal("ceph", s).Error()); diff != "" {
			t.Error(diff)
		}
		if got := s.decisions(); len(got) != 1 {
			t.Errorf("told twice: %q", got)
		}
	}
}

// What is refused hides neither the state nor the health.
func TestHeadline_refused(t *testing.T) {
	s := testSnapshot(1, 1, metav1.Condition{Type: api.ClusterAccepted, Status: metav1.ConditionFalse, Message: "config: no"})
	s.Status = &api.StorageStatus{}
	if got := s.headline(); got != "refused: config: no" {
		t.Errorf("before anything is there: %q", got)
	}
	s.Status.Status.Status, s.Status.Status.Health = api.StorageDegraded, "HEALTH_WARN"
	if got := s.headline(); got != "DEGRADED, HEALTH_WARN; refused: config: no" {
		t.Errorf("%q", got)
	}
	s.Status.Status.Message = "HEALTH_WARN: MON_DOWN: 1/3 mons down"
	if got := s.headline(); got != "DEGRADED, HEALTH_WARN: MON_DOWN: 1/3 mons down; refused: config: no" {
		t.Errorf("with a reason: %q", got)
	}
}

func withDaemon(s snapshot, state api.DaemonState, message string) snapshot {
	s.Daemons = []api.Daemon{{
		ObjectMeta: metav1.ObjectMeta{Name: "ceph-osd-0"},
		Spec:       api.DaemonSpec{Type: "ceph-osd", ID: "0", Host: "h1"},
		Status:     api.DaemonStatus{ObservedGeneration: 1, State: state, Message: message},
	}}
	return s
}

// The actions are counted by what they wait for, and the one that waits for a person is named.
func TestSnapshot_actionsText(t *testing.T) {
	s := testSnapshot(1, 1)
	if got := s.actionsText(); got != "" {
		t.Errorf("there is none, and it says %q", got)
	}
	for _, x := range []struct {
		name, waits string
		state       api.ActionState
	}{{"a", "an administrator to approve it", api.ActionPendingApproval}, {"b", "osd.1 to be up", api.ActionRunning}, {"c", "", api.ActionPendingSchedule}, {"d", "", api.ActionPendingSchedule}} {
		s.actions = append(s.actions, &api.Action{
			ObjectMeta: metav1.ObjectMeta{Name: x.name}, Spec: api.ActionSpec{Kind: "daemon.restart", Target: "daemon/x"},
			Status: api.ActionStatus{State: x.state, WaitsFor: x.waits},
		})
	}
	want := "actions: 1 waits for approval, 1 running, 2 wait for their turn: 'holdfast action list'; a (daemon.restart daemon/x) waits for an administrator to approve it: 'holdfast action approve a'"
	if got := s.actionsText(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.actions = s.actions[2:]
	if got, want := s.actionsText(), "actions: 2 wait for their turn: 'holdfast action list'; c (daemon.restart daemon/x) is PendingSchedule"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, output := range []string{"", "json"} {
		var out bytes.Buffer
		p := newPrinter(&out, output)
		p.show("ceph", s)
		p.show("ceph", s)
		if got := strings.Count(out.String(), "2 wait for their turn"); got != 1 {
			t.Errorf("-o %q: told %d times, want once:\n%s", output, got, out.String())
		}
	}
}

func TestPrinter_plainSaysOnlyWhatChanged(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "")
	p.show("ceph", withDaemon(testSnapshot(1, 0), api.DaemonPreparing, ""))
	p.show("ceph", withDaemon(testSnapshot(1, 0), api.DaemonPreparing, ""))
	p.show("ceph", withDaemon(testSnapshot(1, 0), api.DaemonFailed, "mounted at /data"))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"osd.0 on h1: Preparing", "ceph: waiting for the leader", "osd.0 on h1: Failed, mounted at /data"}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(want), out.String())
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], w)
		}
	}
}

// What only lasts longer is told once, and a list of many things does not fill the screen.
func TestPrinter_countersAreNotNew(t *testing.T) {
	stuck := func(seconds int, next string) snapshot {
		s := testSnapshot(1, 1)
		var detail []string
		for i := range 40 {
			detail = append(detail, fmt.Sprintf("pg 1.%x is stuck undersized for %ds, current state active+undersized, last acting [0,1]", i, seconds))
		}
		s.Status = &api.StorageStatus{Status: api.StorageStatusStatus{Checks: []api.HealthCheck{
			{Code: "PG_DEGRADED", Severity: "HEALTH_WARN", Message: "degraded", Detail: detail, Next: next},
		}}}
		return s
	}
	for _, output := range []string{"", "json"} {
		var out bytes.Buffer
		p := newPrinter(&out, output)
		for _, seconds := range []int{83, 84, 3600} {
			p.show("ceph", stuck(seconds, "wait"))
			if got := strings.Count(out.String(), "PG_DEGRADED"); got != 1 {
				t.Errorf("-o %q: told %d times, want once", output, got)
			}
		}
		p.show("ceph", stuck(85, "add a host"))
		if got := strings.Count(out.String(), "PG_DEGRADED"); got != 2 || !strings.Contains(out.String(), "Next: add a host") {
			t.Errorf("-o %q: told %d times, want twice", output, got)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(line)); output == "" && n > 420 {
				t.Errorf("a line of %d characters", n)
			}
		}
	}
}

func TestPrinter_jsonIsOneObjectALine(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "json")
	p.show("ceph", withDaemon(testSnapshot(1, 0), api.DaemonRunning, ""))
	var got struct {
		Cluster string
		Objects []line
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if got.Cluster != "ceph" || len(got.Objects) != 1 || got.Objects[0].State != "Running" {
		t.Errorf("got %+v", got)
	}
}

func TestPicture_fitsTheTerminal(t *testing.T) {
	rows := picture("ceph", withDaemon(testSnapshot(1, 0), api.DaemonRunning, strings.Repeat("x", 300)), 3*time.Second)
	if len(rows) != 2 {
		t.Fatalf("got %d rows, want 2: %q", len(rows), rows)
	}
	fitted := screen.Fit(rows, 80)
	for _, row := range fitted {
		if n := len([]rune(row)); n > 80 {
			t.Errorf("row has %d columns, and the terminal 80", n)
		}
	}
	if n := strings.Count(strings.Join(fitted, ""), "x"); n != 300 {
		t.Errorf("of a message of 300 letters %d are there", n)
	}
}

func TestLines_checks(t *testing.T) {
	s := testSnapshot(1, 1)
	s.Status = &api.StorageStatus{Status: api.StorageStatusStatus{Checks: []api.HealthCheck{
		{Code: "OSD_NEARFULL", Severity: "HEALTH_WARN", Message: "1 nearfull osd(s)", Detail: []string{"osd.0 is near full"}, Next: "add disks"},
	}}}
	want := []line{{"check/OSD_NEARFULL", "", "HEALTH_WARN", "", "1 nearfull osd(s) (osd.0 is near full). Next: add disks"}}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Error(diff)
	}
}

func TestPicture_counts(t *testing.T) {
	s := testSnapshot(1, 1)
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s.Status = &api.StorageStatus{Status: api.StorageStatusStatus{
		Status: api.StorageOffline, Health: "HEALTH_OK", Message: "no quorum", StaleSince: &since, NodesDown: 1, AgentsDown: 2,
		Daemons: []api.DaemonCount{{Type: "ceph-mon", Version: "16.2.15", Wanted: 3, Running: 2}, {Type: "ceph-osd", Wanted: 1}},
	}}
	rows := picture("ceph", s, 0)
	want := []string{
		"ceph  OFFLINE, HEALTH_OK (reported before 2026-01-02T03:04:05Z): no quorum  (0s)",
		"  running: ceph-mon 2/3 16.2.15, ceph-osd 0/1; nodes down: 1; agents disconnected: 2 (their daemons may still run)",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

// TestPicture_many: of many daemons those have rows that are not as desired, and they come first of all.
func TestPicture_many(t *testing.T) {
	s := testSnapshot(1, 1)
	for i := range 40 {
		state := api.DaemonRunning
		if i == 38 {
			state = api.DaemonBackOff
		}
		d := api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: fmt.Sprint(i), Host: "h1"}}
		d.Status.State, d.Status.ObservedGeneration = state, 1
		s.Daemons = append(s.Daemons, d)
	}
	if rows := picture("ceph", s, 0); len(rows) != 3 || !strings.HasPrefix(rows[1], "  ✗ osd.38") ||
		rows[2] != "  ! osd: 39 of 40 run and serve" {
		t.Errorf("%q", rows)
	}
	s.Daemons = s.Daemons[20:]
	if rows := picture("ceph", s, 0); len(rows) != 21 || !strings.HasPrefix(rows[1], "  ✗ osd.38") {
		t.Errorf("%q", rows)
	}
}

func TestFit_leavesTheCursorAlone(t *testing.T) {
	if got := screen.Fit([]string{"osd.0: a\n\x1b[2Jb"}, 80)[0]; got != "osd.0: a  [2Jb" {
		t.Errorf("%q", got)
	}
}
