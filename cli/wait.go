package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// redraw is how often a terminal's clock moves while nothing changes.
const redraw = time.Second

// waitReady waits until all that was applied is effective: the clusters that the objects belong to are ready, and actions have
// ended.
func (g *globals) waitReady(ctx context.Context, c client.Client, objects []object, o applyOptions, p *printer) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	keys, err := concerned(ctx, c, objects)
	if err != nil {
		return err
	}
	// Each is waited for at the same time: one that is refused or slow does not hide what becomes of the others.
	errs := make([]error, len(keys)+len(objects))
	p.several = countActions(objects) > 1
	var wg sync.WaitGroup
	for i, x := range objects {
		if x.GetKind() == engine.KindAction {
			a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: x.GetNamespace(), Name: x.GetName()}}
			wg.Go(func() { errs[len(keys)+i] = g.followAction(ctx, c, a, o.timeout, p) })
		}
	}
	for i, key := range keys {
		wg.Go(func() { errs[i] = g.waitCluster(ctx, c, key, appliedTo(key, objects), o, p) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// concerned returns the clusters that the objects belong to, each once.
func concerned(ctx context.Context, c client.Client, objects []object) ([]types.NamespacedName, error) {
	var keys []types.NamespacedName
	seen := map[types.NamespacedName]bool{}
	add := func(namespace, name string) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "StorageCluster":
			add(o.GetNamespace(), o.GetName())
		case "StorageNode":
			name, err := clusterOfNode(ctx, c, o)
			if err != nil {
				return nil, err
			}
			add(o.GetNamespace(), name)
		default:
			if api.NewResource(o.GetKind()) != nil {
				name, _, _ := unstructured.NestedString(o.Object, "spec", "cluster")
				add(o.GetNamespace(), name)
			}
		}
	}
	return keys, nil
}

// appliedTo is what of a cluster is among the objects that were applied.
func appliedTo(key types.NamespacedName, objects []object) *applied {
	a := &applied{resources: map[string]bool{}}
	for _, o := range objects {
		name, _, _ := unstructured.NestedString(o.Object, "spec", "cluster")
		switch {
		case o.GetNamespace() != key.Namespace:
		case o.GetKind() == engine.KindCluster && o.GetName() == key.Name, o.GetKind() == engine.KindNode && (name == "" || name == key.Name):
			a.whole = true
		case api.NewResource(o.GetKind()) != nil && name == key.Name:
			a.resources[o.String()] = true
			a.whole = a.whole || !engine.OfResource(o.String())
		}
	}
	return a
}

// clusterOfNode returns the cluster that a node names, or the only one of its type in its namespace.
func clusterOfNode(ctx context.Context, c client.Client, o object) (string, error) {
	var node api.StorageNode
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &node); err != nil {
		return "", fmt.Errorf("while reading %s: %w", o, err)
	}
	if name := node.ClusterName(); name != "" {
		return name, nil
	}
	var list api.StorageClusterList
	err := withDeadline(ctx, func(ctx context.Context) error { return c.List(ctx, &list, client.InNamespace(o.GetNamespace())) })
	if err != nil {
		return "", fmt.Errorf("while reading storageclusters: %w", err)
	}
	var names []string
	for _, sc := range list.Items {
		if sc.Spec.Type == node.Spec.Type {
			names = append(names, sc.Name)
		}
	}
	if len(names) == 1 {
		return names[0], nil
	}
	return "", fmt.Errorf("%s names no cluster, and namespace %s has %d of its type: set spec.cluster",
		o, o.GetNamespace(), len(names))
}

func (g *globals) waitCluster(ctx context.Context, c client.Client, key types.NamespacedName, applied *applied, o applyOptions, p *printer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := g.watchNamespace(ctx, key.Namespace)
	if ctx.Err() != nil {
		return waitEnded(ctx, key, o.timeout, snapshot{})
	}
	if err != nil {
		return err
	}
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	seen, run := false, laterRun{client: c, key: key, always: o.laterRun}
	if err := mustExist(ctx, c, key); err != nil {
		return err
	}
	for {
		s, err := w.snapshot(ctx, key)
		if err != nil {
			return err
		}
		if seen && s.Cluster == nil {
			return &exitError{exitFailed, fmt.Errorf("another user deleted storagecluster/%s", key.Name)}
		}
		seen = s.Cluster != nil
		s.applied = applied
		if s.outcome() != refused || p.json { // the error says it, and once is enough
			p.show(key.Name, s)
		}
		s, is, err := run.verdict(ctx, s)
		if ctx.Err() != nil {
			return waitEnded(ctx, key, o.timeout, s)
		} else if err != nil {
			return err
		}
		switch is {
		case ready:
			p.notes(key.Name, s.refusedBeside())
			return nil
		case refused:
			return refusal(key.Name, s)
		case held:
			return heldBack(key.Name, s)
		case underWay:
		}
		select {
		case <-w.changed:
		case <-ticker.C:
		case <-ctx.Done():
			return waitEnded(ctx, key, o.timeout, s)
		}
	}
}

// mustExist refuses to wait for a cluster that there is not: nobody looks at what names it.
func mustExist(ctx context.Context, c client.Client, key types.NamespacedName) error {
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, key, &api.StorageCluster{}) })
	switch {
	case apierrors.IsNotFound(err):
		return &exitError{exitRefused, fmt.Errorf("storagecluster/%s does not exist in namespace %s: the applied objects "+
			"have no effect until you declare the cluster",
			key.Name, key.Namespace)}
	case err != nil:
		return fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
	}
	return nil
}

// readLatest reads a snapshot to end the waiting by. A watch may be behind what was applied a moment ago, and that of one kind
// behind that of another. The engine takes back its word on the cluster before it says that it has seen a node; so the
// cluster is read after its nodes.
func readLatest(ctx context.Context, c client.Client, key types.NamespacedName) (snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := readSnapshot(ctx, c, key)
	if err != nil || s.Cluster == nil {
		return s, err
	}
	var latest api.StorageCluster
	if err := c.Get(ctx, key, &latest); client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
	} else if err != nil {
		s.Cluster = nil
		return s, nil
	}
	s.Cluster = &latest
	return s, nil
}

// refusal says what is refused. Only of a cluster that is refused as a whole nothing is made; what was applied stays declared anyway.
func refusal(name string, s snapshot) error {
	text := strings.Join(s.refusals(), "\n  ")
	if s.nothingIsMade() {
		return &exitError{exitRefused, fmt.Errorf("%s is refused, and nothing was created:\n  %s", name, text)}
	}
	return &exitError{exitRefused, fmt.Errorf("parts of %s cannot be carried out:\n  %s\nThey stay declared and are "+
		"carried out when possible: correct and apply them again, or delete them",
		name, text)}
}

// heldBack says that waiting is of no use in the cluster's mode.
func heldBack(name string, s snapshot) error {
	text := s.condition(api.ClusterReady).Message
	if reasons := s.decisions(); len(reasons) > 0 && s.Cluster.ModeOf() == api.ClusterObserved {
		text += ":\n  " + strings.Join(reasons, "\n  ")
	}
	return &exitError{exitRefused, fmt.Errorf("%s was applied, but has no effect: %s", name, text)}
}

func waitEnded(ctx context.Context, key types.NamespacedName, timeout time.Duration, s snapshot) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exitError{exitFailed, errors.New("interrupted; the work continues: see 'holdfast status'")}
	}
	return &exitError{exitTimeout, fmt.Errorf("%s is not ready after %s (%s); the work continues: see 'holdfast "+
		"status --watch'", key.Name, timeout, s.missing())}
}
