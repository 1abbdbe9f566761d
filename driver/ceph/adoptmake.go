package ceph

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// count is how many daemons of a type the cluster has.
func (x *adopter) count(daemonType string) (n int) {
	for i := range x.Facts.Daemons {
		if x.Facts.Daemons[i].Type == daemonType {
			n++
		}
	}
	return n
}

// checkCounts refuses numbers that cannot be declared.
func (x *adopter) checkCounts() {
	hosts := map[string]string{}
	if n := x.count(TypeMon); n%2 == 0 || n > 9 {
		x.problem("cannot adopt: the cluster has %s, but the number must be odd and at most 9; add or remove one first",
			words.Plural(n, "mon"))
	}
	if n := x.count(TypeMgr); n == 0 || n > 5 {
		x.problem("cannot adopt: the cluster has %s, but one to five are supported", words.Plural(n, "mgr"))
	}
	for _, m := range x.members {
		if other := hosts[m.Host]; other != "" {
			x.problem("cannot adopt: mon.%s and mon.%s are both on host %s, but each mon needs a host of its own; remove "+
				"one of them first", other, m.ID, m.Host)
		}
		hosts[m.Host] = m.ID
	}
}

// leaveAlone tells of what Ceph has beside mons, managers and OSDs.
func (x *adopter) leaveAlone() {
	if len(x.Facts.Others) > 0 {
		x.note("left unchanged: %s; Holdfast does not adopt filesystems, object stores and their daemons",
			strings.Join(x.Facts.Others, ", "))
	}
	if x.Facts.Health != healthOK {
		x.note("the cluster is in state %s: you can adopt it now; the hand-over waits until all placement groups are "+
			"active+clean", x.Facts.Health)
	}
}

func (x *adopter) cluster() api.StorageCluster {
	c := api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name, Annotations: map[string]string{AnnotationAdopted: x.Facts.FSID}},
		Spec:       api.StorageClusterSpec{Type: api.StorageCeph, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain, Ceph: &api.CephSpec{Config: x.config()}},
	}
	c.Spec.Network = api.NetworkSpec{Public: firstOf(x.Conf["global"]["public_network"]), Cluster: firstOf(x.Conf["global"]["cluster_network"])}
	c.Spec.Ceph.Mon.Count, c.Spec.Ceph.Mgr.Count = int32(x.count(TypeMon)), int32(x.count(TypeMgr))
	return c
}

// firstOf is the first of several networks: Holdfast knows one.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}

// nodes are the StorageNodes that stand for what there is.
func (x *adopter) nodes() []api.StorageNode {
	var nodes []api.StorageNode
	for _, host := range slices.Sorted(maps.Keys(x.addresses)) {
		nodes = append(nodes, api.StorageNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.Namespace, Name: x.Name + "-" + host, Annotations: map[string]string{AnnotationAdopted: x.Facts.FSID}},
			Spec: api.StorageNodeSpec{
				Type: api.StorageCeph, Cluster: x.Name, NodeSelector: map[string]string{api.LabelHostname: host},
				StorageNetwork: api.StorageNetwork{IPs: []string{x.addresses[host]}}, Devices: x.devices[host],
			},
		})
	}
	return nodes
}

// secrets are the keys that the cluster has. The annotation with the UID of the StorageCluster is set when there is one.
func (x *adopter) secrets() []AdoptedSecret {
	var all []AdoptedSecret
	for _, entity := range slices.Sorted(maps.Keys(x.Facts.Keys)) {
		k := x.Facts.Keys[entity]
		s := AdoptedSecret{
			Name:        secretName(x.Name, entity),
			Annotations: map[string]string{AnnotationEntity: entity, AnnotationFSID: x.Facts.FSID},
			Data:        map[string][]byte{secretKey: []byte(k.Key), secretKeyring: []byte(cephx.Keyring(entity, k.Key, k.Caps))},
		}
		if key := x.deviceKey(entity); key != "" {
			s.Data[api.KeyLUKS] = []byte(key)
		}
		all = append(all, s)
	}
	return all
}

// deviceKey is what the devices of an OSD are opened with, if they are encrypted.
func (x *adopter) deviceKey(entity string) string {
	for i := range x.Facts.Daemons {
		if d := &x.Facts.Daemons[i]; d.Label() == entity {
			return x.Facts.DeviceKeys[strings.ToLower(d.UUID)]
		}
	}
	return ""
}

// daemons are the Daemons as plans of the cluster make them, but that they are only watched.
func (x *adopter) daemons() []api.Daemon {
	view := &engine.View{Cluster: &x.out.Cluster, Nodes: x.out.Nodes, Hosts: x.Hosts}
	p := newPlanner(view, time.Time{})
	p.fsid, p.members, p.osds = x.Facts.FSID, x.members, x.osds
	p.declareServices()
	p.planConfig()
	p.mgrs.seats = x.mgrs
	facts := p.confFacts()
	monmap, monHosts := monset.Params(p.members)
	var all []api.Daemon
	for _, m := range p.members {
		d := p.monDaemon(m, facts, monmap, monHosts)
		d.Spec.Parameters[ParamMonFounded], d.Spec.Parameters[ParamForeignStore] = "true", x.stores[m.ID]
		all = append(all, d)
	}
	for _, m := range p.mgrs.seats {
		all = append(all, p.mgrDaemon(m, facts))
	}
	for _, o := range p.osds {
		all = append(all, p.osdDaemon(o, facts))
	}
	for i := range all {
		all[i].Spec.State = api.WantWatched
		all[i].Spec.Parameters[api.ParameterForeign] = x.Facts.FSID
	}
	return all
}
