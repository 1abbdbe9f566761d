package why

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// named is a world with pools, checks, plans and a mon that is out of the quorum.
func named() *World {
	w := world()
	w.Actions = nil
	w.Statuses[0].Status.Ceph = &api.CephStatus{Quorum: []string{"b", "c"}, Muted: []string{"POOL_APP_NOT_ENABLED"}}
	w.Statuses[0].Status.Checks = []api.HealthCheck{
		{
			Code: "OSD_DOWN", Severity: "HEALTH_WARN", Message: "1 osds down", Detail: []string{"osd.2 is down"},
			Next: "'holdfast why osd.2'",
		},
		{
			Code: "PG_DEGRADED", Severity: "HEALTH_WARN", Message: "degraded", Next: "bring back osd.2",
			Detail: []string{"pg 7.1f is active+undersized+degraded, acting [1,0]", "pg 9.0 is stuck undersized"},
		},
	}
	w.Daemons = append(w.Daemons, daemon("mon", "b", "h3", api.DaemonRunning), daemon("mon", "c", "h3",
		api.DaemonRunning))
	full := api.ResourceStatus{
		State: api.ResourceDegraded, Reason: api.ReasonQuotaReached,
		Message: "its quota is reached",
		Next:    "raise spec.quota and apply it",
	}
	home := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: api.FilesystemSpec{Cluster: "ceph"}}
	home.Status.State, home.Status.Pools = api.ResourceOnline, []api.FilesystemPoolStatus{{Name: "home-data", ID: 8}}
	w.Resources = []api.Resource{
		&api.Pool{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: api.PoolSpec{Cluster: "ceph"},
			Status: api.PoolStatus{ID: 7, ResourceStatus: full},
		}, home,
		&api.Pool{
			ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Spec: api.PoolSpec{Cluster: "ceph"},
			Status: api.PoolStatus{ID: 4, ResourceStatus: api.ResourceStatus{
				State: api.ResourceDegraded, Reason: api.ReasonDataUnavailable, Message: "osd.2 is down",
				Next: "run 'holdfast why osd.2'",
			}},
		},
	}
	w.Plans = []api.Plan{
		{ObjectMeta: metav1.ObjectMeta{Name: "p1"}, Status: api.PlanStatus{
			State:   api.PlanStale,
			Message: "pool/web changed",
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "p2"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "p3"}, Status: api.PlanStatus{
			State:    api.PlanProposed,
			Proposal: &api.PlanProposal{DestroysCount: 1},
		}},
	}
	w.Clusters[0].Status.Report.Decisions = append(w.Clusters[0].Status.Report.Decisions, api.Decision{
		Object: "flag/noout", Verdict: api.VerdictSkip, Reason: api.ReasonChangedOutside,
		Message: "set in Ceph; it stays until you run 'holdfast ceph osd unset noout'",
	})
	return w
}

