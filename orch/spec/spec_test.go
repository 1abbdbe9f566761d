package spec

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/refusal"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// fresh is a view of a cluster of three hosts, of which nothing but mons and managers is declared.
// A fourth host has nothing of the cluster.
func fresh() *engine.View {
	v := &engine.View{Cluster: &api.StorageCluster{}}
	v.Cluster.Name, v.Cluster.Namespace = "ceph", "store"
	v.Cluster.Spec.Type, v.Cluster.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	v.Cluster.Spec.Ceph.Mon.Count, v.Cluster.Spec.Ceph.Mgr.Count = 3, 2
	v.Cluster.Spec.Network.Public = "10.0.0.0/24"
	for i, name := range []string{"n1", "n2", "n3", "other"} {
		h := api.Host{}
		h.Name, h.Labels = name, map[string]string{api.LabelHostname: name}
		h.Status.Addresses = []string{"10.0.0." + string(rune('1'+i)), "192.0.2." + string(rune('1'+i))}
		v.Hosts = append(v.Hosts, h)
		if name == "other" {
			continue
		}
		n := api.StorageNode{}
		n.Name, n.Namespace, n.Status.Host = "ceph-"+name, "store", name
		n.Spec.Type, n.Spec.Cluster = api.StorageCeph, "ceph"
		n.Spec.NodeSelector = map[string]string{api.LabelHostname: name}
		v.Nodes = append(v.Nodes, n)
	}
	for _, name := range []string{"n1", "n2"} {
		i := slices.IndexFunc(v.Hosts, func(h api.Host) bool { return h.Name == name })
		v.Hosts[i].Labels[wire.LabelPrefix+"rgw"] = ""
	}
	return v
}

// running is a view of one that has a service of each kind, declared by manifests, and an NFS
// server and an OSD that are declared in other ways.
func running() *engine.View {
	v := fresh()
	v.Hosts[0].Labels["disk"] = "fast"
	v.Hosts[1].Spec.Mode = api.HostMaintenance
	spec := v.Cluster.Spec.Ceph
	spec.Mon.Placement = &api.HostSelection{Hosts: []string{"n3", "n1", "n2"}}
	spec.Config = map[string]api.CephOptions{"mon": {"mon_lease": "7"}, "osd": {"osd_max_backfills": "2"}}
	fs := &api.Filesystem{}
	fs.Name, fs.Spec.ActiveMDS = "home", 2
	fs.Spec.Placement.Labels = map[string]string{"disk": "fast"}
	taken := &api.Filesystem{}
	taken.Name, taken.Spec.Pools, taken.Spec.StandbyMDS = "work", api.PoolsExisting, ptr.To(int32(0))
	store := &api.ObjectStore{}
	store.Name = "s3"
	store.Spec.Gateways.Port, store.Spec.Gateways.TLS = 7480, &api.ObjectStoreTLS{SecretName: "cert"}
	store.Spec.Gateways.Placement.Pattern = "n[^3]"
	mirror := &api.RBDMirror{}
	mirror.Name = "away"
	hdd := &api.DriveGroup{}
	hdd.Name, hdd.Spec.NewDevices = "hdd", api.NewDevicesTake
	hdd.Spec.Placement.Pattern = "n*"
	hdd.Spec.DataDevices = []api.DriveFilter{{Rotational: ptr.To(true), Limit: 2}}
	odd := &api.DriveGroup{}
	odd.Name = "odd"
	odd.Spec.Placement = api.HostSelection{Hosts: []string{"n1", "n2"}, Pattern: "n1"}
	odd.Spec.DataDevices = []api.DriveFilter{{Model: "A", Size: "1T:"}, {Model: "B"}}
	v.Resources = []api.Resource{fs, taken, store, mirror, hdd, odd}
	for _, r := range v.Resources {
		r.SetNamespace("store")
		setCluster(r)
	}
	engine.SortResources(v.Resources)
	for _, d := range []api.DaemonSpec{{Type: "nfs-ganesha", ID: "n1"}, {Type: "ceph-osd", ID: "0"}} {
		d.Host = "n1"
		v.Daemons = append(v.Daemons, api.Daemon{Spec: d})
	}
	return v
}

