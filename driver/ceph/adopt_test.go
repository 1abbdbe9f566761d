package ceph

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

const adoptedFSID = "11111111-2222-3333-4444-555555555555"

// byHand is a cluster of three hosts that somebody has made: mon, mgr and OSD of each are named after it.
func byHand() AdoptRequest {
	w := newWorld(3, 2)
	r := AdoptRequest{Namespace: "default", Name: "c", Conf: map[string]map[string]string{"global": {"fsid": adoptedFSID}}}
	r.Facts = &AdoptFacts{FSID: adoptedFSID, Health: healthOK, Keys: map[string]CephKey{}, Settings: map[string]string{}}
	for i := 1; i <= 3; i++ {
		h := w.host(i, 2)
		ip := h.Status.Addresses[0]
		osd := ClusterDaemon{Type: TypeOSD, ID: fmt.Sprint(i), Addrs: "[v2:" + ip + ":6800/1,v1:" + ip + ":6801/1]", UUID: fmt.Sprintf("uuid-%d", i), Path: "/dev/sdb", Store: "bluestore"}
		mon := ClusterDaemon{Type: TypeMon, ID: h.Name, Addrs: "[v2:" + ip + ":3300/0,v1:" + ip + ":6789/0]"}
		mgr := ClusterDaemon{Type: TypeMgr, ID: h.Name, Addrs: ip + ":0/7", Active: i == 2}
		for k, d := range []*ClusterDaemon{&mon, &mgr, &osd} {
			d.Host, d.Version, d.Up, d.Options = h.Name, "16.2.15", true, map[string]string{}
			h.Status.Foreign = append(h.Status.Foreign, api.ForeignDaemon{
				Type: d.Type, ID: d.ID, PID: int32(10*i + k), Cluster: adoptedFSID, Data: "/var/lib/ceph/" + kindOf(d.Type) + "/ceph-" + d.ID, Unit: d.Type + "@" + d.ID + ".service",
			})
			r.Facts.Daemons = append(r.Facts.Daemons, *d)
			r.Facts.Keys[d.Label()] = CephKey{Key: "k" + d.ID}
		}
		h.Status.Packages = map[string]api.Release{TypeMon: "16.2.15", TypeMgr: "16.2.15", TypeOSD: "16.2.15"}
		h.Status.Devices[0].Ceph = &api.DeviceCeph{FSID: adoptedFSID, OSDUUID: osd.UUID}
		h.Status.Devices[0].Availability = api.DeviceUnavailable
	}
	r.Facts.Keys[entityMon], r.Facts.Keys[entityAdmin] = CephKey{Key: "km"}, CephKey{Key: "ka", Caps: map[string]string{"mon": "allow *"}}
	r.Hosts = w.hosts
	return r
}

// daemonOf is one of the request's.
func (r *AdoptRequest) daemonOf(label string) *ClusterDaemon {
	i := slices.IndexFunc(r.Facts.Daemons, func(d ClusterDaemon) bool { return d.Label() == label })
	return &r.Facts.Daemons[i]
}

