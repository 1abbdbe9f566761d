package access

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// Kept tells what is relied on.
type Kept interface {
	// Cluster is a cluster; nil when there is none.
	Cluster(ctx context.Context, namespace, name string) (*api.StorageCluster, error)
	// Daemons are those of a namespace, or of all where it is empty, that a field selector selects.
	Daemons(ctx context.Context, namespace, selector string) ([]api.Daemon, error)
	// Nodes are all StorageNodes.
	Nodes(ctx context.Context) ([]api.StorageNode, error)
	// Choosers are all resources that may choose hosts by labels.
	Choosers(ctx context.Context) ([]Chooser, error)
}

// KeepAdmission keeps people from deleting what a storage system runs on, and from changing it, where nothing would ask the storage system. The
// servers themselves do so when the storage system can do without it.
type KeepAdmission struct{ Kept Kept }

var _ admission.ValidationInterface = KeepAdmission{}

// Handles says which operations are looked at.
func (KeepAdmission) Handles(operation admission.Operation) bool {
	return operation == admission.Delete || operation == admission.Update
}

// Validate refuses, and names the command that does what is wanted.
func (x KeepAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || inGroup(a.GetUserInfo(), GroupMasters) {
		return nil
	}
	judge := x.judge(a)
	if judge == nil {
		return nil
	}
	old, err := meta.Accessor(a.GetOldObject())
	if err == nil && old.GetDeletionTimestamp() == nil {
		err = judge(ctx, a)
	}
	if err == nil || apierrors.IsInternalError(err) {
		return err // what could not be looked up is no refusal
	}
	return admission.NewForbidden(a, err)
}

// judge is what decides on a request; nil where nothing is to be decided.
func (x KeepAdmission) judge(a admission.Attributes) func(context.Context, admission.Attributes) error {
	switch a.GetResource().GroupResource().String() {
	case "secrets":
		return x.secret
	case "hosts." + api.Group:
		if a.GetOperation() == admission.Delete {
			return x.host
		}
	case "daemons." + api.Group:
		if a.GetOperation() == admission.Delete {
			return x.daemon
		}
		return x.daemonWritten
	}
	return nil
}

// host refuses to delete a machine that is in service: nobody would move its data, stop its daemons or take its seat.
func (x KeepAdmission) host(ctx context.Context, a admission.Attributes) error {
	object, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	var host api.Host
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &host); err != nil {
		return fmt.Errorf("while reading host %s: %w", a.GetName(), err)
	}
	daemons, err := x.Kept.Daemons(ctx, "", fields.OneTermEqualSelector("spec.host", host.Name).String())
	if err != nil {
		return err
	}
	command := "holdfast host remove " + host.Name
	if !host.AgentHeard() {
		command += " --gone"
	}
	_, server := host.Labels[api.LabelServer]
	switch {
	case len(daemons) > 0:
		return fmt.Errorf("it has daemons (%d, such as %s): run '%s', which checks with their storage systems and "+
			"removes them first",
			len(daemons), daemons[0].Name, command)
	case server:
		return fmt.Errorf("it is a server: run '%s', which removes it from the quorum first", command)
	case host.AgentHeard():
		return fmt.Errorf("its agent is connected, and would lose access at once: run '%s'", command)
	}
	return nil
}

// daemon refuses to end a daemon that an active cluster has: nobody would ask the storage system whether it can do without it.
func (x KeepAdmission) daemon(ctx context.Context, a admission.Attributes) error {
	object, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	cluster, err := x.there(ctx, a.GetNamespace(), text(object, "cluster"))
	if cluster == nil || err != nil || cluster.ModeOf() != api.ClusterActive {
		return err
	}
	name := (&unstructured.Unstructured{Object: object}).GetName() // the request has none where many are deleted at once
	return fmt.Errorf("it belongs to the active storagecluster %s, and a deletion does not ask the storage system "+
		"whether it can do without it. To restart it, run 'holdfast daemon restart %s'; to move it, 'holdfast host "+
		"drain %s'; to remove it, change the spec of the cluster or its StorageNodes. If a message of Holdfast says "+
		"to delete it, set spec.mode of the cluster to Observed before, and to Active afterwards",
		cluster.Name, name, text(object, "host"))
}

