package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

var now = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// healthy is a server of three on which all is well.
func healthy() *Facts {
	host := func(name string) api.Host {
		return api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: api.HostStatus{AgentVersion: "1", Conditions: []metav1.Condition{
			{Type: api.HostAgentConnected, Status: metav1.ConditionTrue}, {Type: api.HostClockInSync, Status: metav1.ConditionTrue},
		}}}
	}
	cluster := api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	cluster.Status.Conditions = []metav1.Condition{{Type: api.ClusterReady, Status: metav1.ConditionTrue}}
	return &Facts{
		Now: now, Version: "1", DataDir: "/d", Role: "server", Host: "h1",
		Quorum: &quorumview.Status{Want: 3, Spare: 1, Members: []quorumview.Member{
			{Name: "h1", Voter: true, Answers: true}, {Name: "h2", Voter: true, Answers: true}, {Name: "h3", Voter: true, Answers: true},
		}},
		Servers:  []Server{{Name: "h1", Known: true, End: now.Add(day)}, {Name: "h2"}, {Name: "h3"}},
		Hosts:    []api.Host{host("h1"), host("h2"), host("h3")},
		Clusters: []api.StorageCluster{cluster},
		Statuses: []api.StorageStatus{{ObjectMeta: cluster.ObjectMeta, Status: api.StorageStatusStatus{Status: api.StorageOnline}}},
		Daemons: []api.Daemon{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-mon-a"}, Spec: api.DaemonSpec{Host: "h1"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-mon-b"}, Spec: api.DaemonSpec{Host: "h2"}},
		},
		Database: 10 << 20, Quota: 2 << 30,
		Local: Local{
			Free: 50 << 30, Size: 100 << 30, Snapshot: now.Add(-time.Hour),
			Certificates: []Certificate{
				{"/d/pki/server.crt", now.Add(-100 * day), now.Add(265 * day), false},
				{"/d/pki/ca.crt", now.Add(-100 * day), now.Add(3550 * day), true},
			},
			Processes: map[string]int{"default.a-mon-a": 12}, Records: []string{"default.a-mon-a"},
		},
	}
}

func TestExamine_healthy(t *testing.T) {
	findings := Examine(healthy())
	if len(findings) != len(checks)-1 { // without the operator, which Kubernetes has
		t.Errorf("%d findings of %d checks", len(findings), len(checks))
	}
	for _, f := range findings {
		if f.Level != OK || f.Message == "" {
			t.Errorf("got %+v", f)
		}
	}
}

// TestCheckAgents_pod: the remedy for a silent host in Kubernetes is what Kubernetes knows of its pod.
func TestCheckAgents_pod(t *testing.T) {
	f := healthy()
	f.Hosts[1].Status.Conditions[0].Status = metav1.ConditionFalse
	f.Hosts[1].Status.Conditions = append(f.Hosts[1].Status.Conditions,
		metav1.Condition{Type: api.HostAgentPod, Status: metav1.ConditionFalse, Message: "its pod fails"})
	found := checkAgents(f)
	if len(found) != 1 || !strings.HasPrefix(found[0].Remedy, "its pod fails") || strings.Contains(found[0].Remedy, "journalctl") {
		t.Errorf("%+v", found)
	}
}

