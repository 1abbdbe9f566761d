package answer

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// call is one about a host of each state, with a daemon in some state on each.
func call(args string) *Call {
	v := &engine.View{Cluster: &api.StorageCluster{}}
	v.Cluster.Spec.Ceph = &api.CephSpec{}
	states := []api.DaemonState{api.DaemonRunning, api.DaemonBackOff, api.DaemonStopped, api.DaemonPreparing}
	for i, name := range []string{"silent", "served", "drained", "well"} {
		h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
		h.Status.Addresses = []string{"10.0.0.9"}
		d := api.Daemon{}
		d.Spec.Type, d.Spec.ID, d.Spec.Host, d.Status.State = "ceph-mgr", name, name, states[i]
		switch name {
		case "silent":
			c := metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}
			c.LastTransitionTime = metav1.NewTime(time.Unix(7, 0))
			h.Status.Conditions = []metav1.Condition{c}
		case "served":
			h.Spec.Mode = api.HostMaintenance
		case "drained":
			h.Spec.Mode, h.Labels = api.HostDrain, map[string]string{wire.LabelPrefix + "gw": "", "rack": "a"}
		}
		v.Hosts, v.Daemons = append(v.Hosts, h), append(v.Daemons, d)
	}
	return &Call{View: v, Now: time.Unix(60, 0), Args: []byte(args)}
}

// TestHosts: hosts have the states and labels that Ceph knows.
func TestHosts(t *testing.T) {
	got, err := Answer("get_hosts", call("{}"))
	rows, ok := got.([]Host)
	if err != nil || !ok || len(rows) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"Offline", "Maintenance", "", ""} {
		if rows[i].Status != want || rows[i].Addr != "10.0.0.9" {
			t.Errorf("%+v", rows[i])
		}
	}
	if l := rows[2].Labels; len(l) != 2 || l[0] != "_no_schedule" || l[1] != "gw" || len(rows[3].Labels) != 0 {
		t.Errorf("%v", l)
	}
}

// TestDaemons: the state of a daemon on a host that is disconnected is unknown, since then.
func TestDaemons(t *testing.T) {
	got, err := Answer("list_daemons", call("{}"))
	rows, ok := got.([]Daemon)
	if err != nil || !ok || len(rows) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []int{statusUnknown, statusError, statusStopped, statusStarting} {
		if rows[i].Status != want || rows[i].StatusText == "" {
			t.Errorf("%+v", rows[i])
		}
	}
	if rows[0].LastRefresh != "1970-01-01T00:00:07.000000Z" || rows[3].LastRefresh != "1970-01-01T00:01:00.000000Z" {
		t.Errorf("%s, %s", rows[0].LastRefresh, rows[3].LastRefresh)
	}
	if got, err := Answer("list_daemons", call(`{"host": "well", "later": 1}`)); err != nil || len(got.([]Daemon)) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnswer_refused: what cannot be answered is an error in a sentence.
func TestAnswer_refused(t *testing.T) {
	for method, args := range map[string]string{
		"fly": "{}", "list_daemons": `{"host": 7}`, "get_inventory": "garbage",
	} {
		var refusal *Error
		_, err := Answer(method, call(args))
		if !errors.As(err, &refusal) || refusal.Errno != -22 || refusal.Message == "" {
			t.Errorf("%s: %v", method, err)
		}
	}
}
