package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func object(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion(api.GroupVersion.String())
	if u.GetKind() != "Host" {
		u.SetNamespace(namespace)
	}
	return u
}

const validCluster = `
kind: StorageCluster
metadata: {name: a}
spec: {type: ceph, ceph: {}}
`

const validDaemon = `
kind: Daemon
metadata: {name: a-mon-a}
spec: {cluster: a, type: ceph-mon, id: a, host: h1, state: Running, command: [ceph-mon]}
`

func TestAPI_defaultsAndPrinting(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	if err := c.Create(t.Context(), object(t, ns, validCluster)); err != nil {
		t.Fatal(err)
	}
	got := &api.StorageCluster{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "a"}, got); err != nil {
		t.Fatal(err)
	}
	want := api.StorageClusterSpec{
		Type: api.StorageCeph, Mode: api.ClusterActive, Approval: api.ApprovalGranted, DeletionPolicy: api.DeletionRetain,
		Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 3, ReplaceAfter: &metav1.Duration{Duration: 10 * time.Minute}}, Mgr: api.CephMgrSpec{Count: 2}},
	}
	want.Interval = got.Spec.Interval
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Spec.Interval.Seconds() != 10 {
		t.Errorf("defaults (-want +got):\n%s\ninterval %s", diff, got.Spec.Interval.Duration)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	table, err := discover.RESTClient().Get().AbsPath("/apis/holdfast.io/v1alpha1/namespaces/"+ns+"/storageclusters").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(table), `"name":"Accepted"`) {
		t.Errorf("the table does not have the column Accepted: %s, %v", table, err)
	}
}

// TestAPI_discovery: clients find all kinds, the core ones among them, and their OpenAPI documents, by the old and the new
// ways to ask.
func TestAPI_discovery(t *testing.T) {
	s, _ := sharedServer(t)
	for _, legacy := range []bool{false, true} {
		d, err := discovery.NewDiscoveryClientForConfig(s.Config())
		if err != nil {
			t.Fatal(err)
		}
		d.UseLegacyDiscovery = legacy
		groups, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name] = true
			}
		}
		for _, want := range []string{
			"v1 namespaces", "v1 secrets", "v1 events", "events.k8s.io/v1 events", "v1 configmaps",
			"coordination.k8s.io/v1 leases",
			"holdfast.io/v1alpha1 hosts", "holdfast.io/v1alpha1 daemons/status",
			"apiextensions.k8s.io/v1 customresourcedefinitions", "authentication.k8s.io/v1 selfsubjectreviews",
			"authorization.k8s.io/v1 selfsubjectaccessreviews", "authorization.k8s.io/v1 selfsubjectrulesreviews",
		} {
			if !found[want] {
				t.Errorf("legacy %v: %s was not found among %d groups", legacy, want, len(groups))
			}
		}
	}
	d, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	v2, err := d.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, definition := range v2.GetDefinitions().GetAdditionalProperties() {
		names[definition.GetName()] = true
	}
	paths, err := d.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"io.k8s.api.core.v1.Secret", "io.holdfast.v1alpha1.StorageCluster", "io.k8s.api.coordination.v1.Lease"} {
		if !names[want] {
			t.Errorf("OpenAPI v2 does not define %s", want)
		}
	}
	for _, want := range []string{"api/v1", "apis/holdfast.io/v1alpha1", "apis/coordination.k8s.io/v1"} {
		if paths[want] == nil {
			t.Errorf("OpenAPI v3 has no document %s", want)
		}
	}
}

// wrong are objects that the API refuses, and words of the refusals.
var wrong = []struct{ name, object, want string }{
	{"even number of mons", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {mon: {count: 4}}}`, "the number of mons must be odd"},
	{"no mons", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {mon: {count: 0}}}`, "spec.ceph.mon.count in body should be greater than or equal to 1"},
	{"unknown type", `
kind: StorageCluster
metadata: {name: b}
spec: {type: lustre}`, `Unsupported value: "lustre": supported values: "ceph", "glusterfs", "torus"`},
	{"unknown field", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {mons: 3}}`, `unknown field "spec.ceph.mons"`},
	{"no part for the type", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph}`, "spec.ceph must be there: at least 'ceph: {}'"},
	{"long name", `
kind: StorageCluster
metadata: {name: a2345678901234567890123456789012345678901}
spec: {type: ceph, ceph: {}}`, "at most 40 characters"},
	{"network without a mask", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {}, network: {public: 10.0.0.1}}`, "CIDR notation such as 10.0.0.0/24"},
	{"interval too short", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {}, interval: 10ms}`, "interval must be between 1s and 1h"},
	{"unknown section of ceph.conf", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {config: {monitors: {a: b}}}}`, "a section of config must be"},
	{"option that Holdfast sets", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {config: {global: {fsid: x}}}}`, "Holdfast itself sets fsid"},
	{"option with spaces", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {config: {global: {Mon Lease: "1"}}}}`, "lower case, with underscores"},
	{"value of two lines", `
kind: StorageCluster
metadata: {name: b}
spec: {type: ceph, ceph: {config: {global: {a: "1\n[osd]"}}}}`, "should match"},
	{"quota of half a byte", `
