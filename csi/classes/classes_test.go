package classes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/cephfs"
	"github.com/holdfast-storage/holdfast/csi/gluster"
	"github.com/holdfast-storage/holdfast/csi/rbd"
)

const ns = "storage"

// bed is a keeper with an API in memory. engine stands for the engine: it gives Clients their keys.
type bed struct {
	*testing.T
	*keeper

	api client.WithWatch
	// writes counts what the keeper wrote. The write of this number fails before it is done, if it
	// is not zero.
	writes, fail int
}

func newBed(t *testing.T, objects ...client.Object) *bed {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: backend.DriverName}})
	b := &bed{T: t, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
	b.restart()
	return b
}

// restart has another keeper take over.
func (b *bed) restart() {
	counted := interceptor.NewClient(b.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return errors.Join(b.count(), then(b, func() error { return c.Create(ctx, o, opts...) }))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return errors.Join(b.count(), then(b, func() error { return c.Update(ctx, o, opts...) }))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			opts ...client.PatchOption,
		) error {
			return errors.Join(b.count(), then(b, func() error { return c.Patch(ctx, o, patch, opts...) }))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return errors.Join(b.count(), then(b, func() error { return c.Delete(ctx, o, opts...) }))
		},
	})
	b.keeper = &keeper{
		have: b.api, writer: newWriter(counted), backends: []string{rbd.Name, cephfs.Name, gluster.Name},
		log: slog.New(slog.NewTextHandler(b.Output(), nil)),
	}
}

var errKilled = errors.New("killed")

func (b *bed) count() error {
	if b.writes++; b.writes == b.fail {
		return errKilled
	}
	return nil
}

// then does a write, unless the keeper is as good as dead.
func then(b *bed, do func() error) error {
	if b.fail > 0 && b.writes >= b.fail {
		return nil
	}
	return do()
}

// look looks once, and has the engine work.
func (b *bed) once() error {
	_, err := b.reconcile(b.Context())
	b.engine()
	return err
}

// settle looks until nothing is written.
func (b *bed) settle() {
	b.Helper()
	for range 10 {
		before := b.writes
		if err := b.once(); err != nil {
			b.Fatal(err)
		}
		if b.writes == before {
			return
		}
	}
	b.Fatal("it writes and writes")
}

// engine gives the Clients of clusters that serve their keys.
func (b *bed) engine() {
	b.Helper()
	var all api.ClientList
	b.must(b.api.List(b.Context(), &all))
	for i := range all.Items {
		c := &all.Items[i]
		if c.Status.State == api.ResourceOnline {
			continue
		}
		entity := "client." + c.Name
		c.Status = api.ClientStatus{Entity: entity, Secret: "ceph-key-" + entity, FSID: "f", MonHost: "m"}
		c.Status.State = api.ResourceOnline
		b.must(b.api.Update(b.Context(), c))
		b.must(client.IgnoreAlreadyExists(b.api.Create(b.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Status.Secret},
			Data:       map[string][]byte{"key": []byte("key of " + c.Name)},
		})))
	}
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// made are the classes, Clients and Secrets for the driver that there are.
func (b *bed) made() (all []string) {
	b.Helper()
	w, err := read(b.Context(), b.api)
	b.must(err)
	for i := range w.Classes {
		all = append(all, "class "+w.Classes[i].Name)
	}
	for i := range w.Clients {
		all = append(all, "client "+w.Clients[i].Name)
	}
	for i := range w.Secrets {
		all = append(all, "secret "+w.Secrets[i].Name)
	}
	return all
}

func (b *bed) wants(when string, want ...string) {
	b.Helper()
	if got := b.made(); !slices.Equal(got, want) {
		b.Errorf("%s: there is %q, want %q", when, got, want)
	}
}

func (b *bed) get(name string, o client.Object) {
	b.Helper()
	b.must(b.api.Get(b.Context(), types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, o))
}

// state sets the status of the cluster "ceph".
func (b *bed) state(s api.StorageState) {
	b.Helper()
	x := status(s)
	b.get(x.Name, x)
	x.Status.Status = s
	b.must(b.api.Update(b.Context(), x))
}

func cluster(of api.StorageType) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: string(of)}}
	c.Spec.Type = of
	return c
}