// daemonWritten refuses to change what an active cluster's daemon is: the next run would put it
// right again, and what was started or stopped for it meanwhile would have been asked of no storage
// system. What the leader noted of it is lost for ever.
func (x KeepAdmission) daemonWritten(ctx context.Context, a admission.Attributes) error {
	before, err := content(a.GetOldObject())
	if err != nil {
		return err
	}
	after, err := content(a.GetObject())
	noted := changedMemory(before, after)
	if err != nil || noted == "" && equality.Semantic.DeepEqual(before["spec"], after["spec"]) {
		return err
	}
	cluster, err := x.there(ctx, a.GetNamespace(), text(before, "cluster"))
	if cluster == nil || err != nil || cluster.ModeOf() != api.ClusterActive {
		return err
	}
	if noted != "" {
		return fmt.Errorf("only the leader writes the annotation %s%s, which later plans need: "+
			"to change it by hand, set spec.mode of storagecluster %s to Observed first", leadermemory.Prefix, noted, cluster.Name)
	}
	return fmt.Errorf("the leader writes its spec from that of storagecluster %[1]s, and would undo the change. To "+
		"restart it, run 'holdfast daemon restart %[2]s'; to stop all daemons of its host, 'holdfast host "+
		"maintenance enter %[3]s'; to change its options, change the spec of the cluster. To change it by hand, set "+
		"spec.mode of the cluster to Observed first",
		cluster.Name, a.GetName(), text(before, "host"))
}

// changedMemory is the first name of what two versions of a Daemon do not have alike in the leader's memory.
func changedMemory(before, after map[string]any) string {
	daemon := func(object map[string]any) *api.Daemon {
		annotations := (&unstructured.Unstructured{Object: object}).GetAnnotations()
		return &api.Daemon{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	if names := leadermemory.Changed(daemon(before), daemon(after)); len(names) > 0 {
		return names[0]
	}
	return ""
}

// secret refuses to take keys away that daemons run with: Holdfast would make others, which the storage system does not know.
func (x KeepAdmission) secret(ctx context.Context, a admission.Attributes) error {
	before, ok := a.GetOldObject().(*corev1.Secret)
	if !ok || before.Labels[api.LabelCluster] == "" {
		return nil
	}
	after, changed := a.GetObject().(*corev1.Secret)
	if changed && !losesKeys(before, after) {
		return nil
	}
	cluster, err := x.there(ctx, before.Namespace, before.Labels[api.LabelCluster])
	if cluster == nil || err != nil || changed && cluster.ModeOf() != api.ClusterActive {
		return err
	}
	daemons, err := x.Kept.Daemons(ctx, before.Namespace, "")
	if err != nil || !runsWith(daemons, before) {
		return err
	}
	if changed {
		return fmt.Errorf("daemons of storagecluster %s use its keys, and the storage system knows no others: to "+
			"correct them by hand, "+
			"set spec.mode of the cluster to Observed first", cluster.Name)
	}
	return fmt.Errorf("daemons of storagecluster %s use its keys, and there is no other copy of them: Holdfast "+
		"removes the keys with their daemons or resources, or with the cluster", cluster.Name)
}

// there is the cluster, unless there is none or it is being deleted.
func (x KeepAdmission) there(ctx context.Context, namespace, name string) (*api.StorageCluster, error) {
	if name == "" { // nothing of Holdfast's drivers is without
		return nil, nil
	}
	cluster, err := x.Kept.Cluster(ctx, namespace, name)
	if err != nil || cluster == nil || cluster.DeletionTimestamp != nil {
		return nil, err
	}
	return cluster, nil
}

// losesKeys says whether a Secret is taken from its cluster, or something that it holds is. Another keyring file with the same key, for
// other capabilities, takes nothing.
func losesKeys(before, after *corev1.Secret) bool {
	if after.Labels[api.LabelCluster] != before.Labels[api.LabelCluster] || after.Annotations[api.AnnotationEntity] != before.Annotations[api.AnnotationEntity] {
		return true
	}
	if before.Annotations[api.AnnotationEntity] == "" { // none of Ceph's keys, but such as a certificate, which its owner renews
		return false
	}
	key := before.Data["key"]
	for name, value := range before.Data {
		now := after.Data[name]
		if !bytes.Equal(value, now) && (name != "keyring" || len(key) == 0 || !bytes.Contains(now, key)) {
			return true
		}
	}
	return false
}

// runsWith says whether a cluster that has daemons of its own runs with what a Secret holds. The key of a client that nothing of
// Holdfast runs with may be deleted: its owner gets another one. Daemons that are watched have their keys elsewhere.
func runsWith(daemons []api.Daemon, secret *corev1.Secret) bool {
	names, own := map[types.NamespacedName]bool{}, false
	for i := range daemons {
		if d := &daemons[i]; d.Spec.Cluster == secret.Labels[api.LabelCluster] {
			own = own || d.Spec.State != api.WantWatched
			addNames(names, d)
		}
	}
	entity := secret.Annotations[api.AnnotationEntity]
	ofDaemon := entity == "client.admin" || entity != "" && !strings.HasPrefix(entity, "client.")
	return own && (ofDaemon || names[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}])
}
