package engine

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The functions below say how objects look that a Store makes, so that all Stores make them alike.

// DaemonFor returns the Daemon that a change asks for, with the labels of its cluster, its owner and the
// finalizer that keeps it until its agent has cleaned up. The finalizer is there from the start: an
// agent that added it later could come too late.
func DaemonFor(cluster *api.StorageCluster, change DaemonChange) *api.Daemon {
	d := change.Daemon.DeepCopy()
	d.ObjectMeta = metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: change.Daemon.Name, Annotations: d.Annotations, Labels: maps.Clone(d.Labels),
		Finalizers: []string{api.FinalizerDaemon}, OwnerReferences: Owner(cluster),
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	maps.Copy(d.Labels, LabelsFor(cluster, d.Spec.Type))
	d.Spec.Cluster = cluster.Name
	d.Status = api.DaemonStatus{}
	// The defaults of the API's schema: a zero duration is written as "0s", which the schema takes for a choice.
	if d.Spec.StopTimeout.Duration == 0 {
		d.Spec.StopTimeout.Duration = 30 * time.Second
	}
	if d.Spec.OnRemoval == "" {
		d.Spec.OnRemoval = api.DeletionRetain
	}
	return d
}

// StatusFor returns the cluster's StorageStatus, before it says anything.
func StatusFor(cluster *api.StorageCluster) *api.StorageStatus {
	return &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace, Name: cluster.Name, Labels: LabelsFor(cluster, ComponentStatus),
	}}
}

// EventFor returns the event with this number.
func EventFor(cluster *api.StorageCluster, sequence int64, e Event) *api.ClusterEvent {
	return &api.ClusterEvent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: api.ClusterEventName(cluster.Name, sequence),
			Labels: LabelsFor(cluster, ComponentEvent),
		},
		Cluster: cluster.Name, Sequence: sequence, Code: string(e.Code), Object: words.Cut(e.Object, 256),
		Message: words.Cut(e.Message, api.MaxClusterEventMessage), Time: metav1.NewMicroTime(e.Time), Objects: e.Objects,
	}
}

// Requested says whether an orchestration of the cluster was asked for between the two versions of it. Stores tell of it like
// of a change of the spec.
func Requested(was, is *api.StorageCluster) bool {
	return was.Annotations[api.AnnotationOrchestrate] != is.Annotations[api.AnnotationOrchestrate]
}

// ClustersOfHost returns the clusters that a host matters to: those whose nodes select it or were accepted on it, and those
// with daemons on it.
func ClustersOfHost(host *api.Host, nodes []api.StorageNode, daemons []api.Daemon, clusters []api.StorageCluster) []types.NamespacedName {
	found := map[types.NamespacedName]bool{}
	for i := range nodes {
		n := &nodes[i]
		if !means(n, host) {
			continue
		}
		if c := ClusterOf(n, clusters); c != "" {
			found[key(n.Namespace, c)] = true
		}
	}
	for i := range daemons {
		if d := &daemons[i]; d.Spec.Host == host.Name {
			found[key(d.Namespace, d.Spec.Cluster)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareKeys)
}

// OnHost sorts out what is on a host, of everything that there is. It is pure.
func OnHost(host *api.Host, nodes []api.StorageNode, daemons []api.Daemon, clusters []api.StorageCluster) *HostView {
	v := &HostView{Host: host, Clusters: ClustersOfHost(host, nodes, daemons, clusters)}
	for i := range nodes {
		if means(&nodes[i], host) {
			v.Nodes = append(v.Nodes, nodes[i])
		}
	}
	for i := range daemons {
		if daemons[i].Spec.Host == host.Name {
			v.Daemons = append(v.Daemons, daemons[i])
		}
	}
	slices.SortFunc(v.Nodes, func(a, b api.StorageNode) int { return compareKeys(key(a.Namespace, a.Name), key(b.Namespace, b.Name)) })
	slices.SortFunc(v.Daemons, func(a, b api.Daemon) int { return compareKeys(key(a.Namespace, a.Name), key(b.Namespace, b.Name)) })
	return v
}

// means says whether a StorageNode selects a host or was accepted on it.
func means(node *api.StorageNode, host *api.Host) bool {
	return node.Status.Host == host.Name || hasLabels(host.Labels, node.Spec.NodeSelector)
}
