package classes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/controller"
)

// World is what there is.
type World struct {
	// Driver says that the CSI driver is installed: nothing new is made without it.
	Driver      bool
	Clusters    []api.StorageCluster
	Statuses    []api.StorageStatus
	Pools       []api.Pool
	Filesystems []api.Filesystem
	Clients     []api.Client
	// Secrets are those with LabelClass, without what they hold.
	Secrets []corev1.Secret
	// Classes are all of the Kubernetes cluster, and Volumes all PersistentVolumes.
	Classes []storagev1.StorageClass
	Volumes []corev1.PersistentVolume
	// Claims are all PersistentVolumeClaims if ClaimsKnown. They are read when they are needed.
	Claims      []corev1.PersistentVolumeClaim
	ClaimsKnown bool
}

// Plan is what to write, in this order.
type Plan struct {
	// Make and Change are objects to create, and to bring to what they hold.
	Make, Change []client.Object
	// Keys are Clients whose keys the driver needs, in Secrets of the same names.
	Keys []*api.Client
	// Marks are objects whose label says that volumes lie in them, or does so no more.
	Marks []Mark
	// Remove are objects to delete.
	Remove []client.Object
	// NeedsClaims says that more could be removed if the claims were known.
	NeedsClaims bool
	// Notes are sentences for people about what is in the way.
	Notes []string
}

// decision is a Plan while it is made.
type decision struct {
	*World
	Plan

	sources []*source
	clients map[types.NamespacedName]*api.Client
	// taken are the names of classes that there are or will be.
	taken map[string]bool
}

// Decide compares what there is with what there should be. backends are those that the driver has.
func Decide(w World, backends []string) Plan {
	d := &decision{
		World: &w, sources: w.sources(), taken: map[string]bool{},
		clients: map[types.NamespacedName]*api.Client{},
	}
	for i := range w.Classes {
		d.taken[w.Classes[i].Name] = true
	}
	for i := range w.Clients {
		c := &w.Clients[i]
		d.clients[client.ObjectKeyFromObject(c)] = c
	}
	for _, s := range d.sources {
		if w.Driver && slices.Contains(backends, s.parameters[controller.ParameterBackend]) {
			d.bring(s)
		}
	}
	d.keys()
	d.mark()
	d.retire()
	return d.Plan
}

func (w *World) cluster(namespace, name string) *api.StorageCluster {
	for i := range w.Clusters {
		if c := &w.Clusters[i]; c.Namespace == namespace && c.Name == name {
			return c
		}
	}
	return nil
}

// classesOf are the classes that were made for a source.
func (w *World) classesOf(id string) (all []*storagev1.StorageClass) {
	for i := range w.Classes {
		if c := &w.Classes[i]; isOurs(c) && c.Annotations[AnnotationOf] == id {
			all = append(all, c)
		}
	}
	return all
}

// isOurs says whether Run made an object.
func isOurs(o client.Object) bool {
	_, is := o.GetLabels()[LabelClass]
	return is
}

// isOpen says whether new classes may be made for a cluster: it is ONLINE, or it was, and serves.
func (w *World) isOpen(namespace, name string) bool {
	if w.cluster(namespace, name).ModeOf() != api.ClusterActive {
		return false
	}
	i := slices.IndexFunc(w.Statuses, func(s api.StorageStatus) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		return false
	}
	state := w.Statuses[i].Status.Status
	return state == api.StorageOnline || state == api.StorageDegraded && w.hasClass(namespace, name)
}

// hasClass says whether some class of a cluster was made: the cluster has been ONLINE.
func (w *World) hasClass(namespace, cluster string) bool {
	return slices.ContainsFunc(w.Classes, func(c storagev1.StorageClass) bool {
		return isOurs(&c) && c.Parameters[backend.ParameterNamespace] == namespace &&
			c.Parameters[backend.ParameterCluster] == cluster
	})
}

// bring has a source get its Clients, and when they have keys its class.
func (d *decision) bring(s *source) {
	classes := d.classesOf(s.id())
	d.followDefault(s, classes)
	open := s.serves && d.isOpen(s.namespace, s.cluster)
	if !open && len(classes) == 0 {
		return
	}
	want, keyed := d.classOf(s), true
	have := slices.ContainsFunc(classes, func(c *storagev1.StorageClass) bool { return same(c, want) })
	if !have && !d.name(want, s) {
		return
	}
	for _, u := range s.users {
		keyed = d.bringClient(s.client(u)) && keyed
	}
	if open && keyed && !have {
		d.taken[want.Name] = true
		d.Make = append(d.Make, want)
	}
}

