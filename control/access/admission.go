package access

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// HostAdmission holds hosts to what the authorizer cannot see: the name of what they create, and the content of what they
// write.
type HostAdmission struct{}

var _ admission.ValidationInterface = HostAdmission{}

// Handles says which operations are looked at.
func (HostAdmission) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Validate refuses a host's writes to what is not its own. Everybody else's pass.
func (HostAdmission) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	host, ok := AgentOf(a.GetUserInfo())
	if !ok || inGroup(a.GetUserInfo(), GroupMasters) || inGroup(a.GetUserInfo(), GroupAdmins) {
		return nil
	}
	var err error
	switch a.GetResource().GroupResource().String() {
	case "hosts." + api.Group:
		err = hostWrite(host, a)
	case "daemons." + api.Group:
		err = daemonWrite(host, a)
	case "actions." + api.Group:
		err = actionWrite(host, a)
	case "leases.coordination.k8s.io":
		err = leaseWrite(host, a)
	}
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// hostWrite holds a host to its own Host. It cannot create one: joining does, and a host that was deleted stays out. Nor can it
// write labels, which are the administrator's: a host that could label itself could have daemons, and their keys, come to it.
func hostWrite(host string, a admission.Attributes) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	if object.GetName() != host || a.GetOperation() == admission.Create {
		return fmt.Errorf("host %s may write the Host %s alone, which is made when it joins", host, host)
	}
	before, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	after, err := content(a.GetObject())
	if err != nil {
		return err
	}
	if err := sameConditions(before, after); err != nil {
		return err
	}
	return plainStatus(after)
}

func leaseWrite(host string, a admission.Attributes) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return err
	}
	if object.GetName() != api.HostLease(host) {
		return fmt.Errorf("host %s may write the lease %s alone", host, api.HostLease(host))
	}
	lease, ok := a.GetObject().(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("the lease came as %T", a.GetObject())
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != host {
		return fmt.Errorf("host %s holds the lease %s itself", host, api.HostLease(host))
	}
	if lease.Spec.PreferredHolder != nil || lease.Spec.Strategy != nil {
		return fmt.Errorf("host %s may not set preferredHolder or strategy of its lease", host)
	}
	if len(object.GetLabels())+len(object.GetFinalizers())+len(object.GetOwnerReferences()) > 0 {
		return fmt.Errorf("the lease of host %s must have no labels, finalizers or owners", host)
	}
	return instanceAlone(host, object.GetAnnotations())
}

// instanceAlone takes no annotation but the instance of the agent, in its form: the leader shows parts of it.
func instanceAlone(host string, annotations map[string]string) error {
	for key, value := range annotations {
		if key == instance.Farewell && value == string(absence.Stopped) {
			continue
		}
		if key != instance.Annotation {
			return fmt.Errorf("the lease of host %s must have no annotation but %s", host, instance.Annotation)
		}
		if _, err := instance.Parse(value); err != nil {
			return fmt.Errorf("the lease of host %s: %w", host, err)
		}
	}
	return nil
}

// daemonWrite lets a host write the status of its own daemons, and take away the agent's finalizer when it has cleaned up.
func daemonWrite(host string, a admission.Attributes) error {
	before, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	if owner, _, _ := unstructured.NestedString(before, "spec", "host"); owner != host {
		return fmt.Errorf("the daemon runs on host %q", owner)
	}
	after, err := content(a.GetObject())
	if err != nil {
		return err
	}
	if a.GetSubresource() == "status" {
		return plainStatus(after)
	}
	if !reflect.DeepEqual(withoutFinalizer(before), withoutFinalizer(after)) {
		return fmt.Errorf("a host may change only the status of a daemon, and remove the finalizer %s",
			api.FinalizerDaemon)
	}
	return nil
}

func content(obj runtime.Object) (map[string]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the object came as %T", obj)
	}
	return u.Object, nil
}

// withoutFinalizer returns what must stay the same when the finalizer is taken away. The server itself keeps the other
// fields of the metadata that are left out here.
func withoutFinalizer(daemon map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: daemon}).DeepCopy()
	finalizers := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == api.FinalizerDaemon })
	owners := u.GetOwnerReferences()
	kept := metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
		OwnerReferences: owners, Finalizers: finalizers,
	}
	if len(kept.Finalizers) == 0 {
		kept.Finalizers = nil
	}
	return map[string]any{"metadata": kept, "spec": u.Object["spec"]}
}
