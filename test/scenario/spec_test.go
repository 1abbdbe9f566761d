package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// clusterInterval is the time between two orchestrations of a cluster at rest.
const clusterInterval = 10 * time.Second

// apply declares what a text says, as 'kubectl apply' does with a file: what is there is changed, what is not is made. Each
// line is a cluster or a node:
//
//	cluster NAME [mons=N] [mgrs=N] [policy=Wipe] [mon-hosts=LABEL] [public=CIDR] [osd-queue=KIND]
//	node NAME host=HOST [cluster=NAME] [devices=(ENTRY,…)] [ip=ADDRESS]
func (s *stage) apply(text string) error {
	for line := range strings.Lines(text) {
		kind, args, err := datadriven.ParseLine(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return fmt.Errorf("%q names nothing", line)
		}
		a := arguments(args)
		switch kind {
		case "cluster":
			err = s.applyCluster(a)
		case "node":
			err = s.applyNode(a)
		default:
			err = fmt.Errorf("unknown kind %q", kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) applyCluster(a arguments) error {
	mons, errMons := a.number("mons", 3)
	mgrs, errMgrs := a.number("mgrs", 2)
	if err := errors.Join(errMons, errMgrs); err != nil {
		return err
	}
	c := &api.StorageCluster{
		ObjectMeta: a.meta(),
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Interval: metav1.Duration{Duration: clusterInterval}, DeletionPolicy: api.DeletionRetain,
			Network: api.NetworkSpec{Public: a.value("public")},
			Ceph:    &api.CephSpec{Mon: api.CephMonSpec{Count: mons}, Mgr: api.CephMgrSpec{Count: mgrs}},
		},
	}
	if policy := a.value("policy"); policy != "" {
		c.Spec.DeletionPolicy = api.DeletionPolicy(policy)
	}
	if queue := a.value("osd-queue"); queue != "" {
		c.Spec.Ceph.Config = map[string]api.CephOptions{"osd": {"osd_op_queue": api.CephOptionValue(queue)}}
	}
	if host := a.value("mon-hosts"); host != "" {
		c.Spec.Ceph.Mon.HostSelector = &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelHostname: host}}
	}
	have := &api.StorageCluster{ObjectMeta: a.meta()}
	return s.put(c, have, func() { have.Spec = c.Spec })
}

func (s *stage) applyNode(a arguments) error {
	n := &api.StorageNode{
		ObjectMeta: a.meta(),
		Spec: api.StorageNodeSpec{
			Type: api.StorageCeph, Cluster: a.value("cluster"), Devices: a.values("devices"),
			NodeSelector:   map[string]string{api.LabelHostname: a.value("host")},
			StorageNetwork: api.StorageNetwork{IPs: a.values("ip")},
		},
	}
	s.give(n, a.value("host"))
	have := &api.StorageNode{ObjectMeta: a.meta()}
	return s.put(n, have, func() { have.Spec = n.Spec })
}

func (s *stage) labelHost(name, rack string) error {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := s.Get(s.ctx, h); err != nil || h.Labels[api.LabelRack] == rack {
		return err
	}
	h.Labels[api.LabelRack] = rack
	return s.Update(s.ctx, h)
}

// give notes which devices a node names.
func (s *stage) give(n *api.StorageNode, host string) {
	for _, entry := range n.Spec.Devices {
		s.given[n.Namespace+" "+host+"/"+entry] = true
	}
}

// isGiven says whether a node ever named a device, by its identity or by the path that it has.
func (s *stage) isGiven(namespace, host, id string) bool {
	h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: host}}
	if err := s.Get(s.ctx, h); err != nil {
		return false
	}
	for _, d := range append(h.Status.Devices, s.pulled[host+"/"+id]) {
		if d.ID == id && (s.given[namespace+" "+host+"/"+id] || s.given[namespace+" "+host+"/"+d.Path]) {
			return true
		}
	}
	return false
}

// put makes an object, or gives the spec of it to the one that is there.
func (s *stage) put(want, have sim.Object, change func()) error {
	err := s.Get(s.ctx, have)
	switch {
	case apierrors.IsNotFound(err):
		return s.Create(s.ctx, want)
	case err != nil:
		return err
	}
	change()
	return s.Update(s.ctx, have)
}

// arguments are what follows a command: a name, and values.
type arguments []datadriven.CmdArg

func (a arguments) name() string {
	if len(a) == 0 {
		return ""
	}
	return a[0].Key
}

func (a arguments) meta() metav1.ObjectMeta {
	n := named(a.name())
	return metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}
}

func (a arguments) values(key string) []string {
	for _, x := range a {
		if x.Key == key {
			return x.Vals
		}
	}
	return nil
}

// value is the first value of a key.
func (a arguments) value(key string) string {
	if v := a.values(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (a arguments) number(key string, otherwise int32) (int32, error) {
	text := a.value(key)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}
