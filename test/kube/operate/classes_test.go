package operate

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/classes"
	"github.com/holdfast-storage/holdfast/platform/kube"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// TestClasses has the StorageClass of a pool made on a real API server, with the rights of the
// manifests and under their policies: not before the cluster is ONLINE, with keys that are Clients',
// and with nothing written when all is done.
func TestClasses(t *testing.T) {
	p := install(t, "20-fence", "22-people", "23-operator")
	own := operator(t, p)
	admin := clientAs(t, p, "admin", bed.Masters)
	must(t, hold(t.Context(), admin, "first"))
	must(t, terms(t, own).Won(t.Context(), "first"))
	engine := clientOf(t, own, "first")
	declarePool(t, admin, engine)

	said := keepClasses(t, p)
	class := func(ctx context.Context) (*storagev1.StorageClass, error) {
		return p.Client().StorageV1().StorageClasses().Get(ctx, "default-volumes", metav1.GetOptions{})
	}
	setStatus(t, engine, api.StorageOnline)
	for _, name := range []string{"csi-node-volumes", "csi-provisioner-volumes"} {
		giveKey(t, engine, name)
	}
	eventually(t, "the class", func(ctx context.Context) bool {
		_, err := class(ctx)
		return err == nil
	})
	secret := &corev1.Secret{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "csi-node-volumes"}, secret))
	if string(secret.Data[backend.SecretKey]) != "key of csi-node-volumes" {
		t.Errorf("the Secret of the nodes has %d entries, and another key", len(secret.Data))
	}

	before := versionsOf(t, admin)
	setStatus(t, engine, api.StorageOffline)
	setStatus(t, engine, api.StorageOnline)
	must(t, admin.Delete(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "csi-provisioner-volumes"},
	}))
	eventually(t, "the Secret to be back", func(ctx context.Context) bool {
		return admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "csi-provisioner-volumes"}, secret) == nil
	})
	for name, version := range versionsOf(t, admin) {
		if version != before[name] && name != "csi-provisioner-volumes" {
			t.Errorf("%s was written again: version %s, and was %s", name, version, before[name])
		}
	}

	deleteUsed(t, admin)
	eventually(t, "the class to go with its pool", func(ctx context.Context) bool {
		_, err := class(ctx)
		return client.IgnoreNotFound(err) == nil && err != nil
	})
	if said.has("trying again") {
		t.Error("a write of the classes was refused: see the log")
	}
}

// deleteUsed deletes a pool that a volume lies in, which has to be retained.
func deleteUsed(t *testing.T, admin client.Client) {
	t.Helper()
	policy := func(p api.DeletionPolicy) {
		t.Helper()
		must(t, admin.Patch(t.Context(), poolOf("volumes"), merged(`{"spec":{"deletionPolicy":"`+string(p)+`"}}`)))
	}
	policy(api.DeletionWipe)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver: backend.DriverName, VolumeHandle: "rbd/f/1/pvc-1",
		NodeStageSecretRef: &corev1.SecretReference{Namespace: "default", Name: "csi-node-volumes"},
	}
	must(t, admin.Create(t.Context(), volume))
	eventually(t, "the pool to be protected", func(ctx context.Context) bool {
		err := admin.Delete(ctx, poolOf("volumes"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "PersistentVolumes lie in volumes")
	})
	policy(api.DeletionRetain)
	must(t, admin.Delete(t.Context(), poolOf("volumes")))
}

// keepClasses has the leader keep classes until the test ends.
func keepClasses(t *testing.T, p *bed.Plane) *log {
	t.Helper()
	own, said := operator(t, p), &log{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- classes.Run(ctx, kube.Fenced(own, "first"), []string{"rbd"}, slog.New(slog.NewTextHandler(said, nil)))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return said
}

func poolOf(name string) *api.Pool {
	return &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: api.PoolSpec{Cluster: "c"}}
}

// declarePool makes a cluster that is OFFLINE, with a pool that serves, and says that the driver is
// there.
func declarePool(t *testing.T, people, engine client.Client) {
	t.Helper()
	attach := true
	must(t, people.Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: backend.DriverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attach},
	}))
	must(t, people.Create(t.Context(), cluster("default")))
	pool := poolOf("volumes")
	must(t, people.Create(t.Context(), pool))
	pool.Status.State = api.ResourceOnline
	must(t, engine.Status().Update(t.Context(), pool))
	status := &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	must(t, engine.Create(t.Context(), status))
	setStatus(t, engine, api.StorageOffline)
}

