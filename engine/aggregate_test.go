package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func daemonOn(host string, state api.DaemonState, ended bool) api.Daemon {
	d := api.Daemon{Spec: api.DaemonSpec{Type: "x", Host: host, State: api.WantRunning}, Status: api.DaemonStatus{State: state}}
	if ended {
		d.Status.LastExit = &api.DaemonExit{Reason: "exit code 1"}
	}
	return d
}

func TestHostsDown(t *testing.T) {
	stopped := daemonOn("h", api.DaemonStopped, true)
	stopped.Spec.State = api.WantStopped
	leaving := daemonOn("h", api.DaemonStopping, true)
	leaving.DeletionTimestamp = &metav1.Time{}
	for _, tt := range []struct {
		name    string
		daemons []api.Daemon
		want    bool
	}{
		{"nothing", nil, false},
		{"on its way for the first time", []api.Daemon{daemonOn("h", api.DaemonPreparing, false)}, false},
		{"never came up", []api.Daemon{daemonOn("h", api.DaemonFailed, false)}, false},
		{"all ended", []api.Daemon{daemonOn("h", api.DaemonBackOff, true), daemonOn("h", api.DaemonFailed, true)}, true},
		{"one runs", []api.Daemon{daemonOn("h", api.DaemonBackOff, true), daemonOn("h", api.DaemonRunning, false)}, false},
		{"stopped as wanted", []api.Daemon{stopped}, false},
		{"being removed", []api.Daemon{leaving}, false},
		{"another host's", []api.Daemon{daemonOn("g", api.DaemonBackOff, true)}, false},
	} {
		if got := hostsDown(tt.daemons)["h"]; got != tt.want {
			t.Errorf("%s: down = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestKeepStale(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	old := func(health string, since *metav1.Time) *View {
		return &View{Cluster: &api.StorageCluster{}, Status: &api.StorageStatus{Status: api.StorageStatusStatus{
			Health: health, StaleSince: since, Nodes: 3, Ceph: &api.CephStatus{OSDs: 7},
		}}}
	}
	earlier := metav1.NewTime(now.Add(-time.Hour))
	leaving := old("OK", nil)
	leaving.Cluster.DeletionTimestamp = &earlier
	for _, tt := range []struct {
		name   string
		view   *View
		health string
		want   string
	}{
		{"answers", old("OK", &earlier), "WARN", "WARN 0 <nil>"},
		{"never answered", old("", nil), "", " 0 <nil>"},
		{"before there is a status", &View{Cluster: &api.StorageCluster{}}, "", " 0 <nil>"},
		{"falls silent", old("OK", nil), "", "OK 3 " + now.String()},
		{"stays silent", old("OK", &earlier), "", "OK 3 " + earlier.String()},
		{"is being deleted", leaving, "", " 0 <nil>"},
	} {
		s := keepStale(tt.view, api.StorageStatusStatus{Health: tt.health}, now)
		since := "<nil>"
		if s.StaleSince != nil {
			since = s.StaleSince.String()
		}
		if got := fmt.Sprintf("%s %d %s", s.Health, s.Nodes, since); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCountDaemons(t *testing.T) {
	a, b, c := daemonOn("h1", api.DaemonRunning, false), daemonOn("h2", api.DaemonBackOff, true), daemonOn("h3", api.DaemonRunning, false)
	a.Status.Version, b.Status.Version, c.Status.Version = "1", "1", "2"
	planned := daemonOn("h4", "", false)
	got := countDaemons(&View{Daemons: []api.Daemon{a, b, c}}, &Plan{Daemons: []DaemonChange{{Daemon: planned, New: true}, {Daemon: a}}})
	want := []api.DaemonCount{
		{Type: "x", Wanted: 1}, {Type: "x", Version: "1", Wanted: 2, Running: 1}, {Type: "x", Version: "2", Wanted: 1, Running: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
