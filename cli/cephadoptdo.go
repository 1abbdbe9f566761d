package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// adopt makes the objects. One after the other: cut off anywhere, it is said again and adds what is missing. The StorageCluster comes first, with the
// annotation that keeps it from being founded.
func (g *globals) adopt(ctx context.Context, c client.Client, x *ceph.Adoption) error {
	owner, err := g.owner()
	if err != nil {
		return err
	}
	w := &writer{client: c, owner: owner}
	cluster := x.Cluster.DeepCopy()
	if err := g.declare(ctx, w, cluster); err != nil {
		return err
	}
	for _, s := range x.Secrets {
		if err := putKey(ctx, c, cluster, s); err != nil {
			return err
		}
	}
	for i := range x.Nodes {
		if err := g.declare(ctx, w, x.Nodes[i].DeepCopy()); err != nil {
			return err
		}
	}
	for i := range x.Daemons {
		if err := g.make(ctx, c, x.Daemons[i].DeepCopy()); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(g.out, "\nstoragecluster/%s is adopted: see 'holdfast status'. Its daemons run as before, "+
		"until 'holdfast ceph adopt %s --hand-over'\n", cluster.Name, cluster.Name)
	return err
}

// make creates an object, unless it is there.
func (g *globals) make(ctx context.Context, c client.Client, o client.Object) error {
	return g.made(ctx, c, o, withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, o) }))
}

// declare is make for what a person changes afterwards by 'holdfast apply': its fields are the person's, so that leaving one out takes it back.
func (g *globals) declare(ctx context.Context, w *writer, o client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("while writing %T %s: %w", o, o.GetName(), err)
	}
	t := target{object: object{Unstructured: &unstructured.Unstructured{Object: fields}}}
	t.SetGroupVersionKind(api.GroupVersion.WithKind(kindName(o)))
	unstructured.RemoveNestedField(t.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(t.Object, "status")
	found := w.create(ctx, t)
	if apierrors.IsAlreadyExists(found) { // cut off before its fields were the person's, maybe
		if t.live, err = w.read(ctx, t.object); err == nil && t.live != nil {
			err = w.takeOver(ctx, t)
		}
		if err != nil {
			return explain(t.object, err)
		}
	}
	return g.made(ctx, w.client, o, found)
}

// made tells that an object was created, or reads the one that was there.
func (g *globals) made(ctx context.Context, c client.Client, o client.Object, err error) error {
	there := apierrors.IsAlreadyExists(err)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return &exitError{exitRefused, &plainError{err}}
	case err != nil && !there:
		return fmt.Errorf("while creating %T %s: %w; to continue, run the command again", o, o.GetName(), err)
	}
	if err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) }); err != nil || there {
		return err
	}
	_, err = fmt.Fprintf(g.out, "%s %s created\n", strings.ToLower(kindName(o)), o.GetName())
	return err
}

func kindName(o client.Object) string {
	kind := fmt.Sprintf("%T", o)
	return kind[strings.LastIndexByte(kind, '.')+1:]
}

// putKey writes a key of the cluster, also over one of an earlier adoption of the same cluster.
func putKey(ctx context.Context, c client.Client, cluster *api.StorageCluster, k ceph.AdoptedSecret) error {
	return withDeadline(ctx, func(ctx context.Context) error {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster.Namespace, Name: k.Name, Annotations: k.Annotations, Labels: map[string]string{api.LabelCluster: cluster.Name},
			},
			Type: corev1.SecretTypeOpaque, Data: k.Data,
		}
		s.Annotations[ceph.AnnotationClusterUID] = string(cluster.UID)
		err := c.Create(ctx, s.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			var have corev1.Secret
			if err := c.Get(ctx, client.ObjectKeyFromObject(s), &have); err != nil {
				return err
			}
			s.ResourceVersion, s.Data = have.ResourceVersion, keptEntries(have.Data, k.Data)
			err = c.Update(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("while writing the Secret %s: %w; to continue, run the command again", k.Name, err)
		}
		return nil
	})
}

// keptEntries are what a Secret has with what is to be in it. What devices are encrypted with stays whatever happens: there may be no other copy.
func keptEntries(have, want map[string][]byte) map[string][]byte {
	all := maps.Clone(have)
	for name, value := range want {
		if name != api.KeyLUKS || len(have[name]) == 0 {
			all[name] = value
		}
	}
	return all
}

// handOver tells what would be handed over, and begins it when that is approved.
func (g *globals) handOver(ctx context.Context, c client.Client, key types.NamespacedName, o *adoptOptions) error {
	a := &api.Action{Spec: api.ActionSpec{
		Kind: ceph.HandOverKind, Target: "storagecluster/" + key.Name, Cluster: key.Name, Parameters: map[string]api.ActionParameter{
			ceph.HandOverHosts: api.ActionParameter(strings.Join(o.hosts, ",")),
		},
	}}
	a.Namespace, a.GenerateName = key.Namespace, "hand-over-"+key.Name+"-"
	words, err := handOverWords(ctx, c, g.out, key, a)
	if err != nil {
		return err
	}
	fmt.Fprintln(g.out, words)
	if err := g.approved(words, o.approve); err != nil || o.approve == "" {
		return err
	}
	if err := g.make(ctx, c, a); err != nil {
		return err
	}
	return g.waitAction(ctx, c, a, o.timeout)
}

