package answer

import (
	"encoding/json"
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

// describedDaemon is a row of list_daemons.
type describedDaemon struct {
	Daemon
	LastRefresh string `json:"last_refresh"`
}

// rowsOf reads a list that is JSON.
func rowsOf[T any](t *testing.T, method string, c *Call) (rows []T) {
	t.Helper()
	got, err := Answer(method, c)
	text, ok := got.(json.RawMessage)
	if err != nil || !ok {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows
}

// TestDaemons: the state of a daemon on a host that is disconnected is unknown, since then.
func TestDaemons(t *testing.T) {
	rows := rowsOf[describedDaemon](t, "list_daemons", call("{}"))
	if len(rows) != 4 {
		t.Fatalf("%+v", rows)
	}
	for i, want := range []int{statusUnknown, statusError, statusStopped, statusStarting} {
		if rows[i].Status != want || rows[i].StatusText == "" {
			t.Errorf("%+v", rows[i])
		}
	}
	if rows[0].LastRefresh != "1970-01-01T00:00:07.000000Z" || rows[3].LastRefresh != "1970-01-01T00:01:00.000000Z" {
		t.Errorf("%s, %s", rows[0].LastRefresh, rows[3].LastRefresh)
	}
	for args, count := range map[string]int{
		`{"host": "well", "later": 1}`: 1, `{"daemon_id": "served"}`: 1,
		`{"daemon_type": "osd"}`: 0, `{"daemon_type": "mgr"}`: 4, `{"service_name": "mgr"}`: 4,
	} {
		if rows := rowsOf[describedDaemon](t, "list_daemons", call(args)); len(rows) != count {
			t.Errorf("%s: %+v", args, rows)
		}
	}
}

// inventory is a row of get_inventory.
type inventory struct {
	Inventory
	Devices []Device `json:"devices"`
}

// TestRows: a row that was encoded is of the object's version, and of what else it depends on; the
// time in it is that of the answer.
func TestRows(t *testing.T) {
	c := call("{}")
	c.Rows = &Rows{}
	host, daemon := &c.View.Hosts[3], &c.View.Daemons[3]
	host.UID, host.ResourceVersion, daemon.UID, daemon.ResourceVersion = "h", "1", "d", "1"
	host.Status.Devices = []api.Device{{ID: "sda", Kind: api.DeviceDisk, Availability: api.DeviceAvailable}}
	ask := func() (inventory, describedDaemon) {
		return rowsOf[inventory](t, "get_inventory", c)[3], rowsOf[describedDaemon](t, "list_daemons", c)[3]
	}
	i, d := ask()
	if len(i.Devices) != 1 || i.Devices[0].Path != "sda" || i.Addr != "10.0.0.9" || d.Status != statusStarting {
		t.Fatalf("%+v, %+v", i, d)
	}
	host.Status.Devices[0].Path, daemon.Status.State, c.Now = "/dev/sda", api.DaemonRunning, time.Unix(90, 0)
	const now = "1970-01-01T00:01:30.000000Z"
	if i, d := ask(); i.Devices[0].Path != "sda" || d.Status != statusStarting {
		t.Errorf("encoded again: %+v, %+v", i, d)
	} else if i.Created != now || d.LastRefresh != now {
		t.Errorf("not of now: %+v, %+v", i, d)
	}
	host.ResourceVersion, daemon.ResourceVersion = "2", "2"
	if i, d := ask(); i.Devices[0].Path != "/dev/sda" || d.Status != statusRunning {
		t.Errorf("not of the new version: %+v, %+v", i, d)
	}
	silent := metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}
	host.Status.Conditions = []metav1.Condition{silent}
	daemon.Spec.Parameters = map[string]string{paramAddress: "10.0.0.7"}
	if i, d := ask(); d.Status != statusUnknown || i.Addr != "10.0.0.7" {
		t.Errorf("not as beside it: %+v, %+v", i, d)
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
