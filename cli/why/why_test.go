package why

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func condition(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at)}}
}

func daemon(kind, id, host string, state api.DaemonState) api.Daemon {
	return api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: "ceph-" + kind + "-" + id},
		Spec:       api.DaemonSpec{Cluster: "ceph", Type: "ceph-" + kind, ID: id, Host: host, State: api.WantRunning},
		Status:     api.DaemonStatus{State: state},
	}
}

// world is a cluster "ceph" on h1 (silent), h2 (in maintenance) and h3 (well).
func world() *World {
	started := metav1.NewMicroTime(at)
	w := &World{
		Clusters: []api.StorageCluster{{ObjectMeta: metav1.ObjectMeta{Name: "ceph"}}},
		Statuses: []api.StorageStatus{{ObjectMeta: metav1.ObjectMeta{Name: "ceph"}, Status: api.StorageStatusStatus{Status: api.StorageDegraded, Health: "HEALTH_WARN"}}},
		Hosts: []api.Host{
			{ObjectMeta: metav1.ObjectMeta{Name: "h1"}, Status: api.HostStatus{Conditions: condition(api.HostAgentConnected, "False", "Silent", "")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "h2"}, Spec: api.HostSpec{Mode: api.HostMaintenance, Reason: "new memory"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "h3", Labels: map[string]string{"disk": "ssd"}}},
		},
		Daemons: []api.Daemon{
			daemon("osd", "1", "h1", api.DaemonRunning), daemon("osd", "2", "h3", api.DaemonBackOff), daemon("osd", "3", "h3", api.DaemonRunning),
			daemon("mon", "a", "h3", api.DaemonFailed), daemon("mgr", "a", "h3", api.DaemonPreparing), daemon("mgr", "b", "h3", api.DaemonRunning),
		},
		Nodes: []api.StorageNode{
			{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: api.StorageNodeStatus{Host: "h1", Conditions: condition(api.NodeAccepted, "True", "Accepted", "")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Status: api.StorageNodeStatus{Conditions: condition(api.NodeAccepted, "False", "Refused", "device sdb has a file system")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "n3"}, Spec: api.StorageNodeSpec{NodeSelector: map[string]string{"x": "y"}}, Status: api.StorageNodeStatus{Conditions: condition(api.NodeAccepted, "False", "Waiting", "no host has the labels x=y")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "n4"}, Spec: api.StorageNodeSpec{NodeSelector: map[string]string{"disk": "ssd"}}, Status: api.StorageNodeStatus{Conditions: condition(api.NodeAccepted, "False", "Waiting", "agent of host h4 disconnected")}},
			{ObjectMeta: metav1.ObjectMeta{Name: "new", Generation: 1}},
		},
		Actions: []api.Action{
			{ObjectMeta: metav1.ObjectMeta{Name: "a1"}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/h2"}, Status: api.ActionStatus{State: api.ActionPendingApproval}},
			{ObjectMeta: metav1.ObjectMeta{Name: "a2"}, Spec: api.ActionSpec{Kind: "host.drain", Target: "host/h3"}, Status: api.ActionStatus{State: api.ActionRunning, Progress: "1/3", WaitsFor: "osd.3 to be empty"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "a3"}, Spec: api.ActionSpec{Kind: "osd.remove", Target: "osd.9"}, Status: api.ActionStatus{State: api.ActionFailed, Message: "no space"}},
		},
	}
	w.Daemons[1].Status.LastExit = &api.DaemonExit{Time: started, Reason: "signal: killed"}
	w.Daemons[1].Status.Restarts, w.Daemons[1].Status.Message = 7, "it ended (signal: killed) and restarts at 03:04:06Z"
	w.Daemons[2].Status.Started = &started
	w.Daemons[5].Status.Started, w.Daemons[5].Status.Restarts = &started, 4
	w.Daemons[3].Status.Message = "port 3300 is taken"
	w.Clusters[0].Status.Conditions = condition(api.ClusterReady, "False", "Waiting", "osd.2 is down")
	w.Clusters[0].Status.Report = &api.OrchestrationReport{Outcome: api.OutcomeWaiting, Decisions: []api.Decision{
		{Object: "mon.d", Verdict: api.VerdictWait, Message: "not placed: only 40 s since mon.b was last seen, threshold 5 m"},
		{Object: "host/h2", Verdict: api.VerdictSkip, Message: "its OSDs stay in"},
		{Object: "host/h2", Verdict: api.VerdictWait, Message: "waiting for osd.4 to stop"},
	}}
	return w
}

// TestExplain_twins: the host, and what is held on it, say that two machines run as it.
func TestExplain_twins(t *testing.T) {
	w := world()
	w.Hosts[2].Status.Conditions = condition(api.HostSingleMachine, "False", "TwoMachines", "two machines run as host h3: 10.0.0.4 (boot id b1) and 10.0.0.9 (boot id b2)")
	for _, object := range []string{"host/h3", "mgr.a"} {
		got, err := w.Explain(object)
		if err != nil || !strings.Contains(strings.ToLower(got.Text), "two machines run as host h3: 10.0.0.4 (boot id b1) and 10.0.0.9 (boot id b2).") ||
			!strings.Contains(got.Next, "systemctl disable --now holdfast") {
			t.Errorf("%s: %+v, %v", object, got, err)
		}
	}
}

// TestExplain_silentPod: of a host in Kubernetes the next step is what Kubernetes knows of the agent's
// pod, or where to look for it, and no command of systemd.
func TestExplain_silentPod(t *testing.T) {
	w := world()
	h := &w.Hosts[0]
	for _, step := range []struct {
		c    metav1.Condition
		next string
	}{
		{
			metav1.Condition{Type: api.HostNodeReady, Status: "True"},
			"look at the agent's pod: 'kubectl -n holdfast-system get pods",
		},
		{metav1.Condition{Type: api.HostAgentPod, Status: "False", Message: "its pod fails"}, "its pod fails."},
	} {
		h.Status.Conditions = append(h.Status.Conditions, step.c)
		a, err := w.Explain("host/h1")
		if err != nil || !strings.HasPrefix(a.Next, step.next) || strings.Contains(a.Next, "systemctl") {
			t.Errorf("%v, %q, want %q", err, a.Next, step.next)
		}
	}
}

// TestExplain_waitsForSilent: a node that waits for a silent host, and the cluster that waits for it,
// lead to what is to be done about the host.
func TestExplain_waitsForSilent(t *testing.T) {
	w := world()
	w.Daemons = nil
	w.Nodes[3].Spec.NodeSelector = map[string]string{api.LabelHostname: "h1"}
	w.Hosts[0].Labels = w.Nodes[3].Spec.NodeSelector
	if a, err := w.Explain("n4"); err != nil || !strings.Contains(a.Next, "systemctl status holdfast") {
		t.Errorf("%v %+v", err, a)
	}
	w.Clusters[0].Status.Report.Decisions = []api.Decision{{
		Object: "node/n4", Verdict: api.VerdictWait, Reason: api.ReasonAgentDisconnected,
		Message: "agent of host h1 disconnected",
	}}
	const next = "run 'holdfast why host/h1': its agent is disconnected."
	if a, err := w.Explain("cluster/ceph"); err != nil || a.Next != next {
		t.Errorf("%v %+v", err, a)
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct{ object, text, next string }{
		{"osd.3", "osd.3 on host h3 is Running since 2026-01-02T03:04:05Z, as desired. Action a2: host.drain on host/h3 is running, 1/3 steps done. It waits for osd.3 to be empty.", "action show a2"},
		{"daemon/ceph-osd-2", "osd.2 on host h3 ended and restarts after a pause (7 restarts so far). Last exit, at 2026-01-02T03:04:05Z: signal: killed. Action a2", "holdfast logs ceph-osd-2"},
		{"mon.a", "mon.a on host h3 could not be prepared: port 3300 is taken.", "remove the cause"},
		{"mgr.a", "mgr.a on host h3 is Preparing; its desired state is Running.", "its agent works on it"},
		{"mgr.b", "mgr.b on host h3 is Running since 2026-01-02T03:04:05Z; it restarted 4 times.", "log"},
		{"osd.1", "osd.1 on host h1 was last reported Running. The agent of host h1 has been disconnected since " +
			"2026-01-02T03:04:05Z. Whether the storage on the host serves is not known", "the machine is on"},
		{"mon.d", "mon.d does not exist: not placed: only 40 s since mon.b was last seen, threshold 5 m.", "status ceph"},
		{"host/h1", "The agent of host h1 has been disconnected since 2026-01-02T03:04:05Z", "the machine is on"},
		{"h2", "Host h2 is in mode Maintenance (new memory): waiting for osd.4 to stop. Action a1: host.drain on host/h2 waits for approval.", "run 'holdfast action approve a1' or 'holdfast action cancel a1'. Wait; follow it"},
		{"host/h3", "Host h3 is active and its agent is connected: osd.2 on host h3 ended", "log"},
		{"cluster/ceph", "The cluster is DEGRADED, HEALTH_WARN. Not ready: osd.2 is down.", "holdfast why osd.2"},
		{"node/n1", "The node is accepted on host h1. The agent of host h1 has been disconnected", "the machine is on"},
		{"node/n2", "The node is refused: device sdb has a file system.", "apply it again"},
		{"n3", "The node waits: no host has the labels x=y.", "or correct spec.nodeSelector"},
		{"n4", "The node waits: agent of host h4 disconnected.", "wait"},
		{"node/new", "The leader has not observed the node's newest spec yet.", "holdfast status"},
		{"action/a1", "host.drain on host/h2 waits for approval.", "holdfast action approve a1"},
		{"a2", "host.drain on host/h3 is running, 1/3 steps done. It waits for osd.3 to be empty.", "holdfast action show a2"},
		{"action/a3", "osd.remove on osd.9 is failed: no space.", "action show a3"},
	} {
		a, err := world().Explain(tt.object)
		if err != nil || !strings.HasPrefix(a.Text, tt.text) || (a.Next == "") != (tt.next == "") || !strings.Contains(a.Next, tt.next) {
			t.Errorf("%s: %v\n%s\nwant %s … %s", tt.object, err, a, tt.text, tt.next)
		}
	}
}

// What helps against a wait stands in its sentence.
func TestExplain_waitNamesACommand(t *testing.T) {
	w := world()
	w.Clusters[0].Status.Report.Decisions = []api.Decision{{Object: "mon.d", Verdict: api.VerdictWait, Reason: api.ReasonDaemonFailing, Message: "it is slow: 'holdfast daemon restart mon.a'"}}
	if a, err := w.Explain("mon.d"); err != nil || !strings.HasPrefix(a.Next, "do what is named above, unless it passes by itself") {
		t.Errorf("%v %s", err, a)
	}
}

func TestExplain_cluster(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*api.StorageCluster)
		text   string
	}{
		{"paused", func(c *api.StorageCluster) { c.Spec.Mode = api.ClusterPaused }, "The cluster is paused"},
		{"never looked at", func(c *api.StorageCluster) { c.Status = api.StorageClusterStatus{} }, "The leader has not observed the cluster yet"},
		{"failed", func(c *api.StorageCluster) {
			c.Status.Report.Outcome, c.Status.Report.Error = api.OutcomeFailed, "etcd does not answer"
		}, "The last orchestration failed: etcd does not answer."},
		{"a newer spec", func(c *api.StorageCluster) { c.Generation = 1 }, "The leader has not observed the newest spec yet"},
		{"ready", func(c *api.StorageCluster) { c.Status.Conditions[0].Status = "True" }, "The cluster is DEGRADED, HEALTH_WARN. Everything declared is there."},
		{"ready, with OSDs elsewhere", func(c *api.StorageCluster) {
			c.Status.Conditions[0].Status = "True"
			c.Status.Conditions = append(c.Status.Conditions, condition(api.ClusterPlaced, "False", api.PlacesElsewhere, "CRUSH has h1 in r2")...)
		}, "The cluster is DEGRADED, HEALTH_WARN. Everything declared is there. CRUSH has h1 in r2."},
		{"ready, with a pool of one copy", func(c *api.StorageCluster) {
			c.Status.Conditions[0].Status = "True"
			c.Status.Conditions = append(c.Status.Conditions, condition(api.ClusterRedundant, "False", api.RedundancyOneCopy, "pool p keeps 1 copy")...)
		}, "The cluster is DEGRADED, HEALTH_WARN. Everything declared is there. Pool p keeps 1 copy."},
		{"refused", func(c *api.StorageCluster) {
			c.Status.Conditions = append(c.Status.Conditions, condition(api.ClusterAccepted, "False", "Refused", "3 mons, 1 host")...)
		}, "The spec cannot be carried out. 3 mons, 1 host."},
		{"observed", func(c *api.StorageCluster) {
			c.Spec.Mode, c.Status.Conditions[0].Message = api.ClusterObserved, "the cluster is only observed"
		}, "The cluster is only observed."},
	} {
		w := world()
		tt.change(&w.Clusters[0])
		if a, err := w.Explain("cluster/ceph"); err != nil || !strings.HasPrefix(a.Text, tt.text) {
			t.Errorf("%s: %v %s, want %s", tt.name, err, a, tt.text)
		}
	}
}

// A command that the sentence names comes before what the storage system said last.
func TestExplain_clusterCommand(t *testing.T) {
	w := world()
	w.Daemons, w.Actions = nil, nil
	w.Clusters[0].Status.Conditions[0].Message = "mon.b: its process runs and does not answer: restart it with 'holdfast daemon restart ceph-mon-b --force'"
	w.Clusters[0].Status.Report.Decisions = []api.Decision{{
		Object: "mon.b", Verdict: api.VerdictWait, Reason: api.ReasonDaemonFailing, Message: w.Clusters[0].Status.Conditions[0].Message,
	}}
	w.Statuses[0].Status.Checks = []api.HealthCheck{{Code: "MON_DOWN", Severity: "HEALTH_WARN", Next: "look at it"}}
	if a, err := w.Explain("cluster/ceph"); err != nil || a.Next != "do what is named above, unless it passes by itself; follow it with 'holdfast status ceph --watch'." {
		t.Errorf("%v %s", err, a)
	}
}

// When no daemon fails, the next step is that of the worst thing that the storage system itself finds wrong.
func TestExplain_clusterCheck(t *testing.T) {
	w := world()
	w.Daemons = nil
	w.Statuses[0].Status.Checks = []api.HealthCheck{
		{Code: "OSD_NEARFULL", Severity: "HEALTH_WARN", Next: "add disks"}, {Code: "PG_DAMAGED", Severity: "HEALTH_ERR", Next: "repair it"},
	}
	if a, err := w.Explain("cluster/ceph"); err != nil || a.Next != "PG_DAMAGED: repair it." {
		t.Errorf("%v %s", err, a)
	}
}

func TestExplain_volume(t *testing.T) {
	for _, tt := range []struct {
		name       string
		change     func(*api.Volume)
		text, next string
	}{
		{"not looked at", func(*api.Volume) {}, "The leader has not observed the volume's newest spec yet.", "holdfast status ceph"},
		{"no cluster", func(v *api.Volume) { v.Spec.Cluster = "none" }, "StorageCluster none does not exist in the volume's namespace", "holdfast get storageclusters"},
		{"a cluster without volumes", func(v *api.Volume) { v.Name = "stray" }, "The volume is not made: clusters of type ceph have no volumes here.", "holdfast status ceph"},
		{"refused", func(v *api.Volume) {
			v.Status = api.VolumeStatus{ResourceStatus: api.ResourceStatus{ObservedGeneration: 1, State: api.ResourcePending, Conditions: condition(api.ResourceAccepted, "False", "Refused", "replica 3 needs 3 nodes, there are 2")}}
		}, "The volume cannot be made as declared: replica 3 needs 3 nodes, there are 2.", "apply it again"},
		{"degraded", func(v *api.Volume) {
			v.Status = api.VolumeStatus{ResourceStatus: api.ResourceStatus{ObservedGeneration: 1, State: api.ResourceDegraded, Message: "a brick on n2 is down"}}
		}, "The volume is Degraded: a brick on n2 is down.", ""},
		{"online", func(v *api.Volume) {
			v.Status = api.VolumeStatus{ResourceStatus: api.ResourceStatus{ObservedGeneration: 1, State: api.ResourceOnline}, Source: "10.0.0.1:/v"}
		}, "The volume is Online, and clients mount 10.0.0.1:/v.", ""},
	} {
		w := world()
		v := api.Volume{ObjectMeta: metav1.ObjectMeta{Name: "v", Generation: 1}, Spec: api.VolumeSpec{Cluster: "ceph"}}
		tt.change(&v)
		w.Resources = []api.Resource{&v}
		w.Clusters[0].Status.Report.Decisions = append(w.Clusters[0].Status.Report.Decisions,
			api.Decision{Object: "volume/stray", Verdict: api.VerdictSkip, Message: "clusters of type ceph have no volumes here"})
		a, err := w.Explain("volume/" + v.Name)
		if err != nil || !strings.HasPrefix(a.Text, tt.text) || (a.Next == "") != (tt.next == "") || !strings.Contains(a.Next, tt.next) {
			t.Errorf("%s: %v\n%s\nwant %s … %s", tt.name, err, a, tt.text, tt.next)
		}
	}
}

// A daemon that is stopped for its host's maintenance says so, and how that ends; a host that was refused it says how it is taken back.
func TestExplain_maintenance(t *testing.T) {
	w := world()
	w.Actions = nil
	d := daemon("mon", "c", "h2", api.DaemonStopped)
	d.Spec.State = api.WantStopped
	w.Daemons = append(w.Daemons, d)
	a, err := w.Explain("mon.c")
	if err != nil || a.Text != "mon.c on host h2 is Stopped because host h2 is in mode Maintenance (new memory)." || !strings.Contains(a.Next, "'holdfast host maintenance exit h2'") {
		t.Errorf("%v %s", err, a)
	}
	w.Clusters[0].Status.Report.Decisions = []api.Decision{{Object: "host/h2", Verdict: api.VerdictRefuse, Message: "its OSDs may not stop"}}
	a, err = w.Explain("host/h2")
	if err != nil || !strings.Contains(a.Text, "its OSDs may not stop.") || !strings.HasPrefix(a.Next, "wait until the cause is over") {
		t.Errorf("%v %s", err, a)
	}
}

// The refused mode of a host hides neither the state, nor what helps.
func TestExplain_clusterWithRefusedHost(t *testing.T) {
	w := world()
	w.Clusters[0].Status.Conditions[0].Message = "host/h2: its OSDs may not stop"
	w.Clusters[0].Status.Report.Decisions = []api.Decision{{Object: "host/h2", Verdict: api.VerdictRefuse, Message: "its OSDs may not stop"}}
	a, err := w.Explain("cluster/ceph")
	if err != nil || !strings.HasPrefix(a.Text, "The cluster is DEGRADED, HEALTH_WARN. The mode of a host is refused") || !strings.HasPrefix(a.Next, "run 'holdfast why host/h2'") {
		t.Errorf("%v %s", err, a)
	}
}

func TestExplain_unknown(t *testing.T) {
	w := world()
	w.Hosts = append(w.Hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for object, want := range map[string]string{
		"osd.4":          "did you mean osd.1, osd.2, osd.3?",
		"host/h9":        "did you mean host/h1, host/h2, host/h3?",
		"clutser/ceph":   "did you mean cluster/ceph?",
		"n1":             "n1 is ambiguous: host/n1 or node/n1",
		"something-else": "something-else not found: list objects with 'holdfast get daemons",
	} {
		if _, err := w.Explain(object); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", object, err, want)
		}
	}
}

func TestExplain_heldBack(t *testing.T) {
	w := world()
	w.Clusters[0].Status.Report.Decisions = append(w.Clusters[0].Status.Report.Decisions, api.Decision{
		Object: "osd.3", Verdict: api.VerdictSkip, Reason: api.ReasonHeldBack, Message: "held back since 10:02, as it went down 5 times",
	})
	a, err := w.Explain("osd.3")
	if err != nil || !strings.HasPrefix(a.Next, "start it again with 'holdfast daemon start osd.3'.") ||
		!strings.HasPrefix(a.Text, "osd.3 on host h3 is Running: held back since 10:02") {
		t.Errorf("%v %s", err, a)
	}
}

// Why a daemon ended is said with the step of its cause; where no cause is known, with what it wrote last.
func TestExplain_ended(t *testing.T) {
	w := world()
	d := &w.Daemons[1]
	for _, tt := range []struct {
		exit       api.DaemonExit
		says, next string
	}{
		{api.DaemonExit{
			Reason: "exit code 1", Cause: api.ReasonPortInUse, Message: "port 6800 is taken by nginx (process 7)",
			Next: "stop nginx",
		}, "exit code 1: port 6800 is taken by nginx (process 7).", "stop nginx."},
		{
			api.DaemonExit{Reason: "exit code 7", Message: "the sky is green"},
			`exit code 7; it wrote last: "the sky is green".`, "read the end of its log",
		},
	} {
		d.Status.LastExit = &tt.exit
		a := w.daemon(d)
		if !strings.Contains(a.Text, tt.says) || !strings.Contains(a.Next, tt.next) {
			t.Errorf("%q, next %q", a.Text, a.Next)
		}
	}
}