// TestExamine: each thing that is wrong is found once, with a remedy, and nothing else is.
func TestExamine(t *testing.T) {
	action := func(state api.ActionState, attempts int32) []api.Action {
		return []api.Action{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/h1"},
			Status: api.ActionStatus{State: state, Attempts: attempts, Message: "why", Finished: &metav1.Time{Time: now.Add(-time.Hour)}},
		}}
	}
	down := errors.New("connection refused")
	for _, test := range []struct {
		name  string
		spoil func(f *Facts)
		level Level
		check string
		want  string
	}{
		{"one server of five is down", func(f *Facts) {
			f.Servers = append(f.Servers, Server{Name: "h4"}, Server{Name: "h5", Address: "10.0.0.5:7440", Err: down})
		}, Warn, "quorum", "the server h5 (10.0.0.5:7440) is not ready: connection refused"},
		{"a standby serves nothing", func(f *Facts) {
			f.Servers = append(f.Servers, Server{Name: "h4", Address: "10.0.0.4:7440", Err: down}, Server{Name: "h5", Address: "10.0.0.5:7440", Err: down})
			f.Quorum.Standbys = []string{"h4"}
		}, Warn, "quorum", "the server h5 "},
		{"a member of etcd whose disk hangs", func(f *Facts) {
			f.Quorum.Members[1].Answers, f.Quorum.Members[1].Problem, f.Servers[1].Err = false, "its disk hangs", down
		}, Warn, "quorum", "the member of etcd on the server h2: its disk hangs"},
		{"a learner is being filled", func(f *Facts) {
			f.Quorum.Members = append(f.Quorum.Members, quorumview.Member{Name: "h4", Problem: "it is being filled"})
			f.Servers = append(f.Servers, Server{Name: "h5", Err: down})
		}, Warn, "quorum", "the server h5 "},
		{"a standby without room", func(f *Facts) {
			f.Quorum.Full = []quorumview.Full{{Name: "h5", Problem: "it cannot hold a member of etcd: 100 MiB are free"}}
			f.Servers = append(f.Servers, Server{Name: "h5", Address: "10.0.0.5:7440", Err: down})
		}, Warn, "quorum", "the server h5: it cannot hold a member of etcd: 100 MiB are free"},
		{"no server leads", func(f *Facts) { f.Quorum, f.QuorumErr = nil, down }, Fail, "quorum", "the state of the members of etcd is unknown: connection refused"},
		{"a new leader", func(f *Facts) {
			f.Quorum, f.QuorumErr = nil, fmt.Errorf("%w: %w", quorumview.ErrUnknown, quorumview.ErrUnseen)
			f.Servers = append(f.Servers, Server{Name: "h4", Address: "10.0.0.4:7440", Err: down}) // a standby, for all that is known
		}, Warn, "quorum", "the leader of etcd has not observed its members yet"},
		{"two servers", func(f *Facts) { f.Servers, f.Quorum.Spare = f.Servers[:2], 0 }, Warn, "quorum", "one more failed member of etcd stops the control plane"},
		{"a server in maintenance", func(f *Facts) { f.Hosts[1].Spec.Mode = api.HostMaintenance }, Warn, "quorum", "in maintenance: h2"},
		{"large database", func(f *Facts) { f.Database = f.Quota * 3 / 4 }, Warn, "database", "75 %"},
		{"full database", func(f *Facts) { f.Database = f.Quota }, Fail, "database", "100 %"},
		{"clock of a server", func(f *Facts) { f.Servers[0].Skew = -time.Minute }, Fail, "clock", "1m0s apart"},
		{"clock of a host", func(f *Facts) {
			f.Hosts[1].Status.Conditions[1] = metav1.Condition{Type: api.HostClockInSync, Status: metav1.ConditionFalse, Message: "behind"}
		}, Fail, "clock", "host h2: behind"},
		{"silent agent", func(f *Facts) { f.Hosts[1].Status.Conditions[0].Status = metav1.ConditionFalse }, Fail, "agents", "the agent of host h2 has been disconnected"},
		{"silent agent in maintenance", func(f *Facts) {
			f.Hosts[1].Spec.Mode, f.Quorum.Members = api.HostMaintenance, f.Quorum.Members[:1] // its member gave up its seat
			f.Hosts[1].Status.Conditions[0].Status = metav1.ConditionFalse
		}, Warn, "agents", "(its mode is Maintenance)"},
		{"another version", func(f *Facts) { f.Hosts[2].Status.AgentVersion = "0" }, Warn, "versions", "host h3 runs holdfast 0"},
		{"cluster not ready", func(f *Facts) {
			f.Clusters[0].Status.Conditions[0] = metav1.Condition{Type: api.ClusterReady, Status: metav1.ConditionFalse, Message: "osd.1 is down"}
		}, Warn, "clusters", "default/a is not ready: osd.1 is down"},
		{"cluster offline", func(f *Facts) { f.Statuses[0].Status.Status = api.StorageOffline }, Fail, "clusters", "is OFFLINE"},
		{"cluster paused", func(f *Facts) { f.Clusters[0].Spec.Mode = api.ClusterPaused }, Warn, "clusters", "nothing is repaired"},
		{"approval", func(f *Facts) { f.Actions = action(api.ActionPendingApproval, 0) }, Warn, "actions", "waits for approval"},
		{"tried again and again", func(f *Facts) { f.Actions = action(api.ActionRunning, 9) }, Warn, "actions", "was tried 9 times: why"},
		{"failed action", func(f *Facts) { f.Actions = action(api.ActionFailed, 0) }, Warn, "actions", "ended as Failed: why"},
		{"token for a server", func(f *Facts) { f.Tokens = []Token{{"join-token-1", "server", now.Add(time.Hour), false}} }, Warn, "tokens", "a join token for servers"},
		{"disk nearly full", func(f *Facts) { f.Local.Free = 3 << 30 }, Warn, "disk", "3 GiB free for /d, 3 %"},
		{"disk full", func(f *Facts) { f.Local.Free = 1 << 20 }, Fail, "disk", "1 MiB free"},
		{"not renewed", func(f *Facts) { f.Local.Certificates[0].Ends = now.Add(10 * day) }, Warn, "certificates", "should have been renewed"},
		{"ended", func(f *Facts) { f.Local.Certificates[0].Ends = now.Add(-day) }, Fail, "certificates", "/d/pki/server.crt expired at 2026-11-20"},
		{"old authority", func(f *Facts) { f.Local.Certificates[1].Ends = now.Add(100 * day) }, Warn, "certificates", "the authority /d/pki/ca.crt expires in 100 days"},
		{"shown certificate ended", func(f *Facts) { f.Servers[0].End = now.Add(-day) }, Fail, "certificates", "the certificate of server h1 expired"},
		{"exposed", func(f *Facts) {
			f.Local.Exposed = []string{"/d/pki/ca.key (mode 0644)", "/d/pki (mode 0755)"}
		}, Fail, "keys", "/d/pki/ca.key (mode 0644), and 1 more"},
		{"stray process", func(f *Facts) { f.Local.Processes["default.a-mon-b"] = 99 }, Fail, "strays", "process 99 is the daemon default.a-mon-b"},
		{
			"two machines, said by the leader", func(f *Facts) { f.Hosts[1].Status.Conditions = append(f.Hosts[1].Status.Conditions, twoMachines("h2")) },
			Fail, "machines", "two machines run as host h2: 10.0.0.4 (boot id b1) and 10.0.0.9 (boot id b2)",
		},
		{"leftover", func(f *Facts) { f.Local.Records = append(f.Local.Records, "default.old") }, Warn, "strays", "default.old"},
		{"damaged files of etcd", func(f *Facts) {
			f.Local.Damage = &damaged.Note{Time: now, File: "member/snap/db", Problem: "cut off"}
		}, Fail, "files", "are damaged since"},
		{"damaged files that were replaced", func(f *Facts) {
			f.Local.Damage = &damaged.Note{Time: now, File: "member/snap/db", Problem: "cut off", Kept: "etcd.damaged-1"}
		}, Warn, "files", "got the data of the others"},
		{"no backup", func(f *Facts) { f.Local.Snapshot = time.Time{} }, Warn, "snapshots", "no backup"},
		{"old backup", func(f *Facts) { f.Local.Snapshot = now.Add(-3 * day) }, Warn, "snapshots", "is 3 days old"},
		{"not root", func(f *Facts) { f.Local.Problems = []string{"permission denied"} }, Warn, "files", "permission denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := healthy()
			test.spoil(f)
			var bad []Finding
			for _, found := range Examine(f) {
				if found.Level != OK {
					bad = append(bad, found)
				}
			}
			if len(bad) != 1 || bad[0].Level != test.level || bad[0].Check != test.check || !strings.Contains(bad[0].Message, test.want) || bad[0].Remedy == "" {
				t.Errorf("got %+v, want %s of %s with %q", bad, test.level, test.check, test.want)
			}
			if Failed(bad) != (test.level == Fail) {
				t.Errorf("Failed is %v", Failed(bad))
			}
		})
	}
}

