package orch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Name is the cluster that is made up.
var Name = types.NamespacedName{Namespace: "default", Name: "ceph"}

// Store has the cluster that is made up, and no other.
type Store struct{ Cluster *engine.View }

// View implements the Store of orch/server.
func (s Store) View(_ context.Context, cluster types.NamespacedName) (*engine.View, error) {
	if cluster != Name {
		return nil, fmt.Errorf("cluster %s: %w", cluster, engine.ErrNotFound)
	}
	return s.Cluster, nil
}

// NewView makes up a cluster of so many hosts and so many disks on each, with a service of each
// kind. Half of the disks are OSDs.
func NewView(hosts, disks int) *engine.View {
	v := &engine.View{Cluster: &api.StorageCluster{ObjectMeta: meta(Name.Name)}}
	v.Cluster.Spec.Type, v.Cluster.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	v.Cluster.Spec.Ceph.Mon.Count, v.Cluster.Spec.Ceph.Mgr.Count = 3, 2
	for i := range hosts {
		addHost(v, i, disks)
	}
	for i, id := range []string{"a", "b", "c"} {
		addDaemon(v, "ceph-mon", id, i, nil)
	}
	addDaemon(v, "ceph-mgr", "a", 0, nil)
	addDaemon(v, "ceph-mgr", "b", 1, nil)
	addDaemon(v, "ceph-mds", "home-a", 0, nil)
	addDaemon(v, "ceph-mds", "home-b", 1, nil)
	addDaemon(v, "ceph-rgw", "s3-a", 0, map[string]string{"store": "s3", "url": "http://10.0.0.1:7480"})
	addDaemon(v, "ceph-rbd-mirror", "a", 0, nil)
	v.Resources = resources(v)
	return v
}

func meta(name string) metav1.ObjectMeta {
	created := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return metav1.ObjectMeta{Namespace: Name.Namespace, Name: name, CreationTimestamp: created}
}

func hostName(i int) string { return fmt.Sprintf("h%d", i+1) }

func addHost(v *engine.View, i, disks int) {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: hostName(i)}}
	h.Labels = map[string]string{wire.LabelPrefix + "gw": ""}
	h.Status.Addresses = []string{addressOf(i)}
	for n := range disks {
		d := api.Device{
			ID: fmt.Sprintf("disk-%d-%d", i, n), Path: fmt.Sprintf("/dev/sd%c", 'a'+n%26), Kind: api.DeviceDisk,
			Size: *resource.NewQuantity(4_000_787_030_016, resource.BinarySI), Model: "X", Vendor: "Y",
			Media: api.MediaRotational, Availability: api.DeviceAvailable,
		}
		if n%2 == 0 {
			osd := len(v.Daemons)
			d.Availability, d.Reasons = api.DeviceUnavailable, []string{fmt.Sprintf("holds OSD %d", osd)}
			d.Ceph = &api.DeviceCeph{OSDID: ptr.To(int32(osd))}
			addDaemon(v, "ceph-osd", fmt.Sprint(osd), i, nil)
			v.Daemons[osd].Spec.Devices = []api.DaemonDevice{{Name: "block", ID: d.ID}}
		}
		h.Status.Devices = append(h.Status.Devices, d)
	}
	v.Hosts = append(v.Hosts, h)
	node := api.StorageNode{ObjectMeta: meta("ceph-" + h.Name)}
	node.Spec.Cluster, node.Status.Host = Name.Name, h.Name
	v.Nodes = append(v.Nodes, node)
}

func addressOf(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255+1) }

func addDaemon(v *engine.View, kind, id string, host int, parameters map[string]string) {
	d := api.Daemon{ObjectMeta: meta(fmt.Sprintf("ceph-%s-%s", kind[len("ceph-"):], id))}
	d.Spec = api.DaemonSpec{Cluster: Name.Name, Type: kind, ID: id, Host: hostName(host), State: api.WantRunning}
	d.Spec.Parameters = map[string]string{"address": addressOf(host)}
	for k, value := range parameters {
		d.Spec.Parameters[k] = value
	}
	started := metav1.NewMicroTime(time.Unix(1_700_000_100, 0))
	d.Status = api.DaemonStatus{State: api.DaemonRunning, Version: "16.2.15", PID: 7, Started: &started}
	v.Daemons = append(v.Daemons, d)
}

// resources are one of each kind that 'ceph orch' shows as a service.
func resources(v *engine.View) []api.Resource {
	fs := &api.Filesystem{ObjectMeta: meta("home")}
	fs.Spec.ActiveMDS, fs.Spec.StandbyMDS = 1, ptr.To(int32(1))
	fs.Spec.Placement.Hosts = []string{"h1", "h2"}
	store := &api.ObjectStore{ObjectMeta: meta("s3")}
	store.Spec.Gateways.Placement = api.Placement{
		Count: ptr.To(int32(1)), HostSelection: api.HostSelection{Labels: map[string]string{wire.LabelPrefix + "gw": ""}},
	}
	mirror := &api.RBDMirror{ObjectMeta: meta("mirror")}
	mirror.Spec.Placement = api.Placement{Count: ptr.To(int32(1)), HostSelection: api.HostSelection{Pattern: "h*"}}
	all := []api.Resource{fs, store, mirror}
	engine.SortResources(all)
	return all
}
