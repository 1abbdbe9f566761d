package torus

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

func made(p *engine.Plan) (names []string) {
	for _, c := range p.Daemons {
		if c.New {
			names = append(names, c.Daemon.Name)
		}
	}
	return names
}

func TestBringUp(t *testing.T) {
	w := newWorld(t, 3)
	w.volume("v", "10Gi")
	for i, want := range [][]string{
		{"c-etcd-n1", "c-etcd-n2", "c-etcd-n3"}, {"c-torusd-n1"}, {"c-torusd-n2", "c-torusd-n3"},
	} {
		p := w.round()
		if diff := cmp.Diff(want, made(p)); diff != "" || p.Status.Status != api.StorageOffline {
			t.Fatalf("plan %d: %v %s (-want +got):\n%s", i+1, decisions(p), p.Status.Status, diff)
		}
		w.agents()
	}
	for i, want := range []string{"c-torusd-n1: peer add uuid-01 uuid-02 uuid-03", "c-torusd-n1: volume create-block v"} {
		p := w.round()
		if !slices.Equal(commands(p), []string{want}) {
			t.Fatalf("command %d: %v %v", i+1, commands(p), decisions(p))
		}
		w.agents()
	}
	p := w.settle()
	if !p.Done || p.Status.Status != api.StorageOnline || p.Status.Nodes != 3 || p.Status.Torus.Members != 3 || p.Status.Health != healthOK {
		t.Errorf("in the end: %+v %v", p.Status, decisions(p))
	}
	if s := w.vol("v").Status; s.State != api.ResourceOnline || s.Source != "torusblk --etcd http://10.0.0.1:23790 nbd v" || s.Capacity.String() != "10Gi" {
		t.Errorf("volume: %+v", s)
	}
	if w.daemons["c-torusd-n1"].Spec.Parameters[torus.ParamInit] == "" || w.daemons["c-torusd-n2"].Spec.Parameters[torus.ParamInit] != "" {
		t.Error("the first metadata is written by the founder, and by nobody else")
	}
}

func TestEtcd(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.host(4)
	w.node(4)
	if p := w.settle(); !p.Done || w.daemons["c-etcd-n4"].Spec.Parameters[torus.ParamRole] != torus.RoleGateway || p.Status.Torus.Members != 4 {
		t.Errorf("a fourth node: %v", decisions(p))
	}
	w = newWorld(t, 2)
	w.cluster.Spec.Torus.Endpoints = []string{"http://10.9.9.9:2379"}
	if p := w.settle(); !p.Done || len(w.daemons) != 2 || w.daemons["c-torusd-n1"].Spec.Parameters[torus.ParamEtcd] != "http://10.9.9.9:2379" {
		t.Errorf("one endpoint: %v", decisions(p))
	}
	w = newWorld(t, 2)
	w.cluster.Spec.Torus.Endpoints = []string{"http://10.9.9.8:2379", "http://10.9.9.9:2379"}
	if p := w.settle(); !p.Done || w.daemons["c-etcd-n2"].Spec.Command[4] != "10.9.9.8:2379,10.9.9.9:2379" {
		t.Errorf("two endpoints: %v", decisions(p))
	}
}

// A cluster waits, and says for what.
func TestWaits(t *testing.T) {
	w := newWorld(t, 0)
	if p := w.settle(); p.Status.Status != api.StorageOffline || !contains(p.Status.Reasons, "it waits for nodes") || p.Done {
		t.Errorf("no nodes: %+v", p.Status)
	}
	w.host(1)
	w.node(1)
	if p := w.settle(); p.Status.Status != api.StorageOffline || !contains(decisions(p, api.VerdictRefuse), "replication 2 needs as many nodes, and 1 are declared") {
		t.Errorf("replication above peers: %+v", decisions(p))
	}
	w.host(2)
	w.node(2)
	if p := w.settle(); p.Status.Status != api.StorageOnline {
		t.Errorf("two nodes: %+v", p.Status)
	}
	w.cluster.Spec.Torus.Replication = 3
	if p := w.settle(); p.Status.Status != api.StorageDegraded || !contains(decisions(p, api.VerdictRefuse), "replication 3 needs") || w.torus.replication != 2 {
		t.Errorf("replication raised above the peers: %+v", p.Status)
	}
	w.host(3)
	w.node(3)
	if p := w.settle(); !p.Done || w.torus.replication != 3 {
		t.Errorf("a third node: %v", decisions(p))
	}
}

