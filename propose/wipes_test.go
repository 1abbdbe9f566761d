package propose

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// A disk that is in another host now is not wiped where it was; whatever leaves that open counts as
// data that is destroyed.
func TestElsewhere(t *testing.T) {
	at := drives.Place{Host: "h1", ID: "wwn-1"}
	disk := func(id, uuid, part string) api.Device {
		return api.Device{ID: id, Ceph: &api.DeviceCeph{OSDUUID: uuid, Part: part}}
	}
	for name, c := range map[string]struct {
		change func(o *engine.Objects)
		want   bool
	}{
		"moved":                 {func(*engine.Objects) {}, true},
		"host gone":             {func(o *engine.Objects) { o.Hosts = o.Hosts[1:] }, true},
		"nowhere":               {func(o *engine.Objects) { o.Hosts[1].Status.Devices = nil }, false},
		"its database alone":    {func(o *engine.Objects) { o.Hosts[1].Status.Devices[0].Ceph.Part = "db" }, false},
		"another OSD's":         {func(o *engine.Objects) { o.Hosts[1].Status.Devices[0].Ceph.OSDUUID = "v" }, false},
		"there, and a copy":     {func(o *engine.Objects) { o.Hosts[0].Status.Devices = []api.Device{{ID: "wwn-1"}} }, false},
		"there by another name": {func(o *engine.Objects) { o.Hosts[0].Status.Devices = []api.Device{disk("wwn-2", "u", "")} }, false},
		"not reported":          {func(o *engine.Objects) { o.Hosts[0].Status.BootID = "" }, false},
		"silent": {func(o *engine.Objects) {
			o.Hosts[0].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
		}, false},
		"it was to be wiped": {func(o *engine.Objects) { o.Daemons[0].Spec.OnRemoval = api.DeletionWipe }, false},
		"with a database": {func(o *engine.Objects) {
			o.Daemons[0].Spec.Devices = append(o.Daemons[0].Spec.Devices, api.DaemonDevice{Name: "block.db", ID: "partuuid-1"})
		}, false},
	} {
		o := &engine.Objects{Hosts: make([]api.Host, 2), Daemons: make([]api.Daemon, 1)}
		o.Hosts[0].Name, o.Hosts[1].Name = "h1", "h2"
		o.Hosts[0].Status.BootID = "boot"
		o.Hosts[1].Status.Devices = []api.Device{disk("wwn-1", "U", "")}
		o.Daemons[0].Spec = api.DaemonSpec{
			Host: "h1", Parameters: map[string]string{ceph.ParamOSDUUID: "u"}, OnRemoval: api.DeletionRetain,
			Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-1"}},
		}
		c.change(o)
		if got := elsewhere(&ceph.Driver{}, o, at); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// To empty a host destroys data where its disks are not kept, whatever the storage system says:
// also one that is being emptied with its disks kept, because it was said to be gone.
func TestAddWipes_keptDisks(t *testing.T) {
	on := func(mode api.HostMode, kept bool) *engine.Objects {
		o := &engine.Objects{
			Clusters: make([]api.StorageCluster, 1), Nodes: make([]api.StorageNode, 1), Hosts: make([]api.Host, 1), Daemons: make([]api.Daemon, 1),
		}
		o.Clusters[0].Name, o.Clusters[0].Spec.Type, o.Clusters[0].Spec.DeletionPolicy = "c", api.StorageCeph, api.DeletionWipe
		o.Nodes[0].Name, o.Nodes[0].Spec.Type, o.Nodes[0].Spec.Devices = "n", api.StorageCeph, []string{"wwn-1"}
		o.Nodes[0].Status = api.StorageNodeStatus{Host: "h1", Devices: []api.ClaimedDevice{{Name: "wwn-1", ID: "wwn-1"}}}
		o.Hosts[0].Name, o.Hosts[0].Spec.Mode = "h1", mode
		engine.KeepDisks(&o.Hosts[0], kept)
		o.Daemons[0].Spec = api.DaemonSpec{Host: "h1", Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}}
		return o
	}
	for name, tt := range map[string]struct {
		before, after *engine.Objects
		want          api.Risk
	}{
		"drained":                       {on(api.HostActive, false), on(api.HostDrain, false), api.RiskData},
		"said to be gone":               {on(api.HostActive, false), on(api.HostDrain, true), api.RiskNone},
		"drained already":               {on(api.HostDrain, false), on(api.HostDrain, false), api.RiskNone},
		"said to be gone, then drained": {on(api.HostDrain, true), on(api.HostDrain, false), api.RiskData},
	} {
		p := &Proposal{
			Report: plans.Report{Changes: []plans.Change{{Object: "host/h1", Risk: api.RiskNone}}},
			home:   Home{Drivers: []engine.Driver{&ceph.Driver{}}},
		}
		p.addWipes(tt.before, tt.after)
		if got := p.Report.Changes[0].Risk; got != tt.want {
			t.Errorf("%s: risk %s, want %s", name, got, tt.want)
		}
	}
}

// A device of a StorageNode that spec.exclude or spec.replace names leaves, and is wiped.
func TestAddWipes_leaving(t *testing.T) {
	with := func(change func(*api.StorageNodeSpec)) *engine.Objects {
		o := &engine.Objects{
			Clusters: make([]api.StorageCluster, 1), Nodes: make([]api.StorageNode, 1), Daemons: make([]api.Daemon, 1),
		}
		o.Clusters[0].Name, o.Clusters[0].Spec.Type = "c", api.StorageCeph
		o.Clusters[0].Spec.DeletionPolicy = api.DeletionWipe
		n := &o.Nodes[0]
		n.Name, n.Spec.Type, n.Spec.Devices = "n", api.StorageCeph, []string{"wwn-1"}
		n.Status = api.StorageNodeStatus{Host: "h1", Devices: []api.ClaimedDevice{{Name: "wwn-1", ID: "wwn-1"}}}
		change(&n.Spec)
		o.Daemons[0].Spec = api.DaemonSpec{Host: "h1", Devices: []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}}
		return o
	}
	stays := func(*api.StorageNodeSpec) {}
	for name, tt := range map[string]struct {
		before, after func(*api.StorageNodeSpec)
		want          api.Risk
	}{
		"excluded":         {stays, func(s *api.StorageNodeSpec) { s.Exclude = []string{"wwn-1"} }, api.RiskData},
		"replaced":         {stays, func(s *api.StorageNodeSpec) { s.Replace = []string{"wwn-1"} }, api.RiskData},
		"another excluded": {stays, func(s *api.StorageNodeSpec) { s.Exclude = []string{"wwn-2"} }, api.RiskNone},
		"stays after all":  {func(s *api.StorageNodeSpec) { s.Exclude = []string{"wwn-1"} }, stays, api.RiskNone},
	} {
		node := plans.Change{Object: plans.ObjectName(engine.KindNode, "", "n"), Risk: api.RiskNone}
		p := &Proposal{
			Report: plans.Report{Changes: []plans.Change{node}}, home: Home{Drivers: []engine.Driver{&ceph.Driver{}}},
		}
		p.addWipes(with(tt.before), with(tt.after))
		if got := p.Report.Changes[0].Risk; got != tt.want {
			t.Errorf("%s: risk %s, want %s", name, got, tt.want)
		}
	}
}
