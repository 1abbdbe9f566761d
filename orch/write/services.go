package write

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
)

// managerMode is in whose name spec.mode is applied.
const managerMode = "ceph-orch.mode"

// pause has the cluster observed only: nothing is changed, as by 'ceph orch pause' of cephadm.
func pause(ctx context.Context, c *Call) (any, error) {
	return "", setMode(ctx, c, api.ClusterObserved)
}

func resume(ctx context.Context, c *Call) (any, error) { return "", setMode(ctx, c, api.ClusterActive) }

func setMode(ctx context.Context, c *Call, mode api.ClusterMode) error {
	u := object("StorageCluster", c.View.Cluster.Namespace, c.View.Cluster.Name)
	if err := unstructured.SetNestedField(u.Object, string(mode), "spec", "mode"); err != nil {
		return err
	}
	if err := apply.Object(ctx, c.Client, u, managerMode, c.take()); err != nil {
		return err
	}
	c.until(ctx, seenWithin, func(v *engine.View) bool { return v.Cluster.ModeOf() == mode })
	return nil
}

// removeService deletes what declares a service. Its data stays, whatever its deletionPolicy says.
// A service that there is not is no error: 'ceph nfs cluster rm' asks to remove one that may not be
// there.
func removeService(ctx context.Context, c *Call) (any, error) {
	a, err := read[struct {
		Name  string `json:"service_name"`
		Force bool   `json:"force"`
	}](c)
	if err != nil {
		return nil, err
	}
	kind, id, _ := strings.Cut(a.Name, ".")
	switch kind {
	case "mon", "mgr":
		return nil, answer.Errorf("the service %s cannot be removed: the cluster needs it; lower its count with "+
			"'ceph orch apply %s'", kind, kind)
	}
	if err := c.awaitWritten(ctx, a.Name); err != nil {
		return nil, err
	}
	if kind == "osd" {
		return removeGroup(ctx, c, id, a.Force)
	}
	r := c.resourceOf(kind, id)
	if r == nil {
		return fmt.Sprintf("Invalid service '%s'. Use 'ceph orch ls' to list available services.\n", a.Name), nil
	}
	if err := deleteRetained(ctx, c, r); err != nil {
		return nil, err
	}
	c.until(ctx, seenWithin, func(v *engine.View) bool {
		for _, x := range v.Resources {
			if x.GetUID() == r.GetUID() {
				return x.GetDeletionTimestamp() != nil
			}
		}
		return true
	})
	return "Removed service " + a.Name, nil
}

// resourceKinds are the kinds of the resources that declare services, by the types of these.
var resourceKinds = map[string]string{
	"mds": "Filesystem", "rgw": "ObjectStore", "rbd-mirror": "RBDMirror", "osd": "DriveGroup",
	"mon": "StorageCluster", "mgr": "StorageCluster",
}

// resourceOf is the resource that declares a service, nil where there is none.
func (c *Call) resourceOf(kind, id string) api.Resource {
	for _, r := range c.View.Resources {
		if r.ResourceKind() == resourceKinds[kind] && (r.GetName() == id || kind == "rbd-mirror" && id == "") {
			return r
		}
	}
	return nil
}

// deleteRetained deletes a resource. One whose deletionPolicy is Wipe gets Retain first.
func deleteRetained(ctx context.Context, c *Call, r api.Resource) error {
	u := object(r.ResourceKind(), r.GetNamespace(), r.GetName())
	there, err := live(ctx, c.Client, u)
	if err != nil || there == nil || there.GetDeletionTimestamp() != nil {
		return err
	}
	policy, _, _ := unstructured.NestedString(there.Object, "spec", "deletionPolicy")
	if policy == string(api.DeletionWipe) {
		retain := string(api.DeletionRetain)
		if err := unstructured.SetNestedField(u.Object, retain, "spec", "deletionPolicy"); err != nil {
			return err
		}
		if err := apply.Object(ctx, c.Client, u, "ceph-orch.remove", true); err != nil {
			return err
		}
	}
	uid := there.GetUID()
	return writing(client.IgnoreNotFound(c.Client.Delete(ctx, u, client.Preconditions{UID: &uid})), "%s",
		apply.NameOf(u))
}

// removeGroup deletes a drive group without OSDs. One with OSDs takes no more disks, if the call is
// forced; its OSDs stay, as with cephadm.
func removeGroup(ctx context.Context, c *Call, id string, force bool) (any, error) {
	for _, g := range engine.OfKind[*api.DriveGroup](c.View.Resources) {
		switch {
		case spec.GroupID(g) != id:
			continue
		case len(g.Status.Devices) == 0:
			return "Removed service osd." + id, deleteRetained(ctx, c, g)
		case !force:
			return nil, answer.Errorf("drive group osd.%s has OSDs on %d devices, which stay when it is removed: use "+
				"--force, or remove them with 'ceph orch osd rm'", id, len(g.Status.Devices))
		}
		return fmt.Sprintf("Service osd.%s takes no more disks; its OSDs stay", id), hold(ctx, c, g, api.NewDevicesHold)
	}
	return fmt.Sprintf("Invalid service 'osd.%s'. Use 'ceph orch ls' to list available services.\n", id), nil
}

// hold sets what a drive group does with disks that come later.
func hold(ctx context.Context, c *Call, g *api.DriveGroup, policy api.NewDevicePolicy) error {
	u := object("DriveGroup", g.Namespace, g.Name)
	if err := unstructured.SetNestedField(u.Object, string(policy), "spec", "newDevices"); err != nil {
		return err
	}
	if err := apply.Object(ctx, c.Client, u, "ceph-orch.new-devices", true); err != nil {
		return err
	}
	c.until(ctx, seenWithin, func(v *engine.View) bool {
		for _, x := range engine.OfKind[*api.DriveGroup](v.Resources) {
			if x.Name == g.Name {
				return x.Spec.NewDevices == policy
			}
		}
		return true
	})
	return nil
}
