package ceph

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
	"github.com/holdfast-storage/holdfast/test/situations"
)

func exportOf(name, filesystem string) *api.NFSExport {
	e := &api.NFSExport{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}}
	e.Spec = api.NFSExportSpec{Cluster: "c", Filesystem: filesystem, Path: "/", Squash: api.NFSSquashNone}
	return e
}

// An export of a filesystem is served on one host with a key of its own, moves with the modes of hosts, and goes before its filesystem.
func TestNFS(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home", func(f *api.Filesystem) { f.Spec.DeletionPolicy = api.DeletionWipe }))
	f.exports = append(f.exports, exportOf("home", "home"))
	p := f.settle(t)
	if s := f.exports[0].Status; s.State != api.ResourceOnline || s.Source != "10.0.0.1:/home" || !p.Done {
		t.Fatalf("%+v, %v", s, p.Status.Reasons)
	}
	d := f.daemons["c-nfs-h1"]
	conf, client := *d.Spec.Files[0].Sources[0].Text, *d.Spec.Files[1].Sources[0].Text
	for _, want := range []string{`CEPH { Ceph_Conf = "${DATA}/ceph.conf"; }`, `FSAL { Name = CEPH; User_Id = "nfs.h1"; Filesystem = "home"; }`} {
		if !strings.Contains(conf, want) {
			t.Errorf("%q is missing in %s", want, conf)
		}
	}
	if !strings.Contains(client, "[client.nfs.h1]\nkeyring = ${DATA}/keyring\n") || f.ceph.Calls("auth import") == 0 || f.secrets["c-key-client.nfs.h1"].data == nil {
		t.Errorf("%s, %v", client, f.secrets["c-key-client.nfs.h1"])
	}
	f.mode(1, api.HostMaintenance)
	f.settle(t)
	if s := f.exports[0].Status; s.Source != "10.0.0.2:/home" || f.daemons["c-nfs-h1"] != nil || f.secrets["c-key-client.nfs.h1"].data != nil {
		t.Errorf("in maintenance: %+v", s)
	}
	f.mode(1, api.HostActive)
	f.settle(t)
	now := metav1.NewTime(f.now)
	f.filesystems[0].DeletionTimestamp = &now
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictWait), "filesystem/home"); got != "deletion waits: NFSExport home exports it: delete the NFSExport first" {
		t.Errorf("%q", got)
	}
	f.exports[0].DeletionTimestamp = &now
	f.mounted = []cephreport.Mount{{Entity: "nfs.h2", Host: "h2", Path: "/"}} // it ended without unmounting
	f.settle(t)
	if len(f.exports)+len(f.filesystems) > 0 || f.daemons["c-nfs-h2"] != nil || f.secrets["c-key-client.nfs.h2"].data != nil {
		t.Errorf("%v, %+v, %v", f.exports, f.filesystems[0].Status, f.mdsOn())
	}
}

// Before Ceph has the server's key there is none, and the export is told of all the same.
func TestNFS_keyFirst(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.settle(t)
	f.exports = append(f.exports, exportOf("home", "home"))
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := f.planAt(v, f.now)
	if s := p.Planned(f.exports[0]).Common(); s.State != api.ResourceCreating || s.Message == "" || len(p.Daemons) > 0 || len(p.Secrets) == 0 {
		t.Errorf("%+v; daemons %v, secrets %v", s, p.Daemons, p.Secrets)
	}
}

func TestNFS_refused(t *testing.T) {
	f := filesystemsOn(3)
	f.settle(t)
	f.exports = append(f.exports, exportOf("a", "nothing"), exportOf("b", ""))
	p := f.settle(t)
	for export, want := range map[string]string{"nfsexport/a": "cluster c has no Filesystem nothing", "nfsexport/b": "an NFSExport of a Ceph cluster needs spec.filesystem"} {
		if got := word(decisions(p, api.VerdictRefuse), export); got != want {
			t.Errorf("%s is refused for %q", export, got)
		}
	}
}

// Options for all of Ceph that count from a start have its daemons started again, but not the NFS server, which has none of them.
func TestNFS_config(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.exports = append(f.exports, exportOf("home", "home"))
	f.settle(t)
	f.config("global", api.CephOptions{"osd_op_queue": "wpq"})
	restarts := f.settleCounting(t)
	p := f.settle(t)
	if !p.Done || restarts["c-nfs-h1"] > 0 || restarts["c-osd-0"] != 1 {
		t.Errorf("%v, restarts %v", decisions(p, api.VerdictWait), restarts)
	}
}

// An NFS server that fails keeps no daemon of Ceph from being started again.
func TestNFS_failsWhileOthersRestart(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.exports = append(f.exports, exportOf("home", "home"))
	f.settle(t)
	f.broken["c-nfs-h1"] = true
	f.config("global", api.CephOptions{"osd_op_queue": "wpq"})
	if restarts := f.settleCounting(t); restarts["c-osd-0"] != 1 || restarts["c-osd-2"] != 1 {
		t.Errorf("restarts %v", restarts)
	}
}

// TestNFS_noWrites: an export passes on why the pools of its filesystem take no writes, and what to
// do.
func TestNFS_noWrites(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.exports = append(f.exports, exportOf("data", "home"))
	f.settle(t)
	f.byHand(t, "osd set", map[string]any{"key": "pausewr"})
	f.settle(t)
	if s := f.exports[0].Status; s.State != api.ResourceDegraded || s.Reason != api.ReasonClientsPaused ||
		!strings.HasPrefix(s.Message, "filesystem home is Degraded: ") ||
		!strings.Contains(s.Next, situations.Get("export-no-writes").Next) {
		t.Errorf("%+v", s)
	}
	f.byHand(t, "osd unset", map[string]any{"key": "pausewr"})
	f.settle(t)
	if s := f.exports[0].Status; s.State != api.ResourceOnline || s.Reason != "" || s.Message+s.Next != "" {
		t.Errorf("afterwards: %+v", s)
	}
}
