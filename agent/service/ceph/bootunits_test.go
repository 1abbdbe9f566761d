package ceph

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// enable makes the links that 'systemctl enable' makes.
func enable(t *testing.T, dir string, links ...string) {
	t.Helper()
	for _, link := range links {
		path := filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/lib/systemd/system/ceph-volume@.service", path); err != nil {
			t.Fatal(err)
		}
	}
}

// An OSD that ceph-disk has made is started at a boot by the unit of 'ceph-volume simple', whatever is said of its own unit. Others' are left alone.
func TestEnabledUnits(t *testing.T) {
	const uuid, other = "6cc43680-4f6e-4feb-92ff-9c7ba204120e", "0b8dbc3e-0cd3-4a3b-9b7e-4c7d1e1d3f5a"
	dir := t.TempDir()
	simple, own := "ceph-volume@simple-3-"+uuid+".service", "ceph-osd@3.service"
	enable(t, dir,
		"multi-user.target.wants/"+simple, "multi-user.target.wants/ceph-volume@simple-33-"+uuid+".service", "multi-user.target.wants/ceph-volume@simple-3-"+other+".service",
		"ceph-osd.target.wants/"+own, "ceph-osd.target.wants/ceph-osd@33.service", "ceph-mon.target.wants/ceph-mon@3.service")
	l := &service.Local{Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}}, Data: t.TempDir(), Parameters: map[string]string{paramOSDUUID: uuid}}
	if got, err := enabledUnits(dir, bootUnits(l, nil, nil)); err != nil || !slices.Equal(got, []string{own, simple}) {
		t.Errorf("of the OSD: %v, %v", got, err)
	}
	l.Daemon.Spec.Type, l.Parameters = "ceph-mon", nil
	if got, err := enabledUnits(dir, bootUnits(l, nil, nil)); err != nil || !slices.Equal(got, []string{"ceph-mon@3.service"}) {
		t.Errorf("of the mon: %v, %v", got, err)
	}
}

// On a host with two clusters the unit of a name runs the daemon of one of them. That of the other, which was started by hand, is taken over without it.
func TestBootUnits_anotherCluster(t *testing.T) {
	l := &service.Local{
		Daemon:     &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}},
		Parameters: map[string]string{paramOSDUUID: "u", api.ParameterForeign: "ours"},
	}
	volume, own := []string{"ceph-volume@simple-3-u.service", "ceph-volume@lvm-3-u.service"}, "ceph-osd@3.service"
	daemon := func(pid int32, cluster, unit string) api.ForeignDaemon {
		return api.ForeignDaemon{Type: "ceph-osd", ID: "3", PID: pid, Cluster: cluster, Unit: unit}
	}
	tests := []struct {
		name string
		all  []api.ForeignDaemon
		own  bool
	}{
		{"nothing runs", nil, true},
		{"ours by its unit, the other by hand", []api.ForeignDaemon{daemon(1, "ours", own), daemon(2, "theirs", "")}, true},
		{"both by hand", []api.ForeignDaemon{daemon(1, "ours", ""), daemon(2, "theirs", "")}, true},
		{"ours by hand, the other by the unit", []api.ForeignDaemon{daemon(1, "ours", ""), daemon(2, "theirs", own)}, false},
		{"ours has ended", []api.ForeignDaemon{daemon(2, "theirs", own)}, false},
	}
	for _, tt := range tests {
		want := volume
		if tt.own {
			want = append([]string{own}, volume...)
		}
		if got := bootUnits(l, tt.all, pick(l, tt.all)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestDisable has a systemctl that does what the real one does. What is not enabled needs none, as on machines without systemd.
func TestDisable(t *testing.T) {
	const uuid = "6cc43680-4f6e-4feb-92ff-9c7ba204120e"
	dir, bin := t.TempDir(), t.TempDir()
	l := &service.Local{Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}}, Data: t.TempDir(), Parameters: map[string]string{paramOSDUUID: uuid}}
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin)
	if err := disableEnabled(t, l, dir); err != nil {
		t.Error(err)
	}
	enable(t, dir, "multi-user.target.wants/ceph-volume@simple-3-"+uuid+".service", "ceph-osd.target.wants/ceph-osd@3.service")
	if err := disableEnabled(t, l, dir); err == nil {
		t.Error("without a systemctl they stay enabled, and nobody says so")
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1 $2\" = 'disable --now' ] || exit 1\nshift 2\nfor u; do rm %s/*.wants/$u; done\n", dir)
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+path)
	for range 2 {
		if err := disableEnabled(t, l, dir); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := enabledUnits(dir, bootUnits(l, nil, nil)); err != nil || len(left) > 0 {
		t.Errorf("%v start it again at the next boot, %v", left, err)
	}
}

// disableEnabled disables what is enabled of a daemon's units.
func disableEnabled(t *testing.T, l *service.Local, dir string) error {
	t.Helper()
	units, err := enabledUnits(dir, bootUnits(l, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	return disable(t.Context(), l, units)
}
