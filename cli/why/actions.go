package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	acts "github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Open are the actions that have not ended and concern what is asked about, the most telling first: what waits for a person, then what is under way,
// then what waits for its turn; of each the oldest first. The steps of a cluster's own plan are told of in its report.
func Open(actions []api.Action, concerns func(*api.Action) bool) []*api.Action {
	var open []*api.Action
	for i := range actions {
		if a := &actions[i]; !a.Status.State.Final() && !acts.Quiet(a) && concerns(a) {
			open = append(open, a)
		}
	}
	slices.SortStableFunc(open, func(a, b *api.Action) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	return open
}

func rank(a *api.Action) int {
	return slices.Index([]api.ActionState{api.ActionPendingApproval, api.ActionRunning, api.ActionNew, api.ActionPendingSchedule, ""}, a.Status.State)
}

// OfCluster says whether an action concerns a cluster: it names the cluster, or is on a host as a whole that has a part in it.
func OfCluster(namespace, name string, host func(string) bool) func(*api.Action) bool {
	return func(a *api.Action) bool {
		return a.Spec.Cluster == name && a.Namespace == namespace || a.Spec.Cluster == "" && a.Spec.Host != "" && host(a.Spec.Host)
	}
}

// HostsOf says of which hosts a cluster has nodes or daemons, of those that are given.
func HostsOf(nodes []api.StorageNode, daemons []api.Daemon) func(string) bool {
	hosts := map[string]bool{}
	for i := range nodes {
		hosts[nodes[i].Status.Host] = true
	}
	for i := range daemons {
		hosts[daemons[i].Spec.Host] = true
	}
	return func(host string) bool { return hosts[host] }
}

// hostsOf says which hosts have a part in a cluster. A node that names no cluster has its daemons there.
func (w *World) hostsOf(c *api.StorageCluster) func(string) bool {
	nodes := slices.DeleteFunc(slices.Clone(w.Nodes), func(n api.StorageNode) bool { return n.ClusterName() != c.Name })
	return HostsOf(nodes, slices.DeleteFunc(slices.Clone(w.Daemons), func(d api.Daemon) bool { return d.Spec.Cluster != c.Name }))
}

// onDaemon says whether an action is on a daemon, or on its host as a whole.
func onDaemon(d *api.Daemon) func(*api.Action) bool {
	return func(a *api.Action) bool {
		return a.Spec.Target == "daemon/"+d.Name && a.Namespace == d.Namespace || a.Spec.Target == "host/"+d.Spec.Host
	}
}

func onHost(h *api.Host) func(*api.Action) bool {
	return func(a *api.Action) bool { return a.Spec.Host == h.Name || a.Spec.Target == "host/"+h.Name }
}

// withActions adds to an answer what is under way with what it is about. What waits for a person comes first among the next steps.
func (w *World) withActions(answer Answer, concerns func(*api.Action) bool) Answer {
	open := Open(w.Actions, concerns)
	if len(open) == 0 {
		return answer
	}
	a := action(open[0])
	text := "Action " + open[0].Name + ": " + a.Text
	if more := len(open) - 1; more > 0 {
		text = join(text, fmt.Sprintf("%d more not ended: 'holdfast action list'", more))
	}
	next := []string{answer.Next, a.Next}
	if open[0].Status.State == api.ActionPendingApproval {
		slices.Reverse(next)
	}
	return answered(join(answer.Text, text), strings.TrimSpace(next[0]+" "+upper(next[1]))).because(answer.Reason)
}
