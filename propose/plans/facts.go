package plans

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// ObjectName names an object as plans do: storagecluster/default/ceph, host/h1.
func ObjectName(kind, namespace, name string) string {
	if namespace == "" {
		return strings.ToLower(kind) + "/" + name
	}
	return strings.ToLower(kind) + "/" + namespace + "/" + name
}

// NameOf names an object as plans do. Objects of other groups than Holdfast's and the core's have
// their group in it: a kind may stand in several groups.
func NameOf(u *unstructured.Unstructured) string {
	kind := u.GroupVersionKind().GroupKind()
	if kind.Group == api.Group {
		kind.Group = ""
	}
	return ObjectName(kind.String(), u.GetNamespace(), u.GetName())
}

// ObjectFacts are what a plan depends on of an object that people write; nil stands for one that does not exist.
func ObjectFacts(u *unstructured.Unstructured) Facts {
	if u == nil {
		return Facts{}
	}
	fields := Fields(u)
	// It asks for a run, and changes nothing of what the run comes to.
	delete(fields, join("metadata.annotations", api.AnnotationOrchestrate))
	return Facts{UID: string(u.GetUID()), Fields: fields}
}

// AddView adds what a plan of a cluster depends on beside the cluster and its nodes: its daemons, and of the hosts that these are
// on or that its nodes mean, what decides on placement and the devices that matter. Heartbeats, times and reports are left out.
func (b Basis) AddView(v *engine.View) {
	daemons := Facts{UID: "-", Fields: map[string]string{}}
	for i := range v.Daemons {
		d := &v.Daemons[i]
		daemons.Fields["daemon "+d.Name] = fmt.Sprintf("on %s, wanted %s, generation %d", d.Spec.Host, d.Spec.State, d.Generation)
	}
	b["daemons of "+ObjectName(engine.KindCluster, v.Cluster.Namespace, v.Cluster.Name)] = daemons
	matter := devicesThatMatter(v)
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if devices, ok := matter[h.Name]; ok {
			name := ObjectName(engine.KindHost, "", h.Name)
			b[name] = hostFacts(h, devices, b[name])
		}
	}
}

// devicesThatMatter are the devices, by host, that the cluster's nodes mean or its daemons use.
func devicesThatMatter(v *engine.View) map[string]map[string]bool {
	matter := map[string]map[string]bool{}
	add := func(host string, ids ...string) {
		if matter[host] == nil {
			matter[host] = map[string]bool{}
		}
		for _, id := range ids {
			matter[host][id] = true
		}
	}
	for _, r := range engine.ResolveNodes(v) {
		if r.Host == nil {
			continue
		}
		add(r.Host.Name)
		for _, d := range r.Devices {
			if d.ID != "" {
				add(r.Host.Name, d.ID)
			}
		}
	}
	for i := range v.Daemons {
		add(v.Daemons[i].Spec.Host)
		for _, d := range v.Daemons[i].Spec.Devices {
			add(v.Daemons[i].Spec.Host, d.ID)
		}
	}
	return matter
}

// hostFacts adds to what is known of the host for another cluster.
func hostFacts(h *api.Host, devices map[string]bool, known Facts) Facts {
	f := Facts{UID: string(h.UID), Fields: map[string]string{
		"mode": string(h.ModeOf()), "addresses": strings.Join(h.Status.Addresses, ", "),
	}}
	for key, value := range h.Labels {
		f.Fields["label "+key] = plainString(value)
	}
	for path, value := range known.Fields {
		f.Fields[path] = value
	}
	for i := range h.Status.Devices {
		if d := &h.Status.Devices[i]; devices[d.ID] {
			f.Fields["device "+d.ID] = strings.Join(strings.Fields(string(d.Availability)+" "+DeviceOf(d).text()+" "+contentOf(d)), " ")
		}
	}
	return f
}

// contentOf says whose data is on a device.
func contentOf(d *api.Device) string {
	if d.Ceph == nil {
		return ""
	}
	return "with the OSD " + d.Ceph.OSDUUID
}