func TestNodeRemoved(t *testing.T) {
	w := newWorld(t, 4)
	w.settle()
	for range 20 {
		w.torus.write()
	}
	w.undeclare("n4")
	if p := w.settle(); !p.Done || w.daemons["c-torusd-n4"] != nil || w.daemons["c-etcd-n4"] != nil || w.torus.lost() {
		t.Fatalf("drained: %v", decisions(p))
	}
	w.undeclare("n3")
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "member of the cluster's etcd") || w.daemons["c-torusd-n3"] == nil {
		t.Errorf("with a member of the etcd: %v", decisions(p))
	}
}

// given is a cluster whose etcd is not Holdfast's.
func given(t tester, nodes int) *world {
	w := newWorld(t, nodes)
	w.cluster.Spec.Torus.Endpoints = []string{"http://10.9.9.9:2379"}
	w.settle()
	for range 20 {
		w.torus.write()
	}
	return w
}

func TestNodeNeeded(t *testing.T) {
	w := given(t, 2)
	w.undeclare("n2")
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "each block is on 2 peers, but without it 1 peer would be up") || len(w.torus.ring) != 2 {
		t.Errorf("%v", decisions(p))
	}
}

func TestNodeLost(t *testing.T) {
	w := given(t, 3)
	w.volume("v", "1Gi")
	w.settle()
	w.power(1, false) // the speaker
	p := w.settle()
	if p.Status.Status != api.StorageDegraded || !contains(p.Status.Reasons, "node n1 is DOWN") || w.vol("v").Status.State != api.ResourceDegraded || len(w.torus.ring) != 3 {
		t.Fatalf("one away: %+v", p.Status)
	}
	w.power(1, true)
	if p = w.settle(); !p.Done {
		t.Fatalf("back: %v", decisions(p))
	}
	w.power(2, false)
	w.power(3, false)
	if p = w.settle(); p.Status.Status != api.StorageOffline || w.vol("v").Status.State != api.ResourceOffline {
		t.Errorf("two away: %+v", p.Status)
	}
	w.undeclare("n2")
	w.undeclare("n3")
	if p = w.settle(); len(w.torus.ring) != 3 {
		t.Errorf("both are removed by force: %v", decisions(p))
	}
	w.power(3, true)
	if p = w.settle(); len(w.torus.ring) != 2 || slices.Contains(w.torus.ring, "uuid-02") || w.torus.lost() {
		t.Errorf("one came back, the dead one leaves: %v %v", w.torus.ring, decisions(p))
	}
}

func TestMaintenance(t *testing.T) {
	w := newWorld(t, 3)
	w.settle()
	w.setMode(1, api.HostMaintenance)
	if p := w.settle(); w.daemons["c-torusd-n1"].Status.State != api.DaemonStopped || w.daemons["c-etcd-n1"].Status.State != api.DaemonStopped || contains(decisions(p), "host/h1") {
		t.Fatalf("%v", decisions(p))
	}
	w.setMode(2, api.HostMaintenance)
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "host/h2") || w.daemons["c-torusd-n2"].Spec.State != api.WantRunning {
		t.Errorf("a second one: %v", decisions(p))
	}
	w.setMode(1, api.HostActive)
	w.setMode(2, api.HostActive)
	if p := w.settle(); !p.Done {
		t.Errorf("back: %v", decisions(p))
	}
}

func TestDrainHost(t *testing.T) {
	w := given(t, 3)
	w.setMode(3, api.HostDrain)
	if p := w.settle(); w.daemons["c-torusd-n3"] != nil || contains(decisions(p), "host/h3") || w.torus.lost() {
		t.Fatalf("%v", decisions(p))
	}
	w.setMode(3, api.HostActive)
	if p := w.settle(); !p.Done || len(w.torus.ring) != 3 {
		t.Errorf("back: %v", decisions(p))
	}
}