func twoMachines(host string) metav1.Condition {
	return metav1.Condition{
		Type: api.HostSingleMachine, Status: metav1.ConditionFalse, Reason: "TwoMachines",
		Message: "two machines run as host " + host + ": 10.0.0.4 (boot id b1) and 10.0.0.9 (boot id b2)",
	}
}

// TestExamine_twins: on each of two machines that run as one host, with or without the API, it is said, and nothing is offered for tidying up.
func TestExamine_twins(t *testing.T) {
	local := []instance.Instance{{Address: "10.0.0.4", Boot: "b1"}, {Address: "10.0.0.9", Boot: "b2"}}
	for name, spoil := range map[string]func(*Facts){
		"by the leader": func(f *Facts) { f.Hosts[0].Status.Conditions = append(f.Hosts[0].Status.Conditions, twoMachines("h1")) },
		"by its agent":  func(f *Facts) { f.Local.Twins = local },
		"without the API": func(f *Facts) {
			f.Local.Twins, f.Unreachable, f.AsHost, f.Role, f.Hosts = local, errors.New("no kubeconfig"), true, "agent", nil
		},
	} {
		f := healthy()
		f.Local.Processes["default.a-mon-b"], f.Local.Records = 99, append(f.Local.Records, "default.old")
		spoil(f)
		said := false
		for _, found := range Examine(f) {
			said = said || found.Check == "machines" && found.Level == Fail &&
				strings.Contains(found.Message, "two machines run as host h1: 10.0.0.4 (boot id b1) and 10.0.0.9 (boot id b2)") &&
				strings.Contains(found.Remedy, "systemctl disable --now holdfast")
			if found.Check == "strays" && found.Level != Skipped {
				t.Errorf("%s: it offers to tidy up: %+v", name, found)
			}
		}
		if !said {
			t.Errorf("%s: it does not say it: %+v", name, Examine(f))
		}
	}
}

