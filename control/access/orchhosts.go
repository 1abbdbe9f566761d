package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/admission"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// choosers are the kinds of resources that choose hosts by labels.
const choosers = "storageclusters " + orchKinds

// Chooser is a resource that chooses hosts.
type Chooser struct {
	Kind, Namespace, Name string
	// Cluster is the StorageCluster of its namespace that it belongs to; empty where it names none.
	Cluster string
	// Spec is its whole spec.
	Spec map[string]any
}

// host lets labels be written that belong to 'ceph orch', and say where a host is that has none such
// yet, of hosts that no other cluster uses.
func (w *orchWrite) host(ctx context.Context) error {
	if w.a.GetOperation() != admission.Update {
		return errors.New("'ceph orch' may not create or delete a Host")
	}
	if !reflect.DeepEqual(without(w.before, nil), without(w.after, nil)) {
		return errors.New("'ceph orch' may change only labels of a host")
	}
	was := (&unstructured.Unstructured{Object: w.before}).GetLabels()
	is := (&unstructured.Unstructured{Object: w.after}).GetLabels()
	allowed := func(label string) bool {
		return strings.HasPrefix(label, wire.LabelPrefix) ||
			slices.Contains(api.LocationLabels(), label) && was[label] == ""
	}
	if err := sameMeta(w.before, w.after, allowed); err != nil {
		return err
	}
	if err := w.ownHost(ctx, w.a.GetName()); err != nil {
		return err
	}
	return w.ownLabels(ctx, changed(was, is))
}

// changed are the labels that two sets do not have alike.
func changed(was, is map[string]string) (labels []string) {
	all := maps.Clone(was)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, is)
	for label := range all {
		before, had := was[label]
		if after, has := is[label]; had != has || before != after {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return labels
}

// ownHost refuses a host that another cluster has daemons on, or declares.
func (w *orchWrite) ownHost(ctx context.Context, host string) error {
	daemons, err := w.Kept.Daemons(ctx, "", fields.OneTermEqualSelector("spec.host", host).String())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(daemons, func(d api.Daemon) bool {
		return d.Namespace != w.cluster.Namespace || d.Spec.Cluster != w.cluster.Name
	})
	if i >= 0 {
		return fmt.Errorf("cluster %s/%s has daemons on host %s, too: use 'holdfast host'", daemons[i].Namespace,
			daemons[i].Spec.Cluster, host)
	}
	nodes, err := w.Kept.Nodes(ctx)
	if err != nil {
		return err
	}
	for i := range nodes {
		if n := &nodes[i]; declares(n, host) && !w.owns(n) {
			return fmt.Errorf("StorageNode %s/%s gives host %s to another cluster: use 'holdfast host'", n.Namespace,
				n.Name, host)
		}
	}
	return nil
}

// declares says whether a StorageNode is one of a host.
func declares(n *api.StorageNode, host string) bool {
	return n.Status.Host == host || n.Status.Host == "" && n.Spec.NodeSelector[api.LabelHostname] == host
}

// owns says whether a StorageNode may be one of the cluster.
func (w *orchWrite) owns(n *api.StorageNode) bool {
	if n.Namespace != w.cluster.Namespace || n.Spec.Type != api.StorageCeph {
		return false
	}
	name := n.ClusterName()
	return name == "" || name == w.cluster.Name
}

// ownLabels refuses labels by which another cluster chooses hosts: its daemons would come with their
// keys to a host that this cluster names.
func (w *orchWrite) ownLabels(ctx context.Context, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	all, err := w.Kept.Choosers(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		if c.Namespace == w.cluster.Namespace && (c.Cluster == "" || c.Cluster == w.cluster.Name) {
			continue
		}
		for _, label := range labels {
			if speaksOf(c.Spec, label) {
				return fmt.Errorf("%s %s/%s of another cluster chooses hosts by label %s: use 'holdfast host label'",
					c.Kind, c.Namespace, c.Name, label)
			}
		}
	}
	return nil
}

// speaksOf says whether a text stands anywhere in a part of an object.
func speaksOf(part any, text string) bool {
	switch v := part.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return speaksOf(x, text) })
	case map[string]any:
		for key, value := range v {
			if key == text || speaksOf(value, text) {
				return true
			}
		}
	}
	return false
}

// Choosers implements Kept.
func (f *storedFacts) Choosers(ctx context.Context) ([]Chooser, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	var all []Chooser
	for _, resource := range strings.Fields(choosers) {
		text, err := f.client.Get().Resource(resource).Do(ctx).Raw()
		var list struct {
			Items []struct {
				Kind     string
				Metadata struct{ Namespace, Name string }
				Spec     map[string]any
			}
		}
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return nil, internal("while reading who chooses hosts by labels", err)
		}
		for _, x := range list.Items {
			c := Chooser{Kind: x.Kind, Namespace: x.Metadata.Namespace, Name: x.Metadata.Name, Spec: x.Spec}
			if c.Cluster, _ = x.Spec["cluster"].(string); resource == "storageclusters" {
				c.Cluster = c.Name
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// Nodes implements Kept.
func (f *storedFacts) Nodes(ctx context.Context) ([]api.StorageNode, error) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	list := &api.StorageNodeList{}
	if err := f.client.Get().Resource("storagenodes").Do(ctx).Into(list); err != nil {
		return nil, internal("while looking which StorageNodes there are", err)
	}
	return list.Items, nil
}