func status(s api.StorageState) *api.StorageStatus {
	return statusOf(api.StorageCeph, s)
}

func statusOf(of api.StorageType, s api.StorageState) *api.StorageStatus {
	x := &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: string(of)}}
	x.Status.Status = s
	return x
}

func pool(name string) *api.Pool {
	p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: api.PoolSpec{Cluster: "ceph"}}
	p.Spec.Application, p.Status.State = "rbd", api.ResourceOnline
	return p
}

func filesystem(name string) *api.Filesystem {
	f := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	f.Spec.Cluster, f.Status.State = "ceph", api.ResourceOnline
	return f
}

// volume is a PersistentVolume whose node needs a Secret.
func volume(secret string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	v.Annotations = map[string]string{deletionSecret: "csi-provisioner-volumes", deletionSecretNamespace: ns}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver: backend.DriverName, VolumeHandle: "rbd/f/1/pvc-1",
		NodeStageSecretRef: &corev1.SecretReference{Namespace: ns, Name: secret},
	}
	return v
}

var ofVolumes = []string{
	"class storage-volumes", "client csi-node-volumes", "client csi-provisioner-volumes",
	"secret csi-node-volumes", "secret csi-provisioner-volumes",
}

// TestClass is the life of a class: none before ONLINE, one after, and it stays while the cluster is
// OFFLINE. It goes with its pool, and its keys go with the last volume.
func TestClass(t *testing.T) {
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOffline), pool("volumes"))
	for _, s := range []api.StorageState{api.StorageOffline, api.StorageDegraded} {
		b.state(s)
		b.settle()
		b.wants(string(s))
	}
	b.state(api.StorageOnline)
	b.settle()
	b.wants("ONLINE", ofVolumes...)
	var class storagev1.StorageClass
	b.get("storage-volumes", &class)
	want := map[string]string{
		"backend": "rbd", "namespace": ns, "cluster": "ceph", "pool": "volumes",
		"csi.storage.k8s.io/provisioner-secret-name":             "csi-provisioner-volumes",
		"csi.storage.k8s.io/provisioner-secret-namespace":        ns,
		"csi.storage.k8s.io/controller-publish-secret-name":      "csi-provisioner-volumes",
		"csi.storage.k8s.io/controller-publish-secret-namespace": ns,
		"csi.storage.k8s.io/controller-expand-secret-name":       "csi-provisioner-volumes",
		"csi.storage.k8s.io/controller-expand-secret-namespace":  ns,
		"csi.storage.k8s.io/node-stage-secret-name":              "csi-node-volumes",
		"csi.storage.k8s.io/node-stage-secret-namespace":         ns,
	}
	if _, standard := class.Annotations[annotationDefault]; standard || class.Provisioner != backend.DriverName ||
		!maps.Equal(class.Parameters, want) {
		t.Errorf("the class is %+v", class)
	}
	b.state(api.StorageOffline)
	b.settle()
	b.wants("OFFLINE again", ofVolumes...)
	b.must(b.api.Create(t.Context(), volume("csi-node-volumes")))
	b.must(b.api.Delete(t.Context(), pool("volumes")))
	b.settle()
	b.wants("the pool is deleted", ofVolumes[1:]...)
	b.must(b.api.Delete(t.Context(), volume("")))
	b.settle()
	b.wants("the last volume is deleted")
}

