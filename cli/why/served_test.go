package why

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestExplain_served: what the storage system says of a daemon counts beside what its process does, and each thing is
// said once.
func TestExplain_served(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC))
	out := &api.DaemonService{
		State: api.OutOfService, Reason: api.ReasonMarkedOut, Message: "it is marked out",
		Next: "take it in again with 'holdfast ceph osd in 2'", Since: since,
	}
	loops := &api.DaemonService{
		State: api.OutOfService, Reason: api.ReasonKeepsEnding, Since: since, Next: "look for 'Out of memory' in 'dmesg'",
		Message: "its process ended 6 times within 10 minutes; the last time by signal: killed: it was killed",
	}
	by := &api.DaemonService{State: api.ServiceStandby, Reason: api.ReasonStandby, Message: "mgr.a is active"}
	killed := &api.DaemonExit{Reason: "signal: killed", Cause: api.ReasonKilled, Message: "it was killed"}
	ported := &api.DaemonExit{Reason: "exit code 1", Cause: api.ReasonPortInUse, Message: "port 3300 is taken"}
	flaps := api.Decision{Object: "osd.2", Verdict: api.VerdictSkip, Reason: api.ReasonDaemonFailing, Message: "flapping"}
	waits := api.Decision{Object: "osd.2", Verdict: api.VerdictWait, Reason: api.ReasonMovingData, Message: "it drains"}
	for name, tt := range map[string]struct {
		state    api.DaemonState
		said     *api.DaemonService
		exit     *api.DaemonExit
		decision *api.Decision
		stale    bool
		reason   api.Reason
		says     string
	}{
		"out":                     {api.DaemonRunning, out, nil, nil, false, api.ReasonMarkedOut, "'holdfast ceph osd in 2'"},
		"out, and Ceph is silent": {api.DaemonRunning, out, nil, nil, true, api.ReasonMarkedOut, "since 2026-11-27"},
		"out, while it drains":    {api.DaemonRunning, out, nil, &waits, false, api.ReasonMovingData, "it drains"},
		"out, and it stays":       {api.DaemonRunning, out, nil, &flaps, false, api.ReasonMarkedOut, "is out of service"},
		"standby":                 {api.DaemonRunning, by, nil, nil, false, api.ReasonStandby, "stands by: mgr.a is active"},
		"killed, and runs":        {api.DaemonRunning, loops, killed, &flaps, false, api.ReasonKeepsEnding, "'dmesg'"},
		"killed, and waits":       {api.DaemonBackOff, loops, killed, &flaps, false, api.ReasonKeepsEnding, "6 times"},
		"ends for want of a port": {api.DaemonBackOff, loops, ported, nil, false, api.ReasonPortInUse, "port 3300"},
		"well":                    {api.DaemonRunning, nil, nil, nil, false, "", "as desired"},
		"nobody knows":            {api.DaemonRunning, nil, nil, nil, true, api.ReasonNotAnswering, "'holdfast why cluster"},
	} {
		d := daemon("osd", "2", "h1", tt.state)
		d.Spec.Cluster, d.Status.Service, d.Status.LastExit, d.Status.Restarts = "ceph", tt.said, tt.exit, 0
		w := World{Daemons: []api.Daemon{d}, Clusters: make([]api.StorageCluster, 1), Statuses: make([]api.StorageStatus, 1)}
		w.Clusters[0].Name, w.Statuses[0].Name = "ceph", "ceph"
		w.Clusters[0].Status.Report, w.Statuses[0].Namespace = &api.OrchestrationReport{}, d.Namespace
		if tt.decision != nil {
			w.Clusters[0].Status.Report.Decisions = []api.Decision{*tt.decision}
		}
		if tt.stale {
			w.Statuses[0].Status.StaleSince = &since
		}
		a, err := w.Explain("osd.2")
		if err != nil || a.Reason != tt.reason || !strings.Contains(a.String(), tt.says) {
			t.Errorf("%s: %s, %v\n%s", name, a.Reason, err, a)
		}
		for _, text := range []string{"killed", "flapping", "signal", "port 3300"} {
			if n := strings.Count(strings.ReplaceAll(a.Text, "signal: killed", "signal"), text); n > 1 {
				t.Errorf("%s: %q is said %d times: %s", name, text, n, a)
			}
		}
	}
}