func TestAdopt(t *testing.T) {
	r := byHand()
	r.Conf["global"]["osd_memory_target"], r.Conf["global"]["mon_host"], r.Conf["global"]["public_network"] = "2G", "10.0.0.1", "10.0.0.0/8"
	r.Conf["osd.3"] = map[string]string{"host": "h3", "osd_max_backfills": "1"}
	r.Conf["client.rgw.a"] = map[string]string{"rgw_keystone_admin_password": "hush"}
	r.Conf["odd section"] = map[string]string{"x": "y"}
	r.Facts.Settings = map[string]string{"auth_allow_insecure_global_id_reclaim": "true", "osd_pool_default_size": "3"}
	x := Adopt(r)
	if len(x.Problems) > 0 {
		t.Fatalf("%q", x.Problems)
	}
	if len(x.Daemons) != 9 || len(x.Nodes) != 3 || len(x.Secrets) != 11 || len(x.Rows) != 9 {
		t.Errorf("%d Daemons, %d nodes, %d Secrets, %d rows", len(x.Daemons), len(x.Nodes), len(x.Secrets), len(x.Rows))
	}
	for i := range x.Daemons {
		d := &x.Daemons[i]
		if d.Spec.State != api.WantWatched || d.Spec.Parameters[api.ParameterForeign] != adoptedFSID || d.Spec.OnRemoval == api.DeletionWipe && d.Spec.Type != TypeMgr {
			t.Errorf("%s: %+v", d.Name, d.Spec)
		}
	}
	want := map[string]api.CephOptions{
		"global": {"osd_memory_target": "2G", "auth_allow_insecure_global_id_reclaim": "true"}, "osd.3": {"osd_max_backfills": "1"},
	}
	if diff := cmp.Diff(want, x.Cluster.Spec.Ceph.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if text := strings.Join(x.Notes, "\n"); !strings.Contains(text, "[odd section] x") || !strings.Contains(text, "[client.rgw.a] rgw_keystone_admin_password") {
		t.Error(text)
	}
	mon := x.Daemons[0]
	if mon.Name != "c-mon-h1" || mon.Spec.Parameters[ParamForeignStore] != "/var/lib/ceph/mon/ceph-h1" || mon.Spec.Parameters[ParamMonFounded] == "" {
		t.Errorf("%+v", mon)
	}
	row := AdoptRow{"h3", "osd.3", "/var/lib/ceph/osd/ceph-3", "wwn-30 (/dev/sdb)", "the unit ceph-osd@3.service", "32", "daemon/c-osd-3"}
	if diff := cmp.Diff(row, x.Rows[8]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
}

// TestAdopt_watched plans for what was adopted: nothing is wanted of it. A plan of the cluster as handed over wants nothing either, beside what is to be
// stored in Ceph's configuration.
func TestAdopt_watched(t *testing.T) {
	x := Adopt(byHand())
	view := &engine.View{Cluster: &x.Cluster, Nodes: x.Nodes, Hosts: byHand().Hosts, Daemons: x.Daemons}
	for _, s := range x.Secrets {
		view.Secrets = append(view.Secrets, engine.SecretInfo{Name: s.Name, Annotations: s.Annotations})
	}
	view.AddNeighbours(x.Nodes, func(map[string]bool) []*api.Daemon { return nil }, []api.StorageCluster{x.Cluster})
	d := &Driver{}
	if p := d.Plan(view, testTime); !p.Empty() || p.Refused {
		t.Errorf("while it is watched: %+v", p)
	}
	for i := range view.Daemons {
		view.Daemons[i].Spec.State = api.WantRunning
		if i == 0 {
			if p := d.Plan(view, testTime); !p.Empty() {
				t.Errorf("while the first is handed over: %+v", p)
			}
		}
	}
	if p := d.Plan(view, testTime); !p.Empty() || p.Refused {
		t.Errorf("when all is handed over: %+v", p.Decisions)
	}
	view.Daemons[0].Spec.State, view.Hosts[1].Spec.Mode = api.WantWatched, api.HostMaintenance
	if p := d.Plan(view, testTime); !p.Empty() || word(decisions(p, api.VerdictRefuse), "host/h2") == "" {
		t.Errorf("a host may be switched off whose daemons nobody stops: %+v", p.Decisions)
	}
	view.Hosts[1].Spec.Mode = api.HostActive
	view.Daemons = nil
	if p := d.Plan(view, testTime); !p.Empty() {
		t.Errorf("a cluster that was adopted is founded anew: %+v", p)
	}
}

// TestAdopt_again looks at a cluster of which a part is handed over, and some was added by hand: what is Holdfast's stays, what is new is watched.
func TestAdopt_again(t *testing.T) {
	r := byHand()
	first := Adopt(r)
	r.Clusters = []api.StorageCluster{first.Cluster}
	for _, d := range first.Daemons {
		if d.Spec.Host != "h1" {
			continue
		}
		d.Spec.State = api.WantRunning
		r.Daemons = append(r.Daemons, d)
	}
	r.Hosts[0].Status.Foreign = nil
	x := Adopt(r)
	if len(x.Problems) > 0 {
		t.Fatalf("%q", x.Problems)
	}
	if diff := cmp.Diff(first.Nodes, x.Nodes); diff != "" {
		t.Errorf("nodes:\n%s", diff)
	}
	if row := (AdoptRow{"h1", "osd.1", "-", "-", "Holdfast", "0", "stays daemon/c-osd-1"}); !slices.Contains(x.Rows, row) {
		t.Errorf("%+v", x.Rows)
	}
}

// onVolumes has osd.1 lie on logical volumes, as ceph-volume makes them: its data on one of the first disk, its database on one of the second.
func onVolumes(r *AdoptRequest) {
	r.daemonOf("osd.1").Apart = []string{DeviceDB}
	have := r.Hosts[0].Status.Devices
	uuid := have[0].Ceph.OSDUUID
	have[0].Ceph, have[0].Holders, have[1].Holders = nil, []string{"dm-0"}, []string{"dm-1"}
	volume := func(n, part string) api.Device {
		return api.Device{
			ID: volumePrefix + strings.Repeat(n, 64), Path: "/dev/dm-" + n, Kind: api.DeviceMapped, Availability: api.DeviceUnavailable,
			Ceph: &api.DeviceCeph{FSID: adoptedFSID, OSDUUID: uuid, Part: part},
		}
	}
	r.Hosts[0].Status.Devices = append(have, volume("0", ""), volume("1", "db"))
}

// sealDevices has the volumes of osd.1 encrypted, and open.
func sealDevices(r *AdoptRequest) {
	onVolumes(r)
	r.Facts.DeviceKeys = map[string]string{"uuid-1": "a key of the mons'"}
	for n := range 2 {
		lies := &r.Hosts[0].Status.Devices[2+n]
		open := api.Device{ID: fmt.Sprintf("%s%d-x", sealedPrefix, n), Path: fmt.Sprintf("/dev/dm-%d", 2+n), Kind: api.DeviceMapped, Availability: api.DeviceUnavailable, Ceph: lies.Ceph}
		lies.Ceph, lies.Holders, lies.Filesystem = nil, []string{path.Base(open.Path)}, &api.DeviceFilesystem{Type: "crypto_LUKS"}
		r.Hosts[0].Status.Devices = append(r.Hosts[0].Status.Devices, open)
	}
}

// TestAdopt_encrypted adopts an OSD on volumes that ceph-volume has encrypted, with the key that the mons have; also one that was in Holdfast's hands before.
func TestAdopt_encrypted(t *testing.T) {
	r := byHand()
	sealDevices(&r)
	for range 2 {
		x := Adopt(r)
		if len(x.Problems) > 0 {
			t.Fatalf("%q", x.Problems)
		}
		i := slices.IndexFunc(x.Daemons, func(d api.Daemon) bool { return d.Name == "c-osd-1" })
		want := []api.DaemonDevice{
			{Name: DeviceBlock, ID: volumePrefix + strings.Repeat("0", 64), KeySecret: "c-key-osd.1"}, {Name: DeviceDB, ID: volumePrefix + strings.Repeat("1", 64), KeySecret: "c-key-osd.1"},
		}
		if diff := cmp.Diff(want, x.Daemons[i].Spec.Devices); diff != "" {
			t.Errorf("devices (-want +got):\n%s", diff)
		}
		j := slices.IndexFunc(x.Secrets, func(s AdoptedSecret) bool { return s.Name == "c-key-osd.1" })
		if got := string(x.Secrets[j].Data[api.KeyLUKS]); got != "a key of the mons'" {
			t.Errorf("the key is %q", got)
		}
		if row := x.Rows[2]; row.Device != "/dev/dm-0, LVM on wwn-10, encrypted, db: /dev/dm-1, LVM on wwn-11, encrypted" {
			t.Errorf("%+v", row)
		}
		r.Hosts[0].Status.Devices[2].Ceph = r.Hosts[0].Status.Devices[4].Ceph // its header says so
	}
}

// TestAdopt_volumes adopts an OSD on logical volumes: its Daemon has both, its node the one with its data, and the plan after the hand-over keeps it so.
func TestAdopt_volumes(t *testing.T) {
	r := byHand()
	onVolumes(&r)
	half := r.Hosts[0].Status.Devices[2] // of a mirror
	half.ID, half.Path, half.Holders = half.ID+"-rimage_0", "/dev/dm-7", []string{"dm-0"}
	r.Hosts[0].Status.Devices[0].Holders = []string{"dm-0", "dm-7"}
	r.Hosts[0].Status.Devices = append(r.Hosts[0].Status.Devices, half)
	x := Adopt(r)
	if len(x.Problems) > 0 {
		t.Fatalf("%q", x.Problems)
	}
	data, db := volumePrefix+strings.Repeat("0", 64), volumePrefix+strings.Repeat("1", 64)
	i := slices.IndexFunc(x.Daemons, func(d api.Daemon) bool { return d.Name == "c-osd-1" })
	want := []api.DaemonDevice{{Name: DeviceBlock, ID: data}, {Name: DeviceDB, ID: db}}
	if diff := cmp.Diff(want, x.Daemons[i].Spec.Devices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{data}, x.Nodes[0].Spec.Devices); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	if row := x.Rows[2]; row.Device != "/dev/dm-0, LVM on wwn-10 and "+half.ID+", db: /dev/dm-1, LVM on wwn-11" {
		t.Errorf("%+v", row)
	}
	view := &engine.View{Cluster: &x.Cluster, Nodes: x.Nodes, Hosts: r.Hosts, Daemons: x.Daemons}
	for _, s := range x.Secrets {
		view.Secrets = append(view.Secrets, engine.SecretInfo{Name: s.Name, Annotations: s.Annotations})
	}
	for i := range view.Daemons {
		view.Daemons[i].Spec.State = api.WantRunning
	}
	view.AddNeighbours(x.Nodes, func(map[string]bool) []*api.Daemon { return nil }, []api.StorageCluster{x.Cluster})
	if p := (&Driver{}).Plan(view, testTime); !p.Empty() || p.Refused {
		t.Errorf("when all is handed over: %+v", p.Decisions)
	}
	r.Daemons = view.Daemons // handed over by now, and looked at again
	r.Clusters = []api.StorageCluster{x.Cluster}
	again := Adopt(r)
	if diff := cmp.Diff(x.Nodes, again.Nodes); diff != "" || len(again.Problems) > 0 {
		t.Errorf("again: %q\n%s", again.Problems, diff)
	}
}

func TestAdopt_refused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*AdoptRequest)
		want   string
	}{
		"another cluster of the name": {func(r *AdoptRequest) {
			r.Clusters = []api.StorageCluster{*newWorld(3, 2).cluster}
		}, "storagecluster/c is another cluster"},
		"known under another name": {func(r *AdoptRequest) {
			c := newWorld(3, 2).cluster
			c.Name, c.Annotations = "other", map[string]string{AnnotationAdopted: adoptedFSID}
			r.Clusters = []api.StorageCluster{*c}
		}, "is already storagecluster/other"},
		"keys of another cluster": {func(r *AdoptRequest) {
			r.Secrets = []engine.SecretInfo{{Name: "c-key-mon", Annotations: map[string]string{AnnotationFSID: "x"}}}
		}, "belong to another Ceph cluster"},
		"another ceph.conf": {func(r *AdoptRequest) { r.Conf["global"]["fsid"] = "x" }, "give the right file"},
		"without cephx":     {func(r *AdoptRequest) { r.Conf["global"]["auth_cluster_required"] = "none" }, "cephx"},
		"old release":       {func(r *AdoptRequest) { each(r, func(d *ClusterDaemon) { d.Version = "15.2.17" }) }, "supports the releases 16 to"},
		"in an upgrade":     {func(r *AdoptRequest) { r.daemonOf("osd.1").Version = "18.2.7" }, "finish the upgrade"},
		"no host":           {func(r *AdoptRequest) { r.Hosts = r.Hosts[:2] }, "runs on h3, which is not a host"},
		"a silent manager":  {func(r *AdoptRequest) { r.daemonOf("osd.2").Options = nil }, "the mgr has no configuration of osd.2"},
		"not seen":          {func(r *AdoptRequest) { r.Hosts[2].Status.Foreign = nil }, "does not see its process"},
		"down":              {func(r *AdoptRequest) { r.daemonOf("osd.1").Up = false; r.Hosts[0].Status.Foreign = nil }, "osd.1 does not run"},
		"container":         {func(r *AdoptRequest) { r.Hosts[0].Status.Foreign[0].Container = true }, "cannot adopt mon.h1 on h1: it runs in a container"},
		"unit":              {func(r *AdoptRequest) { r.Hosts[0].Status.Foreign[2].Unit = "mine.service" }, "its unit mine.service"},
		"another address":   {func(r *AdoptRequest) { r.daemonOf("mon.h1").Addrs = "[v2:10.9.9.9:3300/0,v1:10.9.9.9:6789/0]" }, "not an address of host h1"},
		"v1 alone":          {func(r *AdoptRequest) { r.daemonOf("mon.h1").Addrs = "[v1:10.0.0.1:6789/0]" }, "enable-msgr2"},
		"name": {func(r *AdoptRequest) {
			r.daemonOf("mgr.h1").ID = "H_1"
			r.Hosts[0].Status.Foreign[1].ID, r.Hosts[0].Status.Foreign[1].Unit = "H_1", ""
		}, `"H_1" is not a valid name`},
		"older packages":     {func(r *AdoptRequest) { r.Hosts[0].Status.Packages[TypeOSD] = "16.2.9" }, "the host has the older 16.2.9"},
		"no packages":        {func(r *AdoptRequest) { r.Hosts[0].Status.Packages = nil }, "host h1 has no executable ceph-mon"},
		"FileStore":          {func(r *AdoptRequest) { r.daemonOf("osd.1").Store = "filestore" }, "only BlueStore"},
		"mapped":             {func(r *AdoptRequest) { r.Hosts[0].Status.Devices[0].Kind = api.DeviceMapped }, "only logical volumes and LUKS are"},
		"RAID":               {func(r *AdoptRequest) { r.Hosts[0].Status.Devices[0].Kind = api.DeviceRaid }, "only logical volumes and LUKS are"},
		"DB in a file":       {func(r *AdoptRequest) { r.daemonOf("osd.1").Apart = []string{DeviceDB} }, "the label of its block.db"},
		"LUKS 1":             {func(r *AdoptRequest) { sealDevices(r); r.Hosts[0].Status.Devices[4].ID = "dm-CRYPT-LUKS1-1-1" }, "cryptsetup convert"},
		"no key of a device": {func(r *AdoptRequest) { sealDevices(r); r.Facts.DeviceKeys = nil }, "the mons do not have its key"},
		"half encrypted": {func(r *AdoptRequest) {
			sealDevices(r)
			all := r.Hosts[0].Status.Devices
			all[3].Ceph, all[3].Filesystem, all[3].Holders, r.Hosts[0].Status.Devices = all[5].Ceph, nil, nil, all[:5]
		}, "only some of its devices are encrypted"},
		"encrypted on what?": {func(r *AdoptRequest) { sealDevices(r); r.Hosts[0].Status.Devices[2].Holders = nil }, "does not find the device under it"},
		"DB twice": {func(r *AdoptRequest) {
			onVolumes(r)
			r.Hosts[0].Status.Devices[1].Ceph, r.Hosts[0].Status.Devices[1].Holders = r.Hosts[0].Status.Devices[3].Ceph, nil
		}, "have the same label"},
		"in a file":          {func(r *AdoptRequest) { r.Hosts[0].Status.Devices[0].Ceph = nil }, "no device of the host has its label"},
		"twice":              {func(r *AdoptRequest) { r.Hosts[0].Status.Devices[1].Ceph = r.Hosts[0].Status.Devices[0].Ceph }, "have the same label"},
		"no identity":        {func(r *AdoptRequest) { r.Hosts[0].Status.Devices[0].ID = "unstable-sdb" }, "no persistent id"},
		"two mons":           {func(r *AdoptRequest) { r.Facts.Daemons = r.Facts.Daemons[:6] }, "has 2 mons"},
		"no store of a mon":  {func(r *AdoptRequest) { r.Hosts[0].Status.Foreign[0].Data = "" }, "the store of mon.h1"},
		"a mon of two hosts": {func(r *AdoptRequest) { r.daemonOf("mon.h1").Addrs = "nonsense" }, "listens on nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			r := byHand()
			c.change(&r)
			x := Adopt(r)
			if text := strings.Join(x.Problems, "\n"); !strings.Contains(text, c.want) {
				t.Errorf("not refused for %q, but: %s", c.want, text)
			}
		})
	}
}