// TestClients: keys are the least that the driver needs, and reach the Secrets of the class, also
// when monitors move, and when a Secret is deleted or changed by hand.
func TestClients(t *testing.T) {
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	b.settle()
	for name, want := range map[string]string{
		"csi-node-volumes":        "map[mon:profile rbd osd:profile rbd pool=volumes]",
		"csi-provisioner-volumes": "map[mgr:profile rbd pool=volumes mon:profile rbd osd:profile rbd pool=volumes]",
	} {
		c := &api.Client{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
		b.get(name, c)
		if got := fmt.Sprint(c.Spec.Caps); got != want {
			t.Errorf("%s may %s, want %s", name, got, want)
		}
	}
	secret := func() *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns}} }
	holds := func(when, mons string) {
		t.Helper()
		s := secret()
		b.get("csi-node-volumes", s)
		for key, value := range map[string]string{
			"fsid": "f", "monHost": mons, "userID": "csi-node-volumes", "userKey": "key of csi-node-volumes",
		} {
			if string(s.Data[key]) != value {
				t.Errorf("%s: %s is %q, want %q", when, key, s.Data[key], value)
			}
		}
	}
	holds("at first", "m")
	c := &api.Client{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
	b.get("csi-node-volumes", c)
	c.Status.MonHost = "m2"
	b.must(b.api.Update(t.Context(), c))
	b.settle()
	holds("monitors moved", "m2")
	s := secret()
	b.get("csi-node-volumes", s)
	s.Data["userKey"] = []byte("another")
	b.must(b.api.Update(t.Context(), s))
	b.settle()
	holds("changed by hand", "m2")
	b.must(b.api.Delete(t.Context(), s))
	b.settle()
	holds("deleted", "m2")
}

// TestKilled ends the keeper at each of its writes: the next one finishes the work, and writes
// nothing twice.
func TestKilled(t *testing.T) {
	whole := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	whole.settle()
	if whole.writes != 5 { // two Clients, two Secrets, one class
		t.Fatalf("it takes %d writes", whole.writes)
	}
	for n := range whole.writes {
		b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
		b.fail = n + 1
		for range 10 {
			if err := b.once(); errors.Is(err, errKilled) {
				break
			}
		}
		done := b.fail - 1
		b.fail, b.writes = 0, 0
		b.restart()
		b.settle()
		b.wants(fmt.Sprintf("killed before write %d", n+1), ofVolumes...)
		if b.writes+done != whole.writes {
			t.Errorf("killed before write %d: %d writes after %d", n+1, b.writes, done)
		}
	}
}

// TestSources: what gets a class, and by which name.
func TestSources(t *testing.T) {
	erasure, files := pool("chunks"), pool("files")
	erasure.Spec.ErasureCoded = &api.PoolErasureCoded{DataChunks: 2, CodingChunks: 1}
	files.Spec.Application = "cephfs"
	offline, standard, long := pool("offline"), pool("standard"), pool(strings.Repeat("p", 63))
	offline.Status.State = api.ResourceCreating
	standard.Annotations = map[string]string{annotationDefault: "true"}
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), cluster(api.StorageGlusterFS),
		statusOf(api.StorageGlusterFS, api.StorageOnline), cluster(api.StorageTorus),
		statusOf(api.StorageTorus, api.StorageOnline), erasure, files, offline, standard, long, filesystem("standard"))
	b.settle()
	w, err := read(t.Context(), b.api)
	b.must(err)
	got := map[string]string{}
	for i := range w.Classes {
		c := &w.Classes[i]
		got[c.Annotations[AnnotationOf]] = c.Name + " " + c.Annotations[annotationDefault]
	}
	for id, want := range map[string]string{
		"Filesystem/storage/standard":                        "storage-standard ",
		"Pool/storage/standard":                              "storage-standard-",
		"Pool/storage/" + long.Name:                          "storage-" + long.Name + " ",
		"StorageCluster/storage/glusterfs":                   "storage-glusterfs ",
		"StorageCluster/storage/ceph":                        "",
		"Pool/storage/chunks":                                "",
		"Pool/storage/files":                                 "",
		"Pool/storage/offline":                               "",
		"StorageCluster/storage/" + string(api.StorageTorus): "",
	} {
		if !strings.HasPrefix(got[id], want) || want == "" && got[id] != "" {
			t.Errorf("%s has the class %q, want %q", id, got[id], want)
		}
	}
	if !strings.HasSuffix(got["Pool/storage/standard"], " true") {
		t.Errorf("the default class is %q", got["Pool/storage/standard"])
	}
}

// TestTheirs: what people made stays, and is not used.
func TestTheirs(t *testing.T) {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "storage-volumes"}, Provisioner: backend.DriverName,
	}
	client := &api.Client{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "csi-node-images"}}
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"), pool("images"), class, client)
	b.settle()
	b.wants("a class and a Client of people", "class storage-volumes", "client csi-node-images",
		"client csi-provisioner-images", "secret csi-provisioner-images")
	if len(b.said) != 2 {
		t.Errorf("notes: %q", b.said)
	}
}

