package why

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/situations"
)

// hostWith is host h2, connected, with one condition more.
func hostWith(kind string, status metav1.ConditionStatus, reason api.Reason, message string) api.Host {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}, Status: api.HostStatus{Addresses: []string{"10.0.0.2"}}}
	h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionTrue}}
	if kind == api.HostAgentConnected {
		h.Status.Conditions = nil
	}
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
		Type: kind, Status: status,
		Reason: string(reason), Message: message,
	})
	return h
}

// TestExplain_hosts: each state of a host has the answer that the table of situations has.
func TestExplain_hosts(t *testing.T) {
	t.Parallel()
	osd := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-2"},
		Spec:       api.DaemonSpec{Cluster: "c", Host: "h2", Type: "ceph-osd", ID: "2", State: api.WantRunning},
	}
	osd.Status.State = api.DaemonRunning
	maintenance, drained := hostWith("x", "True", "", ""), hostWith("x", "True", "", "")
	maintenance.Spec.Mode, drained.Spec.Mode = api.HostMaintenance, api.HostDrain
	for name, tt := range map[string]struct {
		host    api.Host
		daemons []api.Daemon
	}{
		"host-disk-full": {hostWith(api.HostDirectoryWritable, "False", api.ReasonDiskFull,
			"the file system is full"), []api.Daemon{osd}},
		"host-read-only": {
			hostWith(api.HostDirectoryWritable, "False", api.ReasonReadOnly, "it is read-only"),
			[]api.Daemon{osd},
		},
		"host-clock": {
			hostWith(api.HostClockInSync, "False", "Skewed", "the clock is about 5m ahead: set it"),
			[]api.Daemon{osd},
		},
		"host-not-selected":   {hostWith("x", "True", "", ""), nil},
		"host-in-maintenance": {maintenance, []api.Daemon{osd}},
		"host-drained":        {drained, nil},
		"two-machines": {hostWith(api.HostSingleMachine, "False", api.ReasonTwoMachines,
			"two machines run as host h2"), []api.Daemon{osd}},
		"agent-unknown": {hostWith(api.HostAgentConnected, "False", "Silent", "no heartbeat"), []api.Daemon{osd}},
		"host-certificate-refused": {
			hostWith(api.HostAgentConnected, "False", api.ReasonCertificateRefused, "another authority"), []api.Daemon{osd},
		},
		"servers-not-trusted": {
			hostWith(api.HostAgentConnected, "False", api.ReasonServersNotTrusted, "it ends each connection"),
			[]api.Daemon{osd},
		},
	} {
		s := situations.Get(name)
		got, err := (&World{Hosts: []api.Host{tt.host}, Daemons: tt.daemons}).Explain(strings.Fields(s.Ask)[2])
		if err != nil || got.Reason != s.Reason || !strings.Contains(got.Next, s.Next) {
			t.Errorf("%s: %s: %v, %v\nwant %s … %s", name, got.Reason, got, err, s.Reason, s.Next)
		}
	}
}

// TestExplain_silentStorage: beside a silent agent stands what the storage system says of its
// daemons, and nothing else.
func TestExplain_silentStorage(t *testing.T) {
	t.Parallel()
	osd := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-2"},
		Spec:       api.DaemonSpec{Cluster: "c", Host: "h2", Type: "ceph-osd", ID: "2"},
	}
	status := api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	status.Status.Health = "HEALTH_OK"
	for ups, want := range map[int32]string{3: "Ceph reports osd.2 as up", 2: "Ceph reports osd.2 as down"} {
		status.Status.Ceph = &api.CephStatus{OSDs: 3, OSDsUp: ups}
		status.Status.Checks = []api.HealthCheck{{Code: "OSD_DOWN", Detail: []string{"osd.2 (root=default,host=h2) is down"}}}
		h := hostWith(api.HostAgentConnected, "False", api.ReasonAgentHangs, "it hangs")
		got, err := (&World{
			Hosts: []api.Host{h}, Daemons: []api.Daemon{osd},
			Statuses: []api.StorageStatus{status},
		}).Explain("osd.2")
		if err != nil || !strings.Contains(got.Text, want) || got.Reason != api.ReasonAgentHangs {
			t.Errorf("with %d up: %s: %v, %v", ups, got.Reason, got, err)
		}
	}
}
