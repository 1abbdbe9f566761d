package absence_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

// TestJudge: each thing that can be known from elsewhere has its cause and its next step.
func TestJudge(t *testing.T) {
	t.Parallel()
	ended := absence.Seen{Refused: absence.Ended, Certificate: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Ago: 4}
	for name, tt := range map[string]struct {
		facts  absence.Facts
		server bool
		want   api.Reason
		// says and next are parts of the message and of the next step.
		says, next string
	}{
		"the machine is off": {
			absence.Facts{Machine: absence.Silent},
			false,
			api.ReasonMachineUnreachable, "10.0.0.2", "host remove h2 --gone",
		},
		"it was switched off": {
			absence.Facts{Machine: absence.Silent, Farewell: absence.Stopped},
			false,
			api.ReasonMachineUnreachable, "was stopped before", "switch the machine of host h2 on",
		},
		"a stale connection of a machine that is off": {
			absence.Facts{Machine: absence.Silent, Seen: absence.Seen{Open: 3}},
			false,
			api.ReasonMachineUnreachable, "does not answer", "",
		},
		"its OSDs are not missed yet": {
			absence.Facts{
				Machine: absence.Silent, For: 20 * time.Second,
				Storage: absence.Storage{Up: []string{"osd.1"}},
			},
			false,
			api.ReasonMachineUnreachable, "still reports osd.1 there as up", "switch the machine",
		},
		"its OSDs serve": {
			absence.Facts{
				Machine: absence.Silent, For: 2 * time.Minute,
				Storage: absence.Storage{Up: []string{"osd.1"}},
			},
			false,
			api.ReasonNetworkCut, "osd.1", "do not remove the host",
		},
		"it was killed": {
			absence.Facts{Machine: absence.Closed},
			false,
			api.ReasonAgentNotRunning, "does not run, or reaches no server", "'systemctl start holdfast'",
		},
		"its server was killed": {
			absence.Facts{Machine: absence.Closed, Server: absence.Closed},
			true,
			api.ReasonAgentNotRunning, "its server", "run 'systemctl start holdfast' on host h2",
		},
		"it was stopped": {
			absence.Facts{Machine: absence.Closed, Farewell: absence.Stopped},
			false,
			api.ReasonAgentStopped, "was stopped", "run 'systemctl start holdfast' on host h2",
		},
		"it hangs": {
			absence.Facts{Machine: absence.Closed, Seen: absence.Seen{Open: 2}},
			false,
			api.ReasonAgentHangs, "SIGSTOP", "run 'systemctl restart holdfast' on host h2",
		},
		"it hung, and its watches have ended": {
			absence.Facts{Machine: absence.Closed, Was: api.ReasonAgentHangs},
			false,
			api.ReasonAgentHangs, "SIGSTOP", "restart",
		},
		"its server hangs": {
			absence.Facts{Machine: absence.Accepts, Server: absence.Hangs},
			true,
			api.ReasonAgentHangs, "its server", "restart",
		},
		"its server answers": {
			absence.Facts{
				Machine: absence.Accepts, Server: absence.Accepts,
				Seen: absence.Seen{Open: 1},
			},
			true,
			api.ReasonAgentDisconnected, "the server of the host answers", "systemctl status holdfast",
		},
		"its certificate has ended": {
			absence.Facts{Machine: absence.Closed, Seen: ended},
			false,
			api.ReasonCertificateEnded, "2026-01-02T03:04:05Z", "holdfast agent --join TOKEN",
		},
		"that of a server has": {
			absence.Facts{Machine: absence.Closed, Seen: ended},
			true,
			api.ReasonCertificateEnded, "ended", "holdfast server --join TOKEN",
		},
		"it was refused long ago": {
			absence.Facts{Machine: absence.Closed, Seen: absence.Seen{Refused: absence.Ended, Ago: 300}},
			false,
			api.ReasonAgentNotRunning, "", "",
		},
		"its authority is another one": {
			absence.Facts{Machine: absence.Closed, Seen: absence.Seen{Refused: absence.Stranger, Ago: 1}},
			false,
			api.ReasonCertificateRefused, "do not trust", "holdfast token create",
		},
		"nothing could be tried": {absence.Facts{}, false, api.ReasonAgentDisconnected, "no heartbeat", "systemctl status"},
	} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}, Status: api.HostStatus{Addresses: []string{"10.0.0.2"}}}
		if tt.server {
			h.Labels = map[string]string{api.LabelServer: ""}
		}
		got := absence.Judge(h, tt.facts)
		h.Status.Conditions = []metav1.Condition{{
			Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: string(got.Reason), Message: got.Message,
		}}
		next := absence.Next(h)
		if got.Reason != tt.want || !strings.Contains(got.Message, tt.says) || !strings.Contains(next, tt.next) {
			t.Errorf("%s: %s: %s\nNext: %s", name, got.Reason, got.Message, next)
		}
		if absence.Reason(h) != got.Reason {
			t.Errorf("%s: the reason %s is read as %s", name, got.Reason, absence.Reason(h))
		}
	}
}

// TestStorageOf: of daemons that the storage system does not speak of, nothing is said.
func TestStorageOf(t *testing.T) {
	t.Parallel()
	daemon := func(kind, id string) *api.Daemon {
		return &api.Daemon{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
			Spec:       api.DaemonSpec{Cluster: "c", Host: "h2", Type: kind, ID: id},
		}
	}
	daemons := []*api.Daemon{
		daemon("ceph-osd", "1"), daemon("ceph-osd", "10"), daemon("ceph-mon", "b"),
		daemon("ceph-mgr", "b"),
	}
	down := func(names ...string) []api.HealthCheck {
		c := api.HealthCheck{Code: "OSD_DOWN"}
		for _, name := range names {
			c.Detail = append(c.Detail, name+" (root=default,host=h2) is down")
		}
		return []api.HealthCheck{c}
	}
	for name, tt := range map[string]struct {
		ceph   api.CephStatus
		checks []api.HealthCheck
		stale  bool
		want   string
	}{
		"all is up":  {api.CephStatus{Quorum: []string{"b"}, OSDs: 12, OSDsUp: 12}, nil, false, "mon.b, osd.1, osd.10 as up"},
		"one is":     {api.CephStatus{OSDs: 12, OSDsUp: 11}, down("osd.10"), false, "osd.1 as up, and mon.b, osd.10 as down"},
		"none is":    {api.CephStatus{OSDs: 12, OSDsUp: 10}, down("osd.1", "osd.10"), false, "mon.b, osd.1, osd.10 as down"},
		"it is mute": {api.CephStatus{OSDs: 12, OSDsUp: 10}, down("osd.1", "osd.10"), true, ""},
		"they are down and out": {
			api.CephStatus{Quorum: []string{"b"}, OSDs: 12, OSDsUp: 10},
			nil, false,
			"Ceph reports mon.b as up",
		},
		"only one is named": {api.CephStatus{OSDs: 12, OSDsUp: 9}, down("osd.1"), false, "mon.b, osd.1 as down"},
	} {
		s := api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
		s.Status.Health, s.Status.Ceph, s.Status.Checks = "HEALTH_WARN", &tt.ceph, tt.checks
		if tt.stale {
			s.Status.StaleSince = &metav1.Time{}
		}
		got := absence.StorageOf("h2", daemons, []api.StorageStatus{s}).String()
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
