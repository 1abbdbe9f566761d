package access

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// OrchAdmission holds what the leader writes in the name of 'ceph orch' to the cluster that asked:
// no other cluster, no machine that another one uses, no data destroyed, no approval.
type OrchAdmission struct{ Kept Kept }

var _ admission.ValidationInterface = OrchAdmission{}

// Handles says which operations are looked at.
func (OrchAdmission) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// Validate refuses what leaves the cluster. The requests of everybody else pass.
func (x OrchAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	u := a.GetUserInfo()
	cluster, ok := wire.ClusterOf(u.GetName(), u.GetGroups())
	if !ok || inGroup(u, GroupMasters) || inGroup(u, GroupAdmins) {
		return nil
	}
	w := orchWrite{OrchAdmission: x, cluster: cluster, a: a}
	var err error
	w.before, err = orEmpty(a.GetOldObject() == nil,
		func() (map[string]any, error) { return content(a.GetOldObject()) })
	if err == nil {
		w.after, err = orEmpty(a.GetObject() == nil || a.GetOperation() == admission.Delete,
			func() (map[string]any, error) { return content(a.GetObject()) })
	}
	if err == nil {
		err = w.judge(ctx)
	}
	if err == nil || apierrors.IsInternalError(err) {
		return err // what could not be looked up is no refusal
	}
	return admission.NewForbidden(a, err)
}

func orEmpty(empty bool, read func() (map[string]any, error)) (map[string]any, error) {
	if empty {
		return map[string]any{}, nil
	}
	return read()
}

// orchWrite is one request in the name of 'ceph orch'.
type orchWrite struct {
	OrchAdmission
	cluster types.NamespacedName
	a       admission.Attributes
	// before and after are the object, empty where there is none.
	before, after map[string]any
}

func (w *orchWrite) judge(ctx context.Context) error {
	switch resource := w.a.GetResource().GroupResource(); {
	case resource.Group != api.Group:
		return errors.New(orchMay)
	case resource.Resource == "storageclusters":
		return w.storageCluster()
	case resource.Resource == "hosts":
		return w.host(ctx)
	case resource.Resource == "actions":
		return w.action(ctx)
	case resource.Resource == "daemons":
		return w.daemon()
	}
	return w.resource()
}

// clusterFields are the fields of a StorageCluster that 'ceph orch' writes.
var clusterFields = [][]string{{"mode"}, {"ceph", "mon"}, {"ceph", "mgr"}, {"ceph", "config"}}

func (w *orchWrite) storageCluster() error {
	if w.a.GetOperation() != admission.Update {
		return errors.New("'ceph orch' may not create or delete a cluster")
	}
	if !reflect.DeepEqual(without(w.before, clusterFields), without(w.after, clusterFields)) {
		return errors.New("'ceph orch' may change only spec.mode, spec.ceph.mon, spec.ceph.mgr and spec.ceph.config " +
			"of its cluster")
	}
	if err := w.options(); err != nil {
		return err
	}
	return sameMeta(w.before, w.after, nil)
}

// outside are options of Ceph that name files and programs of the hosts, as far as the kind takes
// them: daemons run as root.
var outside = regexp.MustCompile(`(^|_)(file|files|path|dir|hook|socket|library|keyring|command|program|chdir)$`)

// options refuses options that name files and programs, unless they are as they were.
func (w *orchWrite) options() error {
	was, _, _ := unstructured.NestedMap(w.before, "spec", "ceph", "config")
	is, _, _ := unstructured.NestedMap(w.after, "spec", "ceph", "config")
	for section, of := range is {
		options, _ := of.(map[string]any)
		before, _ := was[section].(map[string]any)
		for name, value := range options {
			if outside.MatchString(name) && !reflect.DeepEqual(before[name], value) {
				return fmt.Errorf("option %s names files or programs of the hosts: set it in spec.ceph.config with "+
					"'holdfast apply' or kubectl", name)
			}
		}
	}
	return nil
}

// without is the spec of an object without some of its fields.
func without(object map[string]any, fields [][]string) map[string]any {
	spec, _, _ := unstructured.NestedMap(object, "spec") // a copy
	for _, f := range fields {
		unstructured.RemoveNestedField(spec, f...)
	}
	if ceph, ok := spec["ceph"].(map[string]any); ok && len(ceph) == 0 {
		delete(spec, "ceph")
	}
	return spec
}

// resource judges what declares a service, a host or disks.
func (w *orchWrite) resource() error {
	for _, object := range []map[string]any{w.before, w.after} {
		if len(object) == 0 {
			continue
		}
		switch name := text(object, "cluster"); name {
		case w.cluster.Name:
		case "":
			return fmt.Errorf("it names no cluster: set spec.cluster: %s there first", w.cluster.Name)
		default:
			return fmt.Errorf("it belongs to cluster %q, but the call is from cluster %s", name, w.cluster.Name)
		}
	}
	policy := cmpText(text(w.after, "deletionPolicy"), text(w.before, "deletionPolicy"))
	if policy == string(api.DeletionWipe) &&
		(w.a.GetOperation() == admission.Delete || text(w.before, "deletionPolicy") != policy) {
		return errors.New("'ceph orch' destroys no data: its deletionPolicy is Wipe; delete it with 'holdfast delete'")
	}
	return nil
}

func cmpText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// sameMeta refuses changes of labels, annotations, owners and finalizers. Labels that allowed names
// may change.
func sameMeta(before, after map[string]any, allowed func(label string) bool) error {
	was, is := &unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}
	kept := func(labels map[string]string) map[string]string {
		left := map[string]string{}
		for k, v := range labels {
			if allowed == nil || !allowed(k) {
				left[k] = v
			}
		}
		return left
	}
	if !reflect.DeepEqual(kept(was.GetLabels()), kept(is.GetLabels())) {
		return fmt.Errorf("'ceph orch' may change only labels that begin with %s", wire.LabelPrefix)
	}
	if len(was.GetAnnotations())+len(is.GetAnnotations()) > 0 &&
		!reflect.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) {
		return errors.New("'ceph orch' may change no annotations of it")
	}
	if !slices.Equal(was.GetFinalizers(), is.GetFinalizers()) ||
		len(was.GetOwnerReferences()) != len(is.GetOwnerReferences()) {
		return errors.New("'ceph orch' may change no finalizers and owners")
	}
	return nil
}

// daemonAnnotations are the requests to the planner that 'ceph orch' may leave on a Daemon.
var daemonAnnotations = []string{"holdfast.io/leave-requested", api.AnnotationStart}

// daemon lets a request to the planner be left on a Daemon of the cluster.
func (w *orchWrite) daemon() error {
	if w.a.GetOperation() != admission.Update || text(w.before, "cluster") != w.cluster.Name {
		return fmt.Errorf("'ceph orch' of cluster %s leaves requests on Daemons of its own cluster alone",
			w.cluster.Name)
	}
	was := (&unstructured.Unstructured{Object: w.before}).DeepCopy()
	is := (&unstructured.Unstructured{Object: w.after}).DeepCopy()
	for _, u := range []*unstructured.Unstructured{was, is} {
		annotations := u.GetAnnotations()
		for _, key := range daemonAnnotations {
			delete(annotations, key)
		}
		if len(annotations) == 0 {
			annotations = nil
		}
		u.SetAnnotations(annotations)
	}
	if !reflect.DeepEqual(withoutFinalizer(was.Object), withoutFinalizer(is.Object)) {
		return errors.New("'ceph orch' may change of a Daemon only the annotations " +
			strings.Join(daemonAnnotations, ", "))
	}
	return nil
}
