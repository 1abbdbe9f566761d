package kube

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestControl shows that users have the rights that RBAC gives them, that the garbage collector and
// the controllers work, and that the API server comes back with what it had.
func TestControl(t *testing.T) {
	began := time.Now()
	k := Control(t)
	t.Logf("the control plane is ready after %s", time.Since(began).Round(time.Millisecond))
	if out := k.Kubectl(t, "version"); !strings.Contains(out, "Server Version: v1.36.") {
		t.Errorf("kubectl version says %q", out)
	}

	reader, err := kubernetes.NewForConfig(k.ConfigFor(t, "reader", "readers"))
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := reader.CoreV1().ConfigMaps("default").List(t.Context(), meta.ListOptions{})
		return err
	}
	if err := list(); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights reads: %v", err)
	}
	k.Kubectl(t, "create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
	await(t, "the right to read", func(context.Context) error { return list() })

	owner := k.create(t, "owner")
	owned := k.create(t, "owned", meta.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	})
	k.StopAPIServer(t)
	k.StartAPIServer(t)
	k.Kubectl(t, "delete", "configmap", owner.Name)
	await(t, "the garbage collector", func(ctx context.Context) error {
		_, err := k.Client().CoreV1().ConfigMaps("default").Get(ctx, owned.Name, meta.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return os.ErrExist
		}
		return err
	})
}

func (p *Plane) create(t *testing.T, name string, owners ...meta.OwnerReference) *core.ConfigMap {
	t.Helper()
	made, err := p.Client().CoreV1().ConfigMaps("default").Create(t.Context(),
		&core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, OwnerReferences: owners}}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