func setCluster(r api.Resource) {
	switch x := r.(type) {
	case *api.Filesystem:
		x.Spec.Cluster = "ceph"
	case *api.ObjectStore:
		x.Spec.Cluster = "ceph"
	case *api.RBDMirror:
		x.Spec.Cluster = "ceph"
	case *api.DriveGroup:
		x.Spec.Cluster = "ceph"
	}
}

// each calls back for each file of documents.
func each(t *testing.T, do func(t *testing.T, v *engine.View, name string, docs []json.RawMessage)) {
	for home, view := range map[string]func() *engine.View{"fresh": fresh, "running": running} {
		files, err := filepath.Glob("testdata/" + home + "/*.json")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			t.Run(home+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var docs []json.RawMessage
				if err := json.Unmarshal(text, &docs); err != nil {
					t.Fatal(err)
				}
				do(t, view(), strings.TrimSuffix(file, ".json"), docs)
			})
		}
	}
}

// TestWrites compares what documents come to, or why they are refused, with golden files.
func TestWrites(t *testing.T) {
	each(t, func(t *testing.T, v *engine.View, name string, docs []json.RawMessage) {
		before, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if strings.Contains(name, "refused") {
			for _, doc := range docs { // each for itself
				got += outcome(t, Request{View: v, Docs: []json.RawMessage{doc}})
			}
		} else {
			got = outcome(t, Request{View: v, Docs: docs, NoOverwrite: strings.Contains(name, "no-overwrite")})
		}
		if after, err := json.Marshal(v); err != nil || string(after) != string(before) {
			t.Errorf("the view was written to: %v\n%s", err, cmp.Diff(before, after))
		}
		if *rewrite {
			if err := os.WriteFile(name+".golden", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name + ".golden")
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// outcome is what comes of a call, in words.
func outcome(t *testing.T, r Request) string {
	t.Helper()
	writes, err := Writes(r)
	if err != nil {
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Errno != -22 || len(writes) > 0 {
			t.Errorf("%T: %v, %v", err, err, writes)
		}
		return "refused: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, w := range writes {
		b.WriteString("# " + w.Manager + ": " + w.Answer + "\n")
		if w.Manager != "ceph-orch."+w.Service {
			t.Errorf("%s is not of %s", w.Manager, w.Service)
		}
		for _, note := range w.Notes {
			b.WriteString("# Note: " + note + "\n")
		}
		if w.Object != nil {
			text, err := yaml.Marshal(w.Object.Object)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
		b.WriteString("---\n")
	}
	return b.String()
}

// TestWrites_again: what is exported after documents were applied changes nothing, neither by the
// comparison with what is declared nor when its objects are applied.
func TestWrites_again(t *testing.T) {
	each(t, func(t *testing.T, v *engine.View, name string, docs []json.RawMessage) {
		applied := v
		if writes, err := Writes(Request{View: v, Docs: docs}); err == nil {
			applied = apply(t, v, writes)
		}
		exported := export(t, applied)
		writes, err := Writes(Request{View: applied, Docs: exported})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes {
			if w.Object != nil {
				t.Errorf("%s is changed by what is exported: %v", w.Service, w.Object.Object)
			}
		}
		if strings.Contains(name, "running") {
			return // what manifests say has no exact words of Ceph
		}
		objects, err := writesAnew(applied, exported)
		if err != nil {
			t.Fatal(err)
		}
		again := apply(t, applied, objects)
		if diff := cmp.Diff(applied.Resources, again.Resources); diff != "" {
			t.Errorf("resources (-applied +again):\n%s", diff)
		}
		if diff := cmp.Diff(applied.Cluster, again.Cluster); diff != "" {
			t.Errorf("the cluster (-applied +again):\n%s", diff)
		}
	})
}

// writesAnew translates without the comparison.
func writesAnew(v *engine.View, docs []json.RawMessage) ([]Write, error) {
	return writes(Request{View: v, Docs: docs}, false)
}

// export are the documents of a view in the order of their names.
func export(t *testing.T, v *engine.View) (docs []json.RawMessage) {
	t.Helper()
	for _, s := range Services(v) {
		text, err := json.Marshal(s.Document)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, text)
	}
	return docs
}

// apply is a stand-in for server-side apply: it merges objects into a copy of a view.
func apply(t *testing.T, v *engine.View, writes []Write) *engine.View {
	t.Helper()
	next := *v
	next.Cluster, next.Resources, next.Hosts = v.Cluster.DeepCopy(), slices.Clone(v.Resources), slices.Clone(v.Hosts)
	for _, w := range writes {
		if w.Object == nil {
			continue
		}
		switch kind := w.Object.GetKind(); kind {
		case "StorageCluster":
			merge(t, next.Cluster, w.Object)
		case "Host":
			i := slices.IndexFunc(next.Hosts, func(h api.Host) bool { return h.Name == w.Object.GetName() })
			next.Hosts[i] = *next.Hosts[i].DeepCopy()
			merge(t, &next.Hosts[i], w.Object)
		case "StorageNode":
			n := api.StorageNode{}
			merge(t, &n, w.Object)
			next.Nodes = append(slices.Clone(next.Nodes), n)
		default:
			i := slices.IndexFunc(next.Resources, func(r api.Resource) bool {
				return r.ResourceKind() == kind && r.GetName() == w.Object.GetName()
			})
			if i < 0 {
				i, next.Resources = len(next.Resources), append(next.Resources, api.NewResource(kind))
			}
			next.Resources[i] = next.Resources[i].DeepCopyObject().(api.Resource)
			merge(t, next.Resources[i], w.Object)
		}
	}
	engine.SortResources(next.Resources)
	return &next
}

func merge(t *testing.T, into runtime.Object, o *unstructured.Unstructured) {
	t.Helper()
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		t.Fatal(err)
	}
	o = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "kind")
	unstructured.RemoveNestedField(o.Object, "apiVersion")
	mergeMaps(have, o.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(have, into); err != nil {
		t.Fatal(err)
	}
}

func mergeMaps(into, from map[string]any) {
	for key, value := range from {
		inner, is := value.(map[string]any)
		have, had := into[key].(map[string]any)
		if is && had {
			mergeMaps(have, inner)
			continue
		}
		into[key] = value
	}
}

// TestWrites_deleted: nothing is written to what is being deleted, and it is not exported.
func TestWrites_deleted(t *testing.T) {
	v := running()
	now := metav1.Unix(1, 0)
	for _, r := range v.Resources {
		r.SetDeletionTimestamp(&now)
	}
	v.Nodes[0].DeletionTimestamp = &now
	if got := Documents(v); len(got) != 2 {
		t.Errorf("%v", got)
	}
	for _, doc := range []string{
		`{"service_type": "mds", "service_id": "home"}`, `{"service_type": "rbd-mirror"}`, `{"hostname": "n1"}`,
	} {
		docs := []json.RawMessage{[]byte(doc)}
		for _, noOverwrite := range []bool{true, false} {
			if w, err := Writes(Request{View: v, Docs: docs, NoOverwrite: noOverwrite}); err == nil {
				t.Errorf("%s: %v", doc, w)
			}
		}
	}
}

// TestPreview: one document that asks makes the whole call a dry run.
func TestPreview(t *testing.T) {
	for text, want := range map[string]bool{
		`{"service_type": "mon"}`: false, `{"service_type": "mon", "preview_only": true}`: true,
		`{"service_type": "mon", "spec": {"preview_only": true}}`: true, `[]`: false,
	} {
		docs := []json.RawMessage{[]byte(`{"hostname": "n1"}`), []byte(text)}
		if got := Preview(docs); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestOddMons: the words are the API's own.
func TestOddMons(t *testing.T) {
	crd, err := os.ReadFile("../../api/crd/holdfast.io_storageclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if flat := strings.Join(strings.Fields(string(crd)), " "); !strings.Contains(flat, oddMons) {
		t.Errorf("the API does not say %q", oddMons)
	}
}

// TestGroupName: names are names of Kubernetes, and no two ids have one.
func TestGroupName(t *testing.T) {
	names := map[string]string{}
	for _, id := range []string{
		"hdd", "hdd.fast", "hdd_fast", "hdd-fast", "HDD", "hdd.", "_", "all-available-devices", strings.Repeat("x", 64),
		strings.Repeat("X", 300),
	} {
		name := GroupName(id)
		valid := len(name) <= longestName && strings.Trim(name, "-.") == name && strings.ToLower(name) == name
		if names[name] != "" || !valid {
			t.Errorf("%s: %s, as %s", id, name, names[name])
		}
		names[name] = id
	}
}