kind: Pool
metadata: {name: b}
spec: {cluster: c, replicated: {size: 3}, quota: {maxBytes: 500m}}`, "maxBytes must be whole bytes: m stands for thousandths"},
	{"quota of a user of half a byte", `
kind: ObjectStoreUser
metadata: {name: b}
spec: {cluster: c, store: c, quota: {maxSize: 500m}}`, "maxSize must be whole bytes: m stands for thousandths"},
	{"node without a selector", `
kind: StorageNode
metadata: {name: b}
spec: {type: ceph, nodeSelector: {}}`, "spec.nodeSelector"},
	{"device named twice", `
kind: StorageNode
metadata: {name: b}
spec: {type: ceph, nodeSelector: {a: b}, devices: [wwn-1, wwn-1]}`, "Duplicate value"},
	{"address that is none", `
kind: StorageNode
metadata: {name: b}
spec: {type: ceph, nodeSelector: {a: b}, storageNetwork: {ips: [host1]}}`, "ips must be IP addresses"},
	{
		"devices that leave, not of Ceph", `
kind: StorageNode
metadata: {name: b}
spec: {type: glusterfs, nodeSelector: {a: b}, exclude: [wwn-1]}`,
		"spec.exclude and spec.replace are for nodes of type ceph",
	},
	{
		"size of Ceph in Holdfast's words", `
kind: DriveGroup
metadata: {name: b}
spec: {cluster: a, placement: {pattern: "*"}, dataDevices: [{match: Ceph, size: 4tb}]}`,
		"with match Ceph size must be such as",
	},
	{
		"size of Holdfast in Ceph's words", `
kind: DriveGroup
metadata: {name: b}
spec: {cluster: a, placement: {pattern: "*"}, dataDevices: [{size: 4TB}]}`,
		"size must be such as 1T:2T",
	},
	{
		"all and more", `
kind: DriveGroup
metadata: {name: b}
spec: {cluster: a, placement: {pattern: "*"}, dataDevices: [{match: Ceph, all: true, model: a}]}`,
		"all and paths stand alone",
	},
	{
		"all for databases", `
kind: DriveGroup
metadata: {name: b}
spec:
  cluster: a
  placement: {pattern: "*"}
  dataDevices: [{match: Ceph, all: true}]
  dbDevices: [{match: Ceph, all: true}]`,
		"with match Ceph all is for dataDevices alone",
	},
	{"file outside", `
kind: Daemon
metadata: {name: b}
spec: {cluster: a, type: t, id: a, host: h, state: Running, command: [x], files: [{path: ../x, sources: []}]}`, "path must lie below the daemon's directory"},
	{"source of two kinds", `
kind: Daemon
metadata: {name: b}
spec: {cluster: a, type: t, id: a, host: h, state: Running, command: [x], files: [{path: x, sources: [{text: a, secret: {name: a, key: b}}]}]}`, "a source is either text or secret"},
}

// TestAPI_messages: what is wrong is refused, in words that say what to do.
func TestAPI_messages(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	for _, test := range wrong {
		t.Run(test.name, func(t *testing.T) {
			strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
			err := strict.Create(t.Context(), object(t, ns, test.object))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAPI_whatCannotChange(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	daemon := object(t, ns, validDaemon)
	if err := c.Create(t.Context(), daemon); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(daemon.Object, "h2", "spec", "host"); err != nil {
		t.Fatal(err)
	}
	err := c.Update(t.Context(), daemon)
	if err == nil || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("moving a daemon to another host: got %v, want a refusal", err)
	}
}

func TestAPI_serverSideApply(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	for _, owner := range []string{"one", "two"} {
		text := strings.Replace(validCluster, "ceph: {}", "ceph: {mon: {count: "+map[string]string{"one": "3", "two": "5"}[owner]+"}}", 1)
		err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object(t, ns, text)), client.FieldOwner(owner))
		if (owner == "two") != apierrors.IsConflict(err) {
			t.Errorf("apply by %s: got %v", owner, err)
		}
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s", "namespace": ns}, "stringData": map[string]any{"a": "b"},
	}}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(secret), client.FieldOwner("one")); err != nil {
		t.Fatal(err)
	}
	got := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "s"}, got); err != nil {
		t.Fatal(err)
	}
	if string(got.Data["a"]) != "b" || got.Type != corev1.SecretTypeOpaque {
		t.Errorf("got %v of type %s, want a=b of type Opaque", got.Data, got.Type)
	}
}

func TestAPI_namespaces(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	err := c.Create(t.Context(), object(t, "nowhere", validCluster))
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "kubectl create namespace nowhere") {
		t.Errorf("writing into a missing namespace: got %v", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newNamespace(t, c)}}
	cluster := object(t, ns.Name, validCluster)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "s"}}
	for _, o := range []client.Object{cluster, secret} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	err = c.Delete(t.Context(), ns)
	if err == nil || !strings.Contains(err.Error(), "holds 1 secrets, 1 storageclusters") {
		t.Errorf("deleting a namespace that is not empty: got %v", err)
	}
	for _, o := range []client.Object{cluster, secret, ns} {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	err = c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "holdfast-system"}})
	if err == nil || !strings.Contains(err.Error(), "belongs to Holdfast itself") {
		t.Errorf("deleting holdfast-system: got %v", err)
	}
}