func each(r *AdoptRequest, change func(*ClusterDaemon)) {
	for i := range r.Facts.Daemons {
		change(&r.Facts.Daemons[i])
	}
}

func TestIPOf(t *testing.T) {
	for addrs, want := range map[string]string{
		"[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]": "10.0.0.1", "[v1:10.0.0.1:6789/0]": "10.0.0.1", "10.0.0.1:0/17": "10.0.0.1",
		"[v2:[fd00::1]:3300/0,v1:[fd00::1]:6789/0]": "fd00::1", "[]": "", "": "", "nonsense": "",
	} {
		if got := ipOf(addrs); got != want {
			t.Errorf("%q: %q, want %q", addrs, got, want)
		}
	}
}

// TestAdoption_Foresee_noAnswer: a plan that Ceph did not answer for foresees nothing.
func TestAdoption_Foresee_noAnswer(t *testing.T) {
	r := byHand()
	var waited []time.Duration
	d := &Driver{FirstAnswer: time.Second, Dial: func(rados.Config) rados.Client { return alone{waited: &waited} }}
	if plan, err := Adopt(r).Foresee(t.Context(), d, r.Hosts, nil, time.Now()); !errors.Is(err, rados.ErrNoAnswer) {
		t.Errorf("plan %+v, error %v: want that there is no answer", plan, err)
	}
}