func setStatus(t *testing.T, engine client.Client, state api.StorageState) {
	t.Helper()
	s := &api.StorageStatus{}
	must(t, engine.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c"}, s))
	s.Status.Type, s.Status.Status = api.StorageCeph, state
	must(t, engine.Status().Update(t.Context(), s))
}

// giveKey does what the engine does for a Client.
func giveKey(t *testing.T, engine client.Client, name string) {
	t.Helper()
	c := &api.Client{}
	eventually(t, "the Client "+name, func(ctx context.Context) bool {
		return engine.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, c) == nil
	})
	if _, err := c.Spec.Caps["mgr"]; err == (name == "csi-node-volumes") {
		t.Errorf("%s may %v", name, c.Spec.Caps)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-key-client." + name}}
	key.Data = map[string][]byte{"key": []byte("key of " + name)}
	must(t, engine.Create(t.Context(), key))
	c.Status.State, c.Status.Entity, c.Status.Secret = api.ResourceOnline, "client."+name, key.Name
	c.Status.FSID, c.Status.MonHost = "f", "m"
	must(t, engine.Status().Update(t.Context(), c))
}

// versionsOf are the versions of what was made for the driver.
func versionsOf(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, list := range []client.ObjectList{&api.ClientList{}, &corev1.SecretList{}} {
		must(t, c.List(t.Context(), list, client.InNamespace("default"), client.HasLabels{classes.LabelClass}))
		switch list := list.(type) {
		case *api.ClientList:
			for _, x := range list.Items {
				all["client/"+x.Name] = x.ResourceVersion
			}
		case *corev1.SecretList:
			for _, x := range list.Items {
				all[x.Name] = x.ResourceVersion
			}
		}
	}
	return all
}

// TestPolicies_classes: the operator writes the StorageClasses that it made, and no others.
func TestPolicies_classes(t *testing.T) {
	p := install(t, "20-fence", "23-operator")
	own := operator(t, p)
	admin := p.Client().StorageV1().StorageClasses()
	must(t, hold(t.Context(), clientAs(t, p, "admin", bed.Masters), "first"))
	must(t, terms(t, own).Won(t.Context(), "first"))
	class := func(name, provisioner string, labels map[string]string) *storagev1.StorageClass {
		meta := metav1.ObjectMeta{Name: name, Labels: labels}
		return &storagev1.StorageClass{ObjectMeta: meta, Provisioner: provisioner}
	}
	ours := map[string]string{classes.LabelClass: ""}
	_, err := admin.Create(t.Context(), class("theirs", backend.DriverName, nil), metav1.CreateOptions{})
	must(t, err)
	operator, replaced := clientOf(t, own, "first"), clientOf(t, own, "older")
	const refusal = "StorageClasses that it made alone"
	tryAll(t, []attempt{
		{"a class of its own", "", func(ctx context.Context) error {
			return operator.Create(ctx, class("a", backend.DriverName, ours))
		}},
		{"change it", "", func(ctx context.Context) error {
			own := &storagev1.StorageClass{}
			must(t, operator.Get(ctx, client.ObjectKey{Name: "a"}, own))
			own.Annotations = map[string]string{"a": "b"}
			return operator.Update(ctx, own)
		}},
		{"a class of another driver", refusal, func(ctx context.Context) error {
			return operator.Create(ctx, class("b", "other.example.com", ours))
		}},
		{"a class without the label", refusal, func(ctx context.Context) error {
			return operator.Create(ctx, class("c", backend.DriverName, nil))
		}},
		{"delete a class of people", refusal, func(ctx context.Context) error {
			return operator.Delete(ctx, class("theirs", "", nil))
		}},
		{"a class in an older term", "FenceLost", func(ctx context.Context) error {
			return replaced.Create(ctx, class("d", backend.DriverName, ours))
		}},
		{"delete its own", "", func(ctx context.Context) error { return operator.Delete(ctx, class("a", "", nil)) }},
	})
}
