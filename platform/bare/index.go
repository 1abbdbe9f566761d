package bare

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The indexes of the caches: Daemons by their host, and StorageNodes by the host that they were accepted on and by the one that
// they select.
const (
	byHost     = "spec.host"
	acceptedOn = "status.host"
	selecting  = "spec.nodeSelector.hostname"
)

// anyHost stands in the index for nodes that select hosts by other labels than the host's name.
const anyHost = "*"

// addIndexes makes the indexes, before the caches are filled.
func addIndexes(ctx context.Context, c cache.Cache) error {
	for _, x := range []struct {
		of    client.Object
		field string
		value client.IndexerFunc
	}{
		{&api.Daemon{}, byHost, func(o client.Object) []string { return []string{o.(*api.Daemon).Spec.Host} }},
		{&api.StorageNode{}, acceptedOn, func(o client.Object) []string { return []string{o.(*api.StorageNode).Status.Host} }},
		{&api.StorageNode{}, selecting, func(o client.Object) []string {
			if name, ok := o.(*api.StorageNode).Spec.NodeSelector[api.LabelHostname]; ok {
				return []string{name}
			}
			return []string{anyHost}
		}},
	} {
		if err := c.IndexField(ctx, x.of, x.field, x.value); err != nil {
			return fmt.Errorf("while preparing the index %s: %w", x.field, err)
		}
	}
	return nil
}

// nodesMeaning are the nodes that may have been accepted on a host or select it; others cannot.
func (s *Store) nodesMeaning(host *api.Host) []api.StorageNode {
	var all []api.StorageNode
	for _, by := range []client.MatchingFields{
		{acceptedOn: host.Name}, {selecting: host.Labels[api.LabelHostname]}, {selecting: anyHost},
	} {
		var list api.StorageNodeList
		s.list(&list, by)
		all = append(all, list.Items...)
	}
	return all
}