// TestReplaced: a class is never changed. One with other parameters is made beside it, and the old
// one goes when no claim names it.
func TestReplaced(t *testing.T) {
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	b.settle()
	old := &storagev1.StorageClass{}
	b.get("storage-volumes", old)
	b.must(b.api.Delete(t.Context(), old))
	old.ResourceVersion, old.Parameters["pool"] = "", "as an older release had it"
	b.must(b.api.Create(t.Context(), old))
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data"}}
	claim.Spec.StorageClassName = &old.Name
	b.must(b.api.Create(t.Context(), claim))
	b.settle()
	if made := b.made(); len(made) != 6 || made[0] != "class storage-volumes" ||
		!strings.HasPrefix(made[1], "class storage-volumes-") {
		t.Errorf("there is %q", made)
	}
	b.must(b.api.Delete(t.Context(), claim))
	b.settle()
	if made := b.made(); len(made) != 5 || !strings.HasPrefix(made[0], "class storage-volumes-") {
		t.Errorf("without the claim there is %q", made)
	}
}

// TestHeld: nothing is made for a cluster that Holdfast does not run, and nothing without the driver.
func TestHeld(t *testing.T) {
	observed := cluster(api.StorageCeph)
	observed.Spec.Mode = api.ClusterObserved
	b := newBed(t, observed, status(api.StorageOnline), pool("volumes"))
	b.settle()
	b.wants("an observed cluster")
	b = newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	b.must(b.api.Delete(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: backend.DriverName}}))
	b.settle()
	b.wants("without the driver")

	b = newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	b.settle()
	b.must(b.api.Delete(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: backend.DriverName}}))
	b.settle()
	b.wants("the driver is removed", ofVolumes...)
	b.must(b.api.Delete(t.Context(), pool("volumes")))
	b.settle()
	b.wants("and then the pool")
}

// TestPending: keys stay while a claim of a class that is gone may become a volume.
func TestPending(t *testing.T) {
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), pool("volumes"))
	b.settle()
	name := "storage-volumes"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data"}}
	claim.Spec.StorageClassName = &name
	b.must(b.api.Create(t.Context(), claim))
	b.must(b.api.Delete(t.Context(), pool("volumes")))
	b.settle()
	b.wants("a claim is pending", ofVolumes[1:]...)
	b.must(b.api.Delete(t.Context(), claim))
	b.settle()
	b.wants("the claim is gone")
}

// TestMark: what volumes lie in says so, and only while they are there.
func TestMark(t *testing.T) {
	b := newBed(t, cluster(api.StorageCeph), status(api.StorageOnline), cluster(api.StorageGlusterFS),
		statusOf(api.StorageGlusterFS, api.StorageOnline), pool("volumes"), pool("images"))
	b.settle()
	marked := func() (all []string) {
		w, err := read(t.Context(), b.api)
		b.must(err)
		var objects []client.Object
		for i := range w.Pools {
			objects = append(objects, &w.Pools[i])
		}
		for i := range w.Clusters {
			objects = append(objects, &w.Clusters[i])
		}
		for _, o := range objects {
			if _, has := o.GetLabels()[LabelVolumes]; has {
				all = append(all, o.GetName())
			}
		}
		return all
	}
	other := volume("csi-node-images")
	other.Name, other.Spec.CSI.Driver = "other", "other.example.com"
	b.must(b.api.Create(t.Context(), other))
	b.settle()
	if got := marked(); len(got) > 0 {
		t.Errorf("without volumes of the driver %q are marked", got)
	}
	b.must(b.api.Create(t.Context(), volume("csi-node-volumes")))
	b.settle()
	if got := marked(); !slices.Equal(got, []string{"volumes", "ceph"}) {
		t.Errorf("marked are %q", got)
	}
	b.must(b.api.Delete(t.Context(), volume("")))
	files := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "files"}}
	files.Spec.StorageClassName = "storage-glusterfs"
	files.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: backend.DriverName}
	b.must(b.api.Create(t.Context(), files))
	b.settle()
	if got := marked(); !slices.Equal(got, []string{"glusterfs"}) {
		t.Errorf("marked are %q", got)
	}
}