// TestLook_twins: what the agent wrote down of another machine is read.
func TestLook_twins(t *testing.T) {
	f := &Facts{DataDir: t.TempDir()}
	f.twins()
	if len(f.Local.Twins) != 0 || len(f.Local.Problems) != 0 {
		t.Errorf("without a note: %+v", f.Local)
	}
	if err := os.MkdirAll(filepath.Join(f.DataDir, "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	note := `{"machine":"m","self":{"boot":"b1","process":"p1","address":"10.0.0.4"},"other":{"boot":"b2","process":"p2","address":"10.0.0.9"}}`
	if err := os.WriteFile(filepath.Join(f.DataDir, "agent", instance.NoteFile), []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	if f.twins(); len(f.Local.Twins) != 2 || f.Local.Twins[1].Address != "10.0.0.9" {
		t.Errorf("found %+v", f.Local)
	}
}

// TestExamine_notWrong: what only looks like something to mend.
func TestExamine_notWrong(t *testing.T) {
	f := healthy()
	f.Tokens = []Token{{"a", "server", now.Add(-time.Hour), false}, {"b", "server", now.Add(time.Hour), true}, {"c", "agent", now.Add(time.Hour), false}}
	f.Servers = f.Servers[:1]
	f.Actions = []api.Action{
		{Status: api.ActionStatus{State: api.ActionFailed, Finished: &metav1.Time{Time: now.Add(-3 * day)}}},
		refusedAction(2*time.Hour, time.Hour), refusedAction(time.Minute, 3*time.Second), // long ago, and while somebody listened
	}
	for _, found := range Examine(f) {
		if found.Level != OK {
			t.Errorf("got %+v", found)
		}
	}
}

// refusedAction is one that was refused before its first step so long ago, and so long after it was asked for.
func refusedAction(ago, after time.Duration) api.Action {
	return api.Action{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-ago - after))}, Status: api.ActionStatus{
		State: api.ActionFailed, Finished: &metav1.Time{Time: now.Add(-ago)},
		Conditions: []metav1.Condition{{Type: api.ActionEffective, Status: metav1.ConditionFalse, Reason: "Refused"}},
	}}
}

