package action_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var testKinds = map[string]action.Kind{
	"test.shared":    {Name: "test.shared", Executor: api.ByLeader, Mode: action.Shared, Steps: []string{"one"}},
	"test.rolling":   {Name: "test.rolling", Executor: api.ByLeader, Mode: action.Rolling, Steps: []string{"one"}},
	"test.exclusive": {Name: "test.exclusive", Executor: api.ByLeader, Mode: action.Exclusive, Steps: []string{"one"}},
	"test.agent":     {Name: "test.agent", Executor: api.ByAgent, Mode: action.Shared, Steps: []string{"one"}, Timeout: time.Hour},
	"test.beside":    {Name: "test.beside", Executor: api.ByAgent, Mode: action.Beside, Steps: []string{"one"}, KeepFor: time.Minute},
}

// scheduled reads "name kind cluster host state" with - for none; later lines are younger by a second.
func scheduled(t *testing.T, lines ...string) []*api.Action {
	t.Helper()
	var all []*api.Action
	for i, line := range lines {
		f := strings.Fields(strings.ReplaceAll(line, " -", " "+"\x00"))
		if len(f) != 5 {
			t.Fatalf("%q", line)
		}
		for i := range f {
			f[i] = strings.Trim(f[i], "\x00")
		}
		a := &api.Action{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f[0], CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(i) * time.Second))},
			Spec:       api.ActionSpec{Kind: "test." + f[1], Target: "x", Cluster: f[2], Host: f[3], Approval: api.ApprovalGranted, Want: api.WantDone},
			Status:     api.ActionStatus{State: api.ActionState(f[4])},
		}
		if a.Status.State == api.ActionRunning {
			a.Status.Started = &metav1.Time{Time: epoch}
		}
		all = append(all, a)
	}
	return all
}

func facts(after time.Duration) action.Facts {
	return action.Facts{
		Now: epoch.Add(after), Kinds: testKinds, Hosts: map[string]action.HostFacts{"h1": {}, "h2": {}, "dead": {Silent: true}, "hushed": {Silent: true, Since: epoch.Add(30 * time.Second)}, "anew": {Joined: epoch.Add(time.Minute)}},
		Concern: map[string][]string{"h1": {"cluster default/c"}, "h2": {"cluster default/c", "cluster default/d"}, "dead": {"cluster default/d"}},
	}
}

