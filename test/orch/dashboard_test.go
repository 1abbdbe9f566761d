package orch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/orch"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// dashboard is the REST API of Ceph's dashboard.
type dashboard struct {
	t      *testing.T
	client *http.Client
	token  string
}

// request is one of the dashboard's API, and what comes of it.
type request struct {
	method, path, version string
	body                  any
	// status is that of HTTP; 0 is any good one. says is in the answer.
	status int
	says   string
}

type object = map[string]any

// requests are made in this order.
var requests = []request{
	{method: "GET", path: "/ui-api/orchestrator/status", says: `"apply_drivegroups": {"available": true}`},
	{method: "GET", path: "/ui-api/orchestrator/get_name", says: "holdfast"},
	{method: "GET", path: "/api/feature_toggles", says: "cephfs"},
	{method: "GET", path: "/api/summary", says: "mgr_id"},

	{method: "GET", path: "/api/host?facts=true&limit=10", version: "1.3", says: `"memory_total_kb": 7812500`},
	{method: "GET", path: "/api/host/h2", version: "1.2", says: `"orchestrator": true`},
	{method: "GET", path: "/api/host/h1/inventory?refresh=true", says: "disk-1-a"},
	{method: "GET", path: "/api/host/h1/devices", says: "[]"},
	{method: "GET", path: "/api/host/h1/daemons", says: "mon.a"},
	{method: "POST", path: "/api/host", version: "0.1", body: object{"hostname": "h4", "addr": "10.0.0.4"}},
	{
		method: "POST", path: "/api/host", version: "0.1", body: object{"hostname": "h9"},
		status: 400, says: "has not joined Holdfast",
	},
	{
		method: "PUT", path: "/api/host/h3", version: "0.1",
		body: object{"update_labels": true, "labels": []string{"gw"}},
	},
	{method: "GET", path: "/api/host/h3", version: "1.2", says: `"labels": ["gw"]`},
	{method: "POST", path: "/api/host/h1/identify_device", body: object{"device": "/dev/sdb", "duration": 0}},
	{method: "DELETE", path: "/api/host/h4"},
	{method: "DELETE", path: "/api/host/h1", status: 400, says: "cannot remove host h1"},
	{method: "PUT", path: "/api/host/h3", version: "0.1", body: object{"maintenance": true}},

	{method: "GET", path: "/api/service?limit=20", version: "2.0", says: "rgw.s3"},
	{method: "GET", path: "/api/service/mds.home", says: "h1"},
	{method: "GET", path: "/api/service/mds.home/daemons", says: "mds.home-a"},
	{method: "GET", path: "/api/service/known_types", says: "mds"},
	{method: "POST", path: "/api/service", body: object{"service_name": "mds.more", "service_spec": object{
		"service_type": "mds", "service_id": "more", "placement": object{"count": 2},
	}}},
	{method: "POST", path: "/api/service", body: object{"service_name": "rgw.web", "service_spec": object{
		"service_type": "rgw", "service_id": "web", "rgw_frontend_port": 7481,
		"placement": object{"count": 1, "hosts": []string{"h2"}},
	}}},
	{
		method: "POST", path: "/api/service", status: 400, says: "not supported by Holdfast",
		body: object{"service_name": "grafana", "service_spec": object{"service_type": "grafana"}},
	},
	{method: "DELETE", path: "/api/service/mds.more"},

	{method: "GET", path: "/api/daemon", says: `"daemon_name": "mgr.b"`},
	{
		method: "PUT", path: "/api/daemon/mds.home-b", version: "0.1", body: object{"action": "restart"},
		says: "Scheduled to restart mds.home-b",
	},
	{
		method: "PUT", path: "/api/daemon/mds.nosuch", version: "0.1", body: object{"action": "restart"},
		status: 400, says: "there is no daemon",
	},

	{method: "POST", path: "/api/osd", body: object{"method": "drive_groups", "tracking_id": "slow", "data": []object{{
		"service_type": "osd", "service_id": "slow", "host_pattern": "*", "data_devices": object{"rotational": true},
	}}}},
	{method: "DELETE", path: "/api/osd/0?preserve_id=true", says: ""},
	{method: "DELETE", path: "/api/osd/99?preserve_id=false", status: 400, says: "there is no daemon osd.99"},
}

// TestDashboard uses the dashboard of Ceph 20 as its web pages do.
func TestDashboard(t *testing.T) {
	tier.Full(t)
	r, h := startBoth(t, "forky")
	h.Ceph.Stick(0, true) // what leaves is still there in the end
	d := openDashboard(t, r)
	for _, q := range requests {
		d.do(q)
	}
	for name, wanted := range map[string]map[string]any{
		"DriveGroup/slow":     {"spec.placement.pattern": "*"},
		"DriveGroup/fast":     {"spec.replace": []any{"disk-1-b"}},
		"Filesystem/more":     nil,
		"ObjectStore/web":     {"spec.gateways.port": int64(7481)},
		"StorageNode/ceph-h4": nil,
	} {
		checkObject(t, h, name, wanted)
	}
	checkLog(t, r)
}

const password = "a-Password-0f-tests"

// openDashboard enables the module and logs in.
func openDashboard(t *testing.T, r *orch.Release) *dashboard {
	t.Helper()
	write(t, r, "password", password)
	for _, command := range []string{
		"config set mgr mgr/dashboard/ssl false", "config set mgr mgr/dashboard/server_addr 127.0.0.1",
		"config set mgr mgr/dashboard/server_port 8080", "mgr module enable dashboard",
	} {
		if err := says(r, command); err != nil {
			t.Fatal(err)
		}
	}
	create := "dashboard ac-user-create admin administrator --force-password -i " + filepath.Join(r.Dir, "password")
	r.Await("a user of the dashboard", func() error { return says(r, create, "admin") })
	d := &dashboard{t: t, client: r.HTTP()}
	r.Await("the dashboard", func() error {
		login := object{"username": "admin", "password": password}
		_, text, err := d.send(request{method: "POST", path: "/api/auth", body: login})
		var answer struct{ Token string }
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		if d.token = answer.Token; d.token == "" {
			return fmt.Errorf("%s, %w", text, err)
		}
		return nil
	})
	return d
}

func (d *dashboard) send(q request) (status int, text string, err error) {
	body, err := json.Marshal(q.body)
	if err != nil {
		return 0, "", err
	}
	url := "http://127.0.0.1:8080" + q.path
	hr, err := http.NewRequestWithContext(d.t.Context(), q.method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	version := q.version
	if version == "" {
		version = "1.0"
	}
	hr.Header.Set("Accept", "application/vnd.ceph.api.v"+version+"+json")
	hr.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		hr.Header.Set("Authorization", "Bearer "+d.token)
	}
	answer, err := d.client.Do(hr)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}

func (d *dashboard) do(q request) {
	d.t.Helper()
	status, text, err := d.send(q)
	good := status == q.status || q.status == 0 && status >= 200 && status < 300
	if err != nil || !good || !strings.Contains(text, q.says) || strings.Contains(text, "Traceback") {
		d.t.Errorf("%s %s %v: %d %.2000s, %v", q.method, q.path, q.body, status, text, err)
	}
}