func TestVolumes(t *testing.T) {
	w := given(t, 3)
	w.volume("a", "100Mi")
	w.volume("b", "1Gi").Spec.Durability = &api.VolumeDurability{Distribute: &api.VolumeDistribute{}}
	w.volume("c", "1Gi").Spec.Options = api.VolumeOptions{"a.b": "1"}
	w.volume("d", "1Gi").Spec.Auth.Allow = []string{"10.0.0.1"}
	p := w.settle()
	for _, part := range []string{"Refuse volume/b: Torus keeps the same number", "Refuse volume/c: Torus's volumes have no options", "Refuse volume/d: Torus has no authentication"} {
		if !contains(decisions(p), part) {
			t.Errorf("no %q in %v", part, decisions(p))
		}
	}
	if len(w.torus.volumes) != 1 {
		t.Errorf("volumes that were refused were made: %v", w.torus.volumes)
	}
	w.vol("a").Spec.Size = resource.MustParse("50Mi")
	if p = w.settle(); !contains(decisions(p, api.VerdictRefuse), "cannot change the size from 100 MiB to 50 MiB") || w.vol("a").Status.State != api.ResourceOnline {
		t.Errorf("shrinking: %v", decisions(p))
	}
	now := metav1.NewTime(w.now)
	for name, policy := range map[string]api.DeletionPolicy{"a": api.DeletionRetain, "b": api.DeletionWipe} {
		w.vol(name).Spec.DeletionPolicy, w.vol(name).DeletionTimestamp = policy, &now
	}
	w.settle()
	if w.vol("a") != nil || w.vol("b") != nil || len(w.torus.volumes) != 1 {
		t.Errorf("deleted: %v %v", w.volumes, w.torus.volumes)
	}
	w.volume("a", "100Mi").Spec.DeletionPolicy = api.DeletionWipe
	if w.settle(); w.vol("a").Status.State != api.ResourceOnline {
		t.Errorf("taken over: %+v", w.vol("a").Status)
	}
	w.vol("a").DeletionTimestamp = &now
	if w.settle(); w.vol("a") != nil || len(w.torus.volumes) != 0 {
		t.Errorf("wiped: %v", w.torus.volumes)
	}
}

// A volume that was deleted by hand is not made anew in silence.
func TestVolumeDeletedByHand(t *testing.T) {
	w := given(t, 3)
	w.volume("v", "1Gi")
	w.settle()
	delete(w.torus.volumes, "v")
	p := w.settle()
	c := meta.FindStatusCondition(w.vol("v").Status.Conditions, api.ResourcePresent)
	if s := w.vol("v").Status; s.State != api.ResourceOffline || c == nil || c.Reason != api.ReasonDeletedOutside || len(w.torus.volumes) != 0 {
		t.Fatalf("%+v %v", s, decisions(p))
	}
	w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: api.LossWord(w.vol("v").Common())}
	if p = w.settle(); w.vol("v").Status.State != api.ResourceOnline || !p.Done {
		t.Errorf("accepted: %+v %v", w.vol("v").Status, decisions(p))
	}
	delete(w.torus.volumes, "v")
	if w.settle(); w.vol("v").Status.State != api.ResourceOffline || len(w.torus.volumes) != 0 {
		t.Errorf("the word counts again for the next volume: %+v", w.vol("v").Status)
	}
}

// TestVolumeDeletedByHand_earlier: of a volume that an earlier Holdfast saw, without an id, the loss has its name as the id for as long
// as nobody accepts it. Another word does not count, nor does this one for the next volume.
func TestVolumeDeletedByHand_earlier(t *testing.T) {
	w := given(t, 3)
	w.volume("v", "1Gi")
	w.settle()
	w.vol("v").Status.ID = ""
	delete(w.torus.volumes, "v")
	for _, word := range []string{"", "", "w", "v@2026"} {
		w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: word}
		w.settle()
		if s := w.vol("v").Status; s.State != api.ResourceOffline || s.Lost != "v" || len(w.torus.volumes) != 0 {
			t.Fatalf("word %q: %+v", word, s)
		}
	}
	w.vol("v").Annotations = map[string]string{api.AnnotationRecreate: api.LossWord(w.vol("v").Common())}
	if w.settle(); w.vol("v").Status.State != api.ResourceOnline || w.vol("v").Status.Lost != "" {
		t.Errorf("accepted: %+v", w.vol("v").Status)
	}
	delete(w.torus.volumes, "v")
	if w.settle(); w.vol("v").Status.State != api.ResourceOffline || len(w.torus.volumes) != 0 {
		t.Errorf("the word counts again for the next volume: %+v", w.vol("v").Status)
	}
}

func TestNodeChanges(t *testing.T) {
	w := given(t, 3)
	w.nodeNamed("n1").Spec.Torus.Port = 40001
	w.nodeNamed("n2").Spec.Directories = []string{"/srv"}
	p := w.settle()
	for _, part := range []string{"its address would change from http://10.0.0.1:40000 to http://10.0.0.1:40001", "its store is in ${DATA}/store and would move to /srv/c-torusd-n2"} {
		if !contains(decisions(p, api.VerdictRefuse), part) {
			t.Errorf("no %q in %v", part, decisions(p))
		}
	}
	if w.daemons["c-torusd-n1"].Spec.Parameters[torus.ParamPeer] != "http://10.0.0.1:40000" {
		t.Error("the daemon was changed")
	}
}