func handOverWords(ctx context.Context, c client.Client, out io.Writer, key types.NamespacedName, a *api.Action) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	objects, err := store.ReadObjects(ctx, c)
	if err != nil {
		return "", err
	}
	view, err := objects.View(key)
	if err != nil {
		return "", err
	}
	if other := handingOver(view.Actions, key.Name); other != nil {
		return "", &exitError{exitRefused, fmt.Errorf("action %s already hands it over%s: follow it with 'holdfast "+
			"action wait %s'", other.Name, waitText(other), other.Name)}
	}
	running, unanswered := releasesOf(ctx, c, view)
	if unanswered != nil { // not a part of what is approved: it may answer the next time
		fmt.Fprintf(out,
			"cannot reach Ceph from here (%v): the action checks the order of the installed releases when it begins.\n",
			unanswered)
	}
	lines, err := ceph.HandOverWords(view, a.Spec, running)
	if errors.Is(err, action.ErrRefused) {
		return "", &exitError{exitRefused, err}
	}
	return strings.Join(lines, "\n"), err
}

// releasesOf are those that the mons and managers run, if Ceph answers from here.
func releasesOf(ctx context.Context, c client.Client, view *engine.View) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	driver := &ceph.Driver{}
	defer driver.Forget(view.Cluster.Namespace, view.Cluster.Name)
	return driver.Releases(ctx, view, &store.Secrets{Reader: c, Namespace: view.Cluster.Namespace})
}

// handingOver is the action that hands a cluster over, or is about to; nil where there is none.
func handingOver(actions []api.Action, cluster string) *api.Action {
	i := slices.IndexFunc(actions, func(a api.Action) bool {
		return a.Spec.Kind == ceph.HandOverKind && a.Spec.Cluster == cluster && !a.Status.State.Final()
	})
	if i < 0 {
		return nil
	}
	return &actions[i]
}

// undoAdoption removes what an adoption made. The cluster's daemons, data and keys are not touched.
func (g *globals) undoAdoption(ctx context.Context, c client.Client, key types.NamespacedName, o *adoptOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var cluster api.StorageCluster
	if err := c.Get(ctx, key, &cluster); err != nil {
		return fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
	}
	daemons, err := readDaemons(ctx, c, key)
	if err != nil {
		return err
	}
	var nodes api.StorageNodeList
	if err := c.List(ctx, &nodes, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("while reading StorageNodes: %w", err)
	}
	var actions api.ActionList
	if err := c.List(ctx, &actions, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("while reading actions: %w", err)
	}
	words, err := undoWords(&cluster, daemons, actions.Items)
	if err != nil {
		return err
	}
	fmt.Fprintln(g.out, words)
	if err := g.approved(words, o.approve); err != nil || o.approve == "" {
		return err
	}
	// Who may not see what becomes of it learns that before anything is deleted.
	w, err := g.watchNamespace(ctx, key.Namespace)
	if ctx.Err() != nil {
		return &exitError{exitTimeout, fmt.Errorf("%w; nothing was deleted", err)}
	}
	if err != nil {
		return err
	}
	// The StorageCluster goes last: while it is there, who is cut off can say it again.
	for i := range nodes.Items {
		if n := &nodes.Items[i]; n.ClusterName() == key.Name && n.Annotations[ceph.AnnotationAdopted] != "" {
			if err := client.IgnoreNotFound(c.Delete(ctx, n)); err != nil {
				return fmt.Errorf("while deleting storagenode/%s: %w", n.Name, err)
			}
		}
	}
	err = c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(key.Namespace), client.MatchingLabels{api.LabelCluster: key.Name})
	if err != nil {
		return fmt.Errorf("while deleting the keys: %w", err)
	}
	if err := c.Delete(ctx, &cluster, client.Preconditions{UID: &cluster.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while deleting storagecluster/%s: %w", key.Name, err)
	}
	if err := g.awaitForgotten(ctx, c, w, &cluster); err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "\nstoragecluster/%s was removed from Holdfast; Ceph runs as before\n", key.Name)
	return err
}

func undoWords(cluster *api.StorageCluster, daemons []api.Daemon, actions []api.Action) (string, error) {
	fsid := cluster.Annotations[ceph.AnnotationAdopted]
	if fsid == "" {
		return "", &exitError{exitRefused, fmt.Errorf("nothing to undo: storagecluster/%s was not adopted", cluster.Name)}
	}
	for i := range daemons {
		if d := &daemons[i]; d.Spec.State != api.WantWatched {
			return "", &exitError{exitRefused, fmt.Errorf("cannot undo: daemon/%s was handed over, and Holdfast keeps it "+
				"running; to go back see docs/how-to/adopt.md", d.Name)}
		}
	}
	if a := handingOver(actions, cluster.Name); a != nil {
		return "", &exitError{exitRefused, fmt.Errorf("action %s hands it over: cancel that first with 'holdfast action "+
			"cancel %s'", a.Name, a.Name)}
	}
	return fmt.Sprintf("removing storagecluster/%s (fsid %s) from Holdfast: %s, its StorageNodes and the copies of "+
		"its keys. Ceph itself does not change", cluster.Name, fsid, words.Plural(len(daemons), "Daemon")), nil
}