// TestExamine_refusedLater: who asked for what was refused after a while may have gone away.
func TestExamine_refusedLater(t *testing.T) {
	f := healthy()
	f.Actions = []api.Action{refusedAction(time.Minute, time.Hour)}
	if !slices.ContainsFunc(Examine(f), func(found Finding) bool { return found.Check == "actions" && found.Level == Warn }) {
		t.Error("it is not told")
	}
}

// TestExamine_unreachable: without the API, this machine is checked, and what could not be is said.
func TestExamine_unreachable(t *testing.T) {
	f := &Facts{Now: now, DataDir: "/d", Role: "server", Unreachable: errors.New("connection refused"), Local: healthy().Local}
	levels := map[string]Level{}
	for _, found := range Examine(f) {
		levels[found.Check] = found.Level
	}
	for check, want := range map[string]Level{
		"api": Fail, "quorum": Skipped, "clusters": Skipped, "strays": Skipped, "disk": OK, "certificates": OK, "snapshots": OK,
	} {
		if levels[check] != want {
			t.Errorf("%s: got %s, want %s", check, levels[check], want)
		}
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		20 * time.Second: "20s", 2 * time.Minute: "2m", 70 * time.Second: "1m10s", time.Hour: "1h0m", 3*time.Hour + time.Minute: "3 hours", 5 * day: "5 days",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// TestExamine_unreachableServer: what is said on a server that cannot reach the API. One server that is ready proves a quorum, and nothing is to be restored
// then, however many are not: standbys never are.
func TestExamine_unreachableServer(t *testing.T) {
	refused, silent := errors.New("connection refused"), errors.New("i/o timeout")
	own := Server{Address: "10.0.0.1:7440", Own: true, Reached: true, Err: refused}
	works, stopped := Server{Address: "10.0.0.2:7440", Reached: true}, Server{Address: "10.0.0.3:7440", Reached: true, Err: refused}
	standby, gone := Server{Address: "10.0.0.4:7440", Reached: true, Err: refused}, Server{Address: "10.0.0.5:7440", Err: silent}
	const restore, network = "if more than half of the members of etcd are lost for good, run 'holdfast restore --from-data'", "connected to the network"
	for _, tt := range []struct {
		name      string
		servers   []Server
		says, not []string
	}{
		{"one of four is ready", []Server{own, works, stopped, standby}, []string{"1 of 4 are", "the control plane works", "Only the server of this machine"}, []string{"restore", network}},
		{
			"all others are down",
			[]Server{own, stopped, standby},
			[]string{"0 of 3 are", "the server at 10.0.0.3:7440 is not ready: connection refused", "systemctl start holdfast", restore},
			[]string{network, "the control plane works"},
		},
		{"no other can be dialled", []Server{own, gone}, []string{network, restore}, []string{"the control plane works"}},
		{"one of the others can be dialled", []Server{own, gone, stopped}, []string{restore}, []string{network}},
		{"it is the only one", []Server{own}, []string{restore}, []string{network}},
		{"it knows of none", nil, []string{"checking only this machine", restore}, []string{network}},
	} {
		f := &Facts{Now: now, DataDir: "/d", Role: "server", Unreachable: errors.New("context deadline exceeded"), Local: healthy().Local, Servers: tt.servers}
		text := fmt.Sprintf("%+v", Examine(f))
		for _, want := range tt.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing of %q in %s", tt.name, want, text)
			}
		}
		for _, no := range append(tt.not, "at "+works.Address) {
			if strings.Contains(text, no) {
				t.Errorf("%s: %q in %s", tt.name, no, text)
			}
		}
	}
}

