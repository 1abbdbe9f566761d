package complete

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/why"
)

// source is where names come from.
type source struct {
	ctx       context.Context //nolint:containedctx // a source lives for one completion
	client    client.Client
	namespace string
}

// kinds are Holdfast's kinds by what commands call them, and as 'why' does where that is another word.
var kinds = []struct{ resource, kind, short string }{
	{"actions", "Action", "action"},
	{"clients", "Client", "client"},
	{"clusterevents", "ClusterEvent", ""},
	{"daemons", "Daemon", "daemon"},
	{"drivegroups", "DriveGroup", "drivegroup"},
	{
		"filesystems", "Filesystem",
		"filesystem",
	},
	{"hosts", "Host", "host"},
	{"nfsexports", "NFSExport", "nfsexport"},
	{"objectstores", "ObjectStore", "objectstore"},
	{"objectstoreusers", "ObjectStoreUser", "objectstoreuser"},
	{"plans", "Plan", ""},
	{"pools", "Pool", "pool"},
	{"rbdmirrors", "RBDMirror", "rbdmirror"},
	{"storageclusters", "StorageCluster", "cluster"},
	{"storagenodes", "StorageNode", "node"},
	{"storagestatuses", "StorageStatus", ""},
	{"volumes", "Volume", "volume"},
}

// kindOf is the kind that a word means: a resource, one of it, or the kind itself. It is empty for others.
func kindOf(word string) string {
	word = strings.ToLower(word)
	for _, k := range kinds {
		if word == k.resource || word == strings.ToLower(k.kind) || word == k.short && word != "" {
			return k.kind
		}
	}
	return ""
}

// names are those of all objects of a kind.
func (s *source) names(kind string) (names []string) {
	var l metav1.PartialObjectMetadataList
	l.SetGroupVersionKind(api.GroupVersion.WithKind(kind + "List"))
	if err := s.client.List(s.ctx, &l, s.in(kind)...); err != nil {
		return nil
	}
	for _, o := range l.Items {
		names = append(names, o.Name)
	}
	return names
}

func (s *source) in(kind string) []client.ListOption {
	if kind == "Host" {
		return nil
	}
	return []client.ListOption{client.InNamespace(s.namespace)}
}

func ofKind(kind string) lister {
	return func(s *source, args []string, _ string) []string { return without(s.names(kind), args) }
}

// first lists for the first argument alone.
func first(l lister) lister {
	return func(s *source, args []string, begun string) []string {
		if len(args) > 0 {
			return nil
		}
		return l(s, args, begun)
	}
}

// without are the names that are not there yet.
func without(names, args []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(args, n) })
}

// daemons are those by the names that Ceph's people know, and by their Daemons' names where one of these was begun.
func daemons(s *source, _ []string, begun string) (names []string) {
	var l api.DaemonList
	if err := s.client.List(s.ctx, &l, client.InNamespace(s.namespace)); err != nil {
		return nil
	}
	for i := range l.Items {
		d := &l.Items[i]
		short := why.ShortName(d)
		switch {
		case begun != "" && !strings.HasPrefix(short, begun):
			names = append(names, d.Name+"\ton host "+d.Spec.Host)
		default:
			names = append(names, short+"\ton host "+d.Spec.Host)
		}
	}
	return names
}

// objects are kinds, and then the names of one; or KIND/NAME.
func objects(s *source, args []string, begun string) []string {
	if strings.Contains(begun, "/") || len(args) > 0 && strings.Contains(args[0], "/") {
		return slashed(s, args, begun)
	}
	if len(args) > 0 {
		return without(s.names(kindOf(args[0])), args[1:])
	}
	var all []string
	for _, k := range kinds {
		all = append(all, k.resource)
	}
	return all
}

// slashed are KIND/NAME.
func slashed(s *source, args []string, begun string) (all []string) {
	word, _, found := strings.Cut(begun, "/")
	if !found {
		for _, k := range kinds {
			all = append(all, strings.ToLower(k.kind)+"/")
		}
		return all
	}
	for _, name := range s.names(kindOf(word)) {
		all = append(all, word+"/"+name)
	}
	return without(all, args)
}

// explained is what 'why' explains: daemons by their short names, and KIND/NAME.
func explained(s *source, args []string, begun string) []string {
	if len(args) > 0 {
		return nil
	}
	if strings.Contains(begun, "/") {
		return slashed(s, args, begun)
	}
	all := daemons(s, args, begun)
	for _, k := range kinds {
		if k.short != "" {
			all = append(all, k.short+"/")
		}
	}
	return all
}

func isOpen(a *api.Action) bool    { return !a.Status.State.Final() }
func isPending(a *api.Action) bool { return a.Status.State == api.ActionPendingApproval }

// actions are those of the namespace, and the ones on hosts.
func actions(wanted func(*api.Action) bool) lister {
	return func(s *source, _ []string, _ string) (names []string) {
		for _, namespace := range slices.Compact([]string{s.namespace, api.SystemNamespace}) {
			var l api.ActionList
			if err := s.client.List(s.ctx, &l, client.InNamespace(namespace)); err != nil {
				continue
			}
			for i := range l.Items {
				if a := &l.Items[i]; wanted(a) {
					names = append(names, a.Name+"\t"+a.Spec.Kind+", "+string(a.Status.State))
				}
			}
		}
		return names
	}
}

// plans are those of an operation that can be carried out.
func plans(operation api.PlanOperation) lister {
	return func(s *source, _ []string, _ string) (names []string) {
		var l api.PlanList
		if err := s.client.List(s.ctx, &l, client.InNamespace(s.namespace)); err != nil {
			return nil
		}
		for i := range l.Items {
			p := &l.Items[i]
			done := p.Status.State == api.PlanApplied || p.Status.State == api.PlanStale ||
				p.Status.State == api.PlanFailed
			if p.Spec.Operation == operation && !done && p.Annotations[api.AnnotationExpiresAfter] == "" {
				names = append(names, p.Name)
			}
		}
		return names
	}
}

// devices are the ids of all hosts' disks.
func devices(s *source, _ []string, _ string) (names []string) {
	var l api.HostList
	if err := s.client.List(s.ctx, &l); err != nil {
		return nil
	}
	for i := range l.Items {
		for _, d := range l.Items[i].Status.Devices {
			if d.Parent == "" {
				names = append(names, d.ID+"\t"+d.Path+" of host "+l.Items[i].Name)
			}
		}
	}
	return names
}

// lights are on and off, and then a device.
func lights(s *source, args []string, begun string) []string {
	switch len(args) {
	case 0:
		return []string{"on", "off"}
	case 1:
		return devices(s, args, begun)
	}
	return nil
}