// bringClient says whether the Secret of a Client is there. It makes and changes the Client.
func (d *decision) bringClient(want *api.Client) (keyed bool) {
	key := client.ObjectKeyFromObject(want)
	have := d.clients[key]
	switch {
	case have == nil:
		d.Make = append(d.Make, want)
		return false
	case !isOurs(have):
		d.note("Client %s exists, and Holdfast did not make it for the CSI driver: delete it, and Holdfast makes one",
			key)
		return false
	case have.DeletionTimestamp != nil:
		return false
	case !maps.Equal(have.Spec.Caps, want.Spec.Caps):
		changed := have.DeepCopy()
		changed.Spec.Caps = want.Spec.Caps
		d.Change = append(d.Change, changed)
	}
	return slices.ContainsFunc(d.Secrets, func(s corev1.Secret) bool { return client.ObjectKeyFromObject(&s) == key })
}

// classOf is the class of a source, without its name.
func (d *decision) classOf(s *source) *storagev1.StorageClass {
	parameters := maps.Clone(s.parameters)
	for _, u := range s.users {
		for _, use := range u.secrets {
			parameters["csi.storage.k8s.io/"+use+"-secret-name"] = s.client(u).Name
			parameters["csi.storage.k8s.io/"+use+"-secret-namespace"] = s.namespace
		}
	}
	c := &storagev1.StorageClass{
		ObjectMeta: s.meta("", ""), Provisioner: backend.DriverName, Parameters: parameters,
		ReclaimPolicy: ptr.To(corev1.PersistentVolumeReclaimDelete), AllowVolumeExpansion: ptr.To(true),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	c.Labels[api.LabelCluster] = s.cluster
	if s.isDefault != "" {
		c.Annotations[annotationDefault] = s.isDefault
	}
	return c
}

// name gives a new class its name, and says whether it may be made. A class that people made in its
// place stays, and takes the place of Holdfast's.
func (d *decision) name(c *storagev1.StorageClass, s *source) bool {
	c.Name = className(s.id())
	if !d.taken[c.Name] {
		return true
	}
	i := slices.IndexFunc(d.Classes, func(x storagev1.StorageClass) bool { return x.Name == c.Name })
	if i >= 0 && !isOurs(&d.Classes[i]) {
		d.note("StorageClass %s exists, and Holdfast did not make it, so %s gets none: delete it, and Holdfast makes one",
			c.Name, s.id())
		return false
	}
	c.Name += "-" + hash(s.id(), textOf(c.Parameters))
	return !d.taken[c.Name]
}

// same says whether a class gives volumes as another one does. What cannot be changed counts.
func same(a, b *storagev1.StorageClass) bool {
	return a.Provisioner == b.Provisioner && maps.Equal(a.Parameters, b.Parameters) &&
		ptr.Equal(a.ReclaimPolicy, b.ReclaimPolicy) && ptr.Equal(a.VolumeBindingMode, b.VolumeBindingMode)
}

// followDefault has classes say what their source says of the default class. Where it says nothing,
// they stay.
func (d *decision) followDefault(s *source, classes []*storagev1.StorageClass) {
	for _, c := range classes {
		if s.isDefault == "" || c.Annotations[annotationDefault] == s.isDefault {
			continue
		}
		changed := c.DeepCopy()
		changed.Annotations[annotationDefault] = s.isDefault
		d.Change = append(d.Change, changed)
	}
}

// keys are those of all Clients of the driver that the storage system knows: volumes are used longer
// than there is a class.
func (d *decision) keys() {
	for i := range d.Clients {
		if c := &d.Clients[i]; isOurs(c) && c.DeletionTimestamp == nil && c.Status.State == api.ResourceOnline {
			d.Keys = append(d.Keys, c)
		}
	}
}

func (d *decision) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// sourceOf is the source with an id; nil where there is none any more.
func (d *decision) sourceOf(id string) *source {
	for _, s := range d.sources {
		if s.id() == id {
			return s
		}
	}
	return nil
}

// isID says whether a text is the id of a source.
func isID(id string) bool { return strings.Count(id, "/") == 2 }