// outcome writes what a schedule makes of the actions as "name state: waits for", one for each that changes.
func outcome(actions []*api.Action, f action.Facts) string {
	var lines []string
	for _, t := range action.Schedule(actions, f) {
		line := t.Action.Name + " " + string(t.Status.State)
		if t.Status.WaitsFor != "" {
			line += ": " + t.Status.WaitsFor
		} else if t.Status.State.Final() {
			line += ": " + t.Status.Message
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestSchedule_turns(t *testing.T) {
	const waits = "PendingSchedule"
	for _, test := range []struct {
		name    string
		actions []string
		want    string
	}{
		{"a new one gets its turn at once", []string{"a shared c - -"}, "a New"},
		{
			"beside anything",
			[]string{"a exclusive c h1 Running", "b exclusive c h1 " + waits, "c beside c h1 " + waits, "d beside c h1 " + waits},
			"b PendingSchedule: action a (test.exclusive x), which is in progress: one action at a time on host h1; cancel that with 'holdfast action cancel a'\nc New\nd New",
		},
		{"nothing waits for what runs beside", []string{"a beside c h1 Running", "b exclusive c h1 " + waits}, "b New"},
		{"different hosts side by side", []string{"a shared c h1 " + waits, "b shared c h2 " + waits}, "a New\nb New"},
		{
			"one host, the oldest first",
			[]string{"a shared c h1 " + waits, "b shared d h1 " + waits},
			"a New\nb PendingSchedule: action a (test.shared x), which is in progress: one action at a time on host h1; cancel that with 'holdfast action cancel a'",
		},
		{
			"a host that is busy",
			[]string{"a shared c h1 " + waits, "b shared d h1 Running"},
			"a PendingSchedule: action b (test.shared x), which is in progress: one action at a time on host h1; cancel that with 'holdfast action cancel b'",
		},
		{
			"rolling ones follow each other",
			[]string{"a rolling c h1 " + waits, "b rolling c h2 " + waits, "s shared c - " + waits},
			"a New\nb PendingSchedule: action a (test.rolling x), which is in progress: only one action that reduces the redundancy of cluster default/c runs at a time; cancel that with 'holdfast action cancel a'\ns New",
		},
		{"rolling ones of two clusters do not", []string{"a rolling c h1 " + waits, "b rolling d h2 " + waits}, "a New\nb New"},
		{
			"one on a host counts for the clusters of the host",
			[]string{"a rolling - h1 " + waits, "b rolling d h2 " + waits, "e rolling - h2 " + waits, "f rolling - dead " + waits},
			"a New\nb New\n" +
				"e PendingSchedule: action a (test.rolling x), which is in progress: only one action that reduces the redundancy of cluster default/c runs at a time; cancel that with 'holdfast action cancel a'\n" +
				"f PendingSchedule: action e (test.rolling x), which is before it in the queue: only one action that reduces the redundancy of cluster default/d runs at a time; cancel that with 'holdfast action cancel e'",
		},
		{
			"two hosts that share a cluster",
			[]string{"a rolling - h1 " + waits, "b rolling - h2 " + waits},
			"a New\nb PendingSchedule: action a (test.rolling x), which is in progress: only one action that reduces the redundancy of cluster default/c runs at a time; cancel that with 'holdfast action cancel a'",
		},
		{"two hosts that share none", []string{"a rolling - h1 " + waits, "b rolling - dead " + waits}, "a New\nb New"},
		{
			"one of neither cluster nor host counts for all",
			[]string{"a rolling - - " + waits, "b rolling d h2 " + waits},
			"a New\nb PendingSchedule: action a (test.rolling x), which is in progress: only one action that reduces the redundancy runs at a time; cancel that with 'holdfast action cancel a'",
		},
		{
			"an exclusive one waits for all",
			[]string{"a shared c h1 Running", "x exclusive c - " + waits},
			"x PendingSchedule: action a (test.shared x), which is in progress: test.exclusive runs alone; cancel that with 'holdfast action cancel a'",
		},
		{
			"nothing overtakes an exclusive one",
			[]string{"a shared c h1 Running", "x exclusive c - " + waits, "b shared c h2 " + waits, "o shared d h2 " + waits},
			"x PendingSchedule: action a (test.shared x), which is in progress: test.exclusive runs alone; cancel that with 'holdfast action cancel a'\n" +
				"b PendingSchedule: action x (test.exclusive x), which is before it in the queue: no other action runs beside test.exclusive; cancel that with 'holdfast action cancel x'\n" +
				"o PendingSchedule: action b (test.shared x), which is before it in the queue: one action at a time on host h2; cancel that with 'holdfast action cancel b'",
		},
		{
			"a silent agent is in nobody's way",
			[]string{"a agent c dead New", "b shared c dead " + waits},
			"a PendingSchedule: the agent of host dead, which is disconnected\nb New",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outcome(scheduled(t, test.actions...), facts(time.Minute)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestSchedule_ends(t *testing.T) {
	change := func(f func(*api.Action)) func(*api.Action) { return f }
	for _, test := range []struct {
		name   string
		action string
		change func(*api.Action)
		after  time.Duration
		want   string
	}{
		{"unknown kind", "a strange c - -", nil, time.Minute, `a Failed: kind "test.strange" does not exist; choose one of test.agent, test.beside, test.exclusive, test.rolling, test.shared`},
		{"unknown kind that runs", "a strange c - Running", nil, time.Minute, `a Lost: this version of Holdfast does not know the kind "test.strange", so the result is unknown; it knows test.agent, test.beside, test.exclusive, test.rolling, test.shared`},
		{"needs approval", "a shared c - -", change(func(a *api.Action) { a.Spec.Approval = api.ApprovalRequired }), time.Minute, "a PendingApproval: an administrator to approve it"},
		{"granted", "a shared c - PendingApproval", nil, time.Minute, "a New"},
		{"rejected", "a shared c - PendingApproval", change(func(a *api.Action) {
			a.Spec.Approval = api.ApprovalRejected
			a.Annotations = map[string]string{api.AnnotationApprover: "jo"}
		}), time.Minute, "a Cancelled: rejected by jo"},
		{"cancelled while it waits", "a shared c - PendingSchedule", change(func(a *api.Action) { a.Spec.Want = api.WantCancelled }), time.Minute, "a Cancelled: cancelled before it began"},
		{"never approved", "a shared c - PendingApproval", change(func(a *api.Action) { a.Spec.Approval = api.ApprovalRequired }), 25 * time.Hour, "a Failed: not approved within 24h0m0s"},
		{"its own expiry", "a agent c dead PendingSchedule", change(func(a *api.Action) {
			a.Spec.ExpiresAfter.Duration = time.Minute
			a.Status.WaitsFor = "the agent of host dead, which is disconnected"
		}), 2 * time.Minute, "a Failed: not begun within 1m0s; it waited for: the agent of host dead, which is disconnected"},
		{"a leader's cancelled New is for who carries it out", "a shared c - New", change(func(a *api.Action) { a.Spec.Want = api.WantCancelled }), time.Minute, ""},
		{"an agent's cancelled New", "a agent c h1 New", change(func(a *api.Action) { a.Spec.Want = api.WantCancelled }), time.Minute, "a Cancelled: cancelled before it began"},
		{"a New that its agent, which is heard, may still begin", "a agent c h1 New", nil, 23 * time.Hour, ""},
		{"a New that its agent, which is heard, never began", "a agent c h1 New", nil, 25 * time.Hour, "a Failed: not begun within 24h0m0s"},
		{"a New whose agent is silent waits for its turn again", "a agent c dead New", nil, time.Minute, "a PendingSchedule: the agent of host dead, which is disconnected"},
		{"an agent at work is left alone", "a agent c h1 Running", nil, time.Hour, ""},
		{"an agent undoing is left alone", "a agent c h1 Running", nil, 90 * time.Minute, ""},
		{"an agent that does not end it", "a agent c h1 Running", nil, 123 * time.Minute, "a Lost: the agent of host h1 did not end it within 1h0m0s: the result is unknown"},
		{
			"an agent that does not say when it began", "a agent c h1 Running",
			change(func(a *api.Action) { a.Status.Started = nil }), 123 * time.Minute,
			"a Lost: the agent of host h1 did not end it within 1h0m0s: the result is unknown",
		},
		{
			"a silent agent", "a agent c dead Running", change(func(a *api.Action) { a.Status.WaitsFor = "the daemon to answer" }), time.Hour,
			"a Running: the agent of host dead, which is disconnected",
		},
		{
			"an agent since when it is known to be silent", "a agent c hushed Running", change(func(a *api.Action) { a.Status.WaitsFor = "the daemon to answer" }), time.Hour,
			"a Running: the agent of host hushed, which is disconnected since 2026-01-01T00:00:30Z",
		},
		{
			"an agent that is heard again", "a agent c h1 Running", change(func(a *api.Action) {
				a.Status.WaitsFor = "the agent of host h1, which is disconnected since 2026-01-01T00:00:30Z"
			}), time.Hour,
			"a Running",
		},
		{"an agent that is heard waits for what it says", "a agent c h1 Running", change(func(a *api.Action) { a.Status.WaitsFor = "the daemon to answer" }), time.Hour, ""},
		{"a silent agent whose time is over", "a agent c dead Running", nil, 63 * time.Minute, "a Lost: the agent of host dead did not end it within 1h0m0s: the result is unknown"},
		{"no such host", "a agent c h9 -", nil, time.Minute, "a Failed: host h9 does not exist: see 'holdfast get hosts'"},
		{"no host", "a agent c - -", nil, time.Minute, "a Failed: test.agent needs spec.host, whose agent carries it out"},
		{"its host was removed", "a agent c h9 Running", nil, time.Minute, "a Lost: host h9 was removed while its agent carried out the action: the result is unknown"},
		{"its host was removed and joined again", "a agent c anew Running", nil, 2 * time.Minute, "a Lost: host anew was removed while its agent carried out the action: the result is unknown"},
		{"what has ended stays", "a strange c h9 Done", nil, 99 * time.Hour, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := scheduled(t, test.action)
			if test.change != nil {
				test.change(all[0])
			}
			if got := outcome(all, facts(test.after)); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestSchedule_actionLost: an agent that is silent has as long as is set to end an action whose time is over.
func TestSchedule_actionLost(t *testing.T) {
	for _, set := range []waits.Waits{{}, {ActionLost: 10 * time.Second}} {
		f, over := facts(0), time.Hour+set.OrDefault().ActionLost
		f.Waits = set
		all := scheduled(t, "a agent c dead Running")
		began := all[0].Status.Started.Time
		f.Now = began.Add(over)
		if got := outcome(all, f); strings.Contains(got, "Lost") {
			t.Errorf("%v: too soon: %s", set, got)
		}
		f.Now = began.Add(over + time.Second)
		if got := outcome(all, f); !strings.Contains(got, "a Lost: the agent of host dead did not end it within 1h0m0s") {
			t.Errorf("%v: %s", set, got)
		}
	}
}

func TestExpendable(t *testing.T) {
	var all []*api.Action
	for i := range 250 {
		a := newAction(fmt.Sprint(i))
		a.Status.State = api.ActionDone
		a.Status.Finished = &metav1.Time{Time: epoch.Add(time.Duration(i) * time.Hour)}
		all = append(all, a)
	}
	running := newAction("running")
	running.Status.State = api.ActionRunning
	all = append(all, running)
	if got := len(action.Expendable(all, nil, epoch.Add(100*time.Hour))); got != 50 {
		t.Errorf("of 250 that ended lately %d can go", got)
	}
	if got := len(action.Expendable(all[:100], nil, epoch.Add(8*24*time.Hour))); got != 24 {
		t.Errorf("8 days after the first of one each hour %d can go", got)
	}
	if got := action.Expendable(all[200:], nil, epoch.Add(99*24*time.Hour)); len(got) != 50 {
		t.Errorf("long after %d can go", len(got))
	}
	short := newAction("short", func(a *api.Action) { a.Spec.Kind = "test.beside" })
	short.Status.State, short.Status.Finished = api.ActionDone, &metav1.Time{Time: epoch}
	for after, want := range map[time.Duration]int{time.Minute: 0, time.Minute + time.Second: 1} {
		if got := action.Expendable(append(all[200:250:250], short), testKinds, epoch.Add(after)); len(got) != want {
			t.Errorf("%s after the end of one that is kept for a minute %d can go", after, len(got))
		}
	}
}