// TestExplain_names: whatever name a person has read in a status or in Ceph's own words has an answer.
func TestExplain_names(t *testing.T) {
	for _, tt := range []struct {
		object, text string
		reason       api.Reason
		next         string
	}{
		{
			"OSD_DOWN", "Cluster ceph has OSD_DOWN (HEALTH_WARN): 1 osds down (osd.2 is down).", api.ReasonHealthCheck,
			"'holdfast why osd.2'",
		},
		{"check/OSD_DOWN", "Cluster ceph has OSD_DOWN", api.ReasonHealthCheck, "osd.2"},
		{
			"osd_nearfull", "OSD_NEARFULL is not raised now. It says: An OSD is almost full.", "",
			"nothing now; when it is raised: add disks",
		},
		{"OSD_HOST_DOWN", "OSD_HOST_DOWN is not raised now.", "", "nothing now"},
		{
			"POOL_APP_NOT_ENABLED", "POOL_APP_NOT_ENABLED is muted in cluster ceph.", api.ReasonHealthCheck,
			"'holdfast ceph health unmute POOL_APP_NOT_ENABLED'",
		},
		{
			"pool/7", "Pool web, id 7 in Ceph, is of pool/web. The pool is Degraded", api.ReasonQuotaReached,
			"raise spec.quota",
		},
		{"pool/8", "Pool home-data, id 8 in Ceph, is of filesystem/home", "", ""},
		{"pool/home-data", "Pool home-data, id 8 in Ceph, is of filesystem/home", "", ""},
		{"pool/99", "No object declares a pool with the id 99.", "", "'holdfast ceph osd pool ls detail'"},
		{
			"pg/7.1f", "Ceph says of placement group 7.1f: pg 7.1f is active+undersized+degraded",
			api.ReasonQuotaReached, "'holdfast ceph pg 7.1f query'",
		},
		{
			"pg/4.1f", "Ceph's health says nothing of placement group 4.1f. Pool logs, id 4", api.ReasonDataUnavailable,
			"run 'holdfast why osd.2'. Its own state: 'holdfast ceph pg 4.1f query'",
		},
		{
			"7.2", "Ceph's health says nothing of placement group 7.2", api.ReasonQuotaReached,
			"'holdfast ceph pg 7.2 query'",
		},
		{"9.0", "Ceph says of placement group 9.0: pg 9.0 is stuck undersized", api.ReasonHealthCheck, "bring back osd.2"},
		{"10.3", "No object declares the pool 10 of placement group 10.3", "", "'holdfast ceph pg 10.3 query'"},
		{
			"quorum", "2 of 3 mons of cluster ceph are in the quorum: mon.b, mon.c; not in it: mon.a. It needs 2.",
			api.ReasonQuorumAtRisk, "'holdfast why mon.a'",
		},
		{
			"plan/p1", "Plan p1 is out of date, and cannot be applied: pool/web changed.", api.ReasonConflict,
			"'holdfast plan -f FILE'",
		},
		{"p2", "The leader has not answered plan p2 yet.", api.ReasonNotAnswering, "'holdfast doctor'"},
		{
			"plan/p3", "Plan p3 is ready and not applied yet: it has 0 changes, of which 1 destroy data.", "",
			"'holdfast apply --plan p3'",
		},
		{"flag/noout", "Flag noout: set in Ceph", api.ReasonChangedOutside, "'holdfast ceph osd unset noout'"},
		{"noout", "Flag noout: set in Ceph", api.ReasonChangedOutside, "'holdfast ceph osd unset noout'"},
		{
			"osd", "2 of 3 daemons of type osd are not in their desired state: osd.1 on host h1",
			api.ReasonAgentDisconnected, "systemctl",
		},
		{"HEALTH_WARN", "The cluster is DEGRADED, HEALTH_WARN.", "Waiting", "why osd.2"},
		{"DEGRADED", "The cluster is DEGRADED, HEALTH_WARN.", "Waiting", "why osd.2"},
	} {
		a, err := named().Explain(tt.object)
		if err != nil || !strings.HasPrefix(a.Text, tt.text) || !strings.Contains(a.Next, tt.next) ||
			(tt.reason != "" && a.Reason != tt.reason) {
			t.Errorf("%s: %v\n%s: %s\nwant %s: %s … %s", tt.object, err, a.Reason, a, tt.reason, tt.text, tt.next)
		}
	}
	w := named()
	since := metav1.NewTime(at)
	w.Statuses[0].Status.StaleSince = &since
	if a, err := w.Explain("quorum"); err != nil || a.Reason != api.ReasonNotAnswering || !strings.Contains(a.Next,
		"'holdfast why mon.a'") {
		t.Errorf("without a quorum: %v %s %s", err, a.Reason, a)
	}
}

// TestExplain_foreignFinalizer: what only another program keeps says which, and nothing of the leader.
func TestExplain_foreignFinalizer(t *testing.T) {
	w := named()
	web := w.Resources[0].(*api.Pool)
	web.Generation, web.DeletionTimestamp = 2, &metav1.Time{Time: at}
	web.Finalizers = []string{"example.com/backup"}
	a, err := w.Explain("pool/web")
	if err != nil || a.Reason != api.ReasonForeignFinalizer || !strings.Contains(a.Text,
		"finalizer example.com/backup") || !strings.Contains(a.Next, "kubectl patch pool web") {
		t.Errorf("%v %s %s", err, a.Reason, a)
	}
	web.Finalizers = append(web.Finalizers, api.FinalizerResource)
	if a, err := w.Explain("pool/web"); err != nil || a.Reason == api.ReasonForeignFinalizer {
		t.Errorf("while Holdfast deletes it, too: %v %s", err, a)
	}
}

// TestExplain_secondPath: an OSD whose disk is there twice, or not at all, says so.
func TestExplain_secondPath(t *testing.T) {
	w := named()
	d := &w.Daemons[1]
	d.Status.State, d.Spec.Devices = api.DaemonFailed, []api.DaemonDevice{{Name: "block", ID: "wwn-5"}}
	for _, tt := range []struct {
		devices []api.Device
		reason  api.Reason
		text    string
		next    string
	}{
		{
			[]api.Device{{ID: "unstable-sda", Path: "/dev/sda", WWN: "5"}, {ID: "unstable-sdb", Path: "/dev/sdb", WWN: "5"}},
			api.ReasonSecondPath, "Host h3 has disk wwn-5 twice, as /dev/sda and /dev/sdb", "disconnect one of the two",
		},
		{
			[]api.Device{{ID: "wwn-6", Path: "/dev/sda", WWN: "6"}},
			api.ReasonDeviceUnavailable,
			"Host h3 does not have its disk wwn-5.", "plug the disk in again",
		},
		{[]api.Device{{ID: "wwn-5", Path: "/dev/sda", WWN: "5"}}, "", "could not be prepared", "remove the cause"},
		{nil, "", "could not be prepared", "remove the cause"},
	} {
		w.Hosts[2].Status.Devices = tt.devices
		a, err := w.Explain("osd.2")
		if err != nil || a.Reason != tt.reason || !strings.Contains(a.Text, tt.text) || !strings.Contains(a.Next, tt.next) {
			t.Errorf("%v %s %s, want %s, %s, %s", err, a.Reason, a, tt.reason, tt.text, tt.next)
		}
	}
}