// A node belongs to one cluster: two torusd do not share an address.
func TestAddressTaken(t *testing.T) {
	w := newWorld(t, 2)
	w.others = []*api.Daemon{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x-torusd-n"},
		Spec:       api.DaemonSpec{Cluster: "x", Type: torus.TypeTorusd, Host: "h2", Parameters: map[string]string{torus.ParamPeer: "http://10.0.0.2:40000"}},
	}}
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "is used by cluster default/x already: a node belongs to one cluster") {
		t.Errorf("%v", decisions(p))
	}
}

func TestDeleteCluster(t *testing.T) {
	w := newWorld(t, 3)
	w.volume("v", "10Gi")
	w.settle()
	now := metav1.NewTime(w.now)
	w.cluster.DeletionTimestamp, w.cluster.Spec.DeletionPolicy = &now, api.DeletionWipe
	if p := w.round(); len(p.Daemons) != 6 || len(p.Remove) != 0 {
		t.Fatalf("first they are told what becomes of their data: %v", decisions(p))
	}
	w.agents()
	if p := w.round(); len(p.Remove) != 6 || p.Finished {
		t.Fatalf("%v", decisions(p))
	}
	w.agents()
	if p := w.round(); !p.Finished || w.vol("v") != nil {
		t.Errorf("%v", decisions(p))
	}
}

// TestDeleteCluster_givenEtcd: the plan names what becomes of the ring and the volumes in an etcd
// that the cluster was given.
func TestDeleteCluster_givenEtcd(t *testing.T) {
	for policy, want := range map[api.DeletionPolicy]string{
		api.DeletionWipe:   "ring and volumes are removed from the etcd http://10.9.9.8:2379,http://10.9.9.9:2379",
		api.DeletionRetain: "ring and volumes stay in the etcd http://10.9.9.8:2379,http://10.9.9.9:2379",
	} {
		w := newWorld(t, 3)
		w.cluster.Spec.Torus.Endpoints = []string{"http://10.9.9.8:2379", "http://10.9.9.9:2379"}
		w.settle()
		now := metav1.NewTime(w.now)
		w.cluster.DeletionTimestamp, w.cluster.Spec.DeletionPolicy = &now, policy
		p := w.round()
		for range 3 {
			if len(p.Remove) > 0 {
				break
			}
			w.agents()
			p = w.round()
		}
		named := 0
		for _, r := range p.Remove {
			if strings.HasSuffix(r.Reason, want) {
				named++
			}
		}
		if named != 3 {
			t.Errorf("%s: %d removals of torusd say %q: %+v", policy, named, want, p.Remove)
		}
	}
}

// A leader that dies after it made the first of three members leaves the rest to the next one. A member that is lost later is not made
// again: without its data it is none of the members, and would harm them.
func TestEtcd_membersMade(t *testing.T) {
	w := newWorld(t, 3)
	first := w.round()
	if len(made(first)) != 3 {
		t.Fatalf("%v", decisions(first))
	}
	for _, name := range []string{"c-etcd-n2", "c-etcd-n3"} {
		delete(w.daemons, name) // it was never written
	}
	w.agents()
	if p := w.round(); !slices.Equal(made(p), []string{"c-etcd-n2", "c-etcd-n3"}) {
		t.Fatalf("%v", decisions(p))
	}
	command := func(name string) string {
		c := w.daemons[name].Spec.Command
		return c[slices.Index(c, flagInitialCluster)+1]
	}
	if command("c-etcd-n1") != command("c-etcd-n3") {
		t.Errorf("%s, and %s", command("c-etcd-n1"), command("c-etcd-n3"))
	}
	if p := w.settle(); !p.Done {
		t.Fatalf("%v", decisions(p))
	}
	delete(w.daemons, "c-etcd-n3")
	if w.settle(); w.daemons["c-etcd-n3"].Spec.Parameters[torus.ParamRole] != torus.RoleGateway {
		t.Error("a member that was lost is made again")
	}
	w.setMode(1, api.HostMaintenance)
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "no majority of the members would run") {
		t.Errorf("two of three members are left, and one may stop: %v", decisions(p))
	}
}