// TestExamine_agent: a machine with an agent alone has no kubeconfig. That is no failure while servers are ready.
func TestExamine_agent(t *testing.T) {
	f := &Facts{
		Now: now, DataDir: "/d", Role: "agent", AsHost: true, Unreachable: errors.New("no kubeconfig"), Local: healthy().Local,
		Servers: []Server{{Address: "10.0.0.1:7440"}, {Address: "10.0.0.2:7440", Err: errors.New("connection refused")}},
	}
	found := Examine(f)
	if text := fmt.Sprint(found); Failed(found) || !strings.Contains(text, "1 of the 2 servers that it knows are ready") {
		t.Errorf("a server is ready, and it says: %s", text)
	}
	f.Servers[0].Err = errors.New("connection refused")
	found = Examine(f)
	if text := fmt.Sprint(found); !Failed(found) || !strings.Contains(text, "the server at 10.0.0.1:7440 is not ready") || strings.Contains(text, "restore") {
		t.Errorf("no server is ready, and it says: %s", text)
	}
}

// TestExamine_starting: a server that has only just been started is waited for.
func TestExamine_starting(t *testing.T) {
	const start, wait = "systemctl start holdfast", "wait some seconds"
	f := healthy()
	f.Servers[1].Err = errors.New("this server is starting, and does not serve all kinds yet")
	if text := fmt.Sprint(Examine(f)); strings.Contains(text, start) || !strings.Contains(text, wait) {
		t.Errorf("it is starting: %s", text)
	}
	f.Unreachable = errors.New("connection refused")
	if text := fmt.Sprint(checkAPI(f)[1:]); strings.Contains(text, start) || !strings.Contains(text, wait) {
		t.Errorf("it is starting, and the API cannot be reached: %s", text)
	}
	f.Servers[1].Err = errors.New("connection refused")
	if text := fmt.Sprint(checkAPI(f)[1:]); !strings.Contains(text, start) || strings.Contains(text, wait) {
		t.Errorf("it is down: %s", text)
	}
}

func TestExamine_lostQuorum(t *testing.T) {
	f := healthy()
	f.Servers[0].Err, f.Servers[1].Err = errors.New("no leader"), errors.New("no leader")
	f.Quorum, f.QuorumErr = nil, errors.New("no server leads etcd")
	if found := Examine(f); !Failed(found) || strings.Contains(fmt.Sprint(found), "restore") {
		t.Errorf("one server of three is ready, and it says: %+v", found)
	}
	f.Servers[2].Err = errors.New("no leader")
	if found := Examine(f); !strings.Contains(fmt.Sprint(found), "more than half of the members of etcd are lost for good, run 'holdfast restore'") {
		t.Errorf("no server is ready, and it says: %+v", found)
	}
}

// TestLook_exposedKeys: a key that others may read is found on this machine.
func TestLook_exposedKeys(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pki", "ca.key"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := &Facts{DataDir: dir}
	f.keys()
	if len(f.Local.Exposed) != 2 || !strings.Contains(strings.Join(f.Local.Exposed, " "), "pki/ca.key (mode 0644)") {
		t.Errorf("found %v", f.Local.Exposed)
	}
}
