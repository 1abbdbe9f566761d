package engine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// viewOfTwins is a cluster with one host, on which two machines run or one.
func viewOfTwins(twins bool) *View {
	h := api.Host{}
	h.Name = "h4"
	if twins {
		h.Status.Conditions = []metav1.Condition{{Type: api.HostSingleMachine, Status: metav1.ConditionFalse, Message: "two machines run as host h4: a and b"}}
	}
	d := api.Daemon{Spec: api.DaemonSpec{Host: "h4"}}
	return &View{Cluster: &api.StorageCluster{}, Hosts: []api.Host{h}, Daemons: []api.Daemon{d}}
}

// TestTwins_events: that two machines run as one host is told once, by whichever leader, and that it is over.
func TestTwins_events(t *testing.T) {
	for _, tt := range []struct {
		was, is bool
		want    Code
	}{{false, true, HostTwins}, {true, false, HostSingle}, {true, true, ""}, {false, false, ""}} {
		was, is := viewOfTwins(tt.was), viewOfTwins(tt.is)
		told := toldHost("h4", hostFlags(&was.Hosts[0]))
		was.Hosts[0].Status = told.Status
		var got Code
		for _, e := range Diff(was, is, time.Now()) {
			if e.Object == "host/h4" {
				got = e.Code
			}
		}
		if got != tt.want {
			t.Errorf("from %v to %v: %q, want %q", tt.was, tt.is, got, tt.want)
		}
	}
	if h := toldHost("h4", "1\t1"); h.AgentHeard() || h.Status.BootID == "" { // as an earlier version wrote it
		t.Errorf("read as %+v", h.Status)
	}
}

// TestTwins_status: the report and the status name them and the way out.
func TestTwins_status(t *testing.T) {
	v, p := viewOfTwins(true), &Plan{Status: api.StorageStatusStatus{Status: api.StorageDegraded}}
	awaitTwins(v, p)
	if len(p.Decisions) != 1 || p.Decisions[0].Object != "host/h4" || !strings.Contains(p.Decisions[0].Message, "two machines run as host h4: a and b; running daemons keep running") {
		t.Errorf("decisions %+v", p.Decisions)
	}
	if s := Aggregate(v, p, time.Now()); len(s.Reasons) != 1 || s.Reasons[0] != "host/h4: two machines run as host h4: a and b" {
		t.Errorf("reasons %q", s.Reasons)
	}
}
