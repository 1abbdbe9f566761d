package classes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/cephfs"
	"github.com/holdfast-storage/holdfast/csi/controller"
	"github.com/holdfast-storage/holdfast/csi/gluster"
	"github.com/holdfast-storage/holdfast/csi/rbd"
)

// source is what a class is made for.
type source struct {
	kind, namespace, name string
	// cluster is the StorageCluster that it is part of.
	cluster string
	// serves says that volumes can be made of it now.
	serves bool
	// isDefault is the value of annotationDefault on the object itself; empty: nothing is said.
	isDefault string
	// parameters are those of the class beside the names of its Secrets.
	parameters map[string]string
	// users are the entities of the driver; none where the storage system has no keys.
	users []user
}

// user is an entity that the driver is to the storage system.
type user struct {
	// prefix begins the name of its Client, and the name of the source follows.
	prefix string
	caps   api.ClientCaps
	// secrets are the uses that parameters of a class name its Secret for.
	secrets []string
}

// What the Secrets of a class are for: the middle of the names of parameters.
var (
	ofController = []string{"provisioner", "controller-publish", "controller-expand"}
	ofNode       = []string{"node-stage"}
)

// id is the value of AnnotationOf.
func (s *source) id() string { return s.kind + "/" + s.namespace + "/" + s.name }

// sources are all that there may be classes for, in order.
func (w *World) sources() (all []*source) {
	for i := range w.Pools {
		// Images lie in replicated pools.
		if p := &w.Pools[i]; p.Spec.ErasureCoded == nil && cmp.Or(p.Spec.Application, rbd.Name) == rbd.Name {
			all = w.withSource(all, sourceOfPool(p), p)
		}
	}
	for i := range w.Filesystems {
		all = w.withSource(all, sourceOfFilesystem(&w.Filesystems[i]), &w.Filesystems[i])
	}
	for i := range w.Clusters {
		if c := &w.Clusters[i]; c.Spec.Type == api.StorageGlusterFS {
			all = w.withSource(all, sourceOfGlusterFS(c), c)
		}
	}
	slices.SortFunc(all, func(a, b *source) int { return strings.Compare(a.id(), b.id()) })
	return all
}

// withSource adds a source, unless it or its cluster is being deleted.
func (w *World) withSource(all []*source, s *source, of metav1.Object) []*source {
	cluster := w.cluster(s.namespace, s.cluster)
	if of.GetDeletionTimestamp() != nil || cluster == nil || cluster.DeletionTimestamp != nil {
		return all
	}
	s.isDefault = of.GetAnnotations()[annotationDefault]
	s.parameters[backend.ParameterNamespace], s.parameters[backend.ParameterCluster] = s.namespace, s.cluster
	return append(all, s)
}

func sourceOfPool(p *api.Pool) *source {
	osd := api.ClientCap("profile rbd pool=" + p.Name)
	return &source{
		kind: "Pool", namespace: p.Namespace, name: p.Name, cluster: p.Spec.Cluster, serves: serves(p),
		parameters: map[string]string{controller.ParameterBackend: rbd.Name, rbd.ParameterPool: p.Name},
		users: []user{
			{"csi-provisioner-", api.ClientCaps{"mon": "profile rbd", "mgr": osd, "osd": osd}, ofController},
			{"csi-node-", api.ClientCaps{"mon": "profile rbd", "osd": osd}, ofNode},
		},
	}
}

func sourceOfFilesystem(f *api.Filesystem) *source {
	return &source{
		kind: "Filesystem", namespace: f.Namespace, name: f.Name, cluster: f.Spec.Cluster, serves: serves(f),
		parameters: map[string]string{controller.ParameterBackend: cephfs.Name, cephfs.ParameterFilesystem: f.Name},
		users: []user{
			{"csi-cephfs-provisioner-", api.ClientCaps{"mon": "allow r", "mgr": "allow module volumes rw"}, ofController},
			{"csi-cephfs-node-", api.ClientCaps{
				"mon": api.ClientCap("allow r fsname=" + f.Name),
				"mds": api.ClientCap("allow rw fsname=" + f.Name + " path=" + cephfs.GroupPath),
				"osd": api.ClientCap("allow rw tag cephfs data=" + f.Name),
			}, ofNode},
		},
	}
}

func sourceOfGlusterFS(c *api.StorageCluster) *source {
	return &source{
		kind: "StorageCluster", namespace: c.Namespace, name: c.Name, cluster: c.Name, serves: true,
		parameters: map[string]string{controller.ParameterBackend: gluster.Name},
	}
}

// serves says whether clients can use a resource now.
func serves(r api.Resource) bool {
	state := r.Common().State
	return state == api.ResourceOnline || state == api.ResourceDegraded
}

// longestClient is how long the name of a Client may be.
const longestClient = 63

// client is the Client of a user. Its Secret for the driver has the same name.
func (s *source) client(u user) *api.Client {
	name := u.prefix + s.name
	if len(name) > longestClient {
		name = name[:longestClient-len("-")-hashLength] + "-" + hash(s.name)
	}
	return &api.Client{ObjectMeta: s.meta(s.namespace, name), Spec: api.ClientSpec{Cluster: s.cluster, Caps: u.caps}}
}

// meta begins an object that is made for a source.
func (s *source) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{AnnotationOf: s.id()},
		Labels: map[string]string{
			LabelClass: "", "app.kubernetes.io/managed-by": "holdfast",
			"app.kubernetes.io/part-of": "holdfast",
		},
	}
}

// className is the name of a class of a source with an id. Classes of one source are more than one
// when a release needs other parameters; those are named by what they have.
func className(id string) string {
	parts := strings.SplitN(id, "/", 3)
	return parts[1] + "-" + parts[2]
}

// hashLength is the length of a hash.
const hashLength = 8

func hash(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// textOf is a map as one text.
func textOf(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%s\n", key, m[key])
	}
	return b.String()
}
