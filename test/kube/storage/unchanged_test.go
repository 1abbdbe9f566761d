package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// declaredOnly are the kinds on which nobody reports: each write of one of them is seen in its
// resourceVersion.
const declaredOnly = "secrets,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings," +
	"namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies," +
	"mutatingadmissionpolicybindings,flowschemas,customresourcedefinitions"

// reported are the kinds whose status changes by itself: daemons, agents and the leader report
// there.
const reported = "storageclusters,storagenodes,pools,daemons,hosts,storagestatuses,actions,plans,pods,deployments," +
	"daemonsets,terms"

// written is what of each object no one but a person or the leader writes, by kind, namespace and
// name.
type written struct {
	all map[string]string
	// still are the resourceVersions of what has a status that may change, by name and status: each
	// write is seen in them while the status is the same.
	still map[string]string
}

// written reads all objects of the cluster.
func (b *bed) written() written {
	b.t.Helper()
	w := written{all: map[string]string{}, still: map[string]string{}}
	for _, o := range b.objects(declaredOnly) {
		w.all[name(&o)] = text(b.t, o.GetUID(), o.GetResourceVersion())
	}
	for _, o := range b.objects(reported) {
		w.all[name(&o)] = text(b.t, o.GetUID(), o.GetGeneration(), o.GetLabels(), annotations(&o), managed(b.t, &o))
		if kind := o.GetKind(); kind == "StorageNode" || kind == "Pool" {
			w.still[name(&o)+" with the status "+text(b.t, o.Object["status"])] = o.GetResourceVersion()
		}
	}
	return w
}

func text(t *testing.T, what ...any) string {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func name(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

func (b *bed) objects(kinds string) []unstructured.Unstructured {
	b.t.Helper()
	list := &unstructured.UnstructuredList{}
	out := b.Kubectl(b.t, "get", kinds, "--all-namespaces", "-o", "json", "--show-managed-fields")
	if err := list.UnmarshalJSON([]byte(out)); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

// annotations are all but that by which a person asks for an orchestration.
func annotations(o *unstructured.Unstructured) map[string]string {
	all := maps.Clone(o.GetAnnotations())
	delete(all, api.AnnotationOrchestrate)
	return all
}

// managed are the writes of all but the status, with their times, and without the request for an
// orchestration.
func managed(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var all []string
	for _, entry := range o.GetManagedFields() {
		if one := text(t, entry); entry.Subresource == "" && !strings.Contains(one, "f:"+api.AnnotationOrchestrate) {
			all = append(all, one)
		}
	}
	return all
}

// livesOfPods are what a pod has otherwise that was replaced, or whose container was.
func (b *bed) livesOfPods() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	pods, err := b.Client().CoreV1().Pods("").List(b.t.Context(), meta.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		life := []any{pod.UID, pod.CreationTimestamp, pod.Status.StartTime}
		for _, c := range pod.Status.ContainerStatuses {
			life = append(life, c.ContainerID, c.RestartCount, c.State.Running)
		}
		all[pod.Namespace+"/"+pod.Name] = text(b.t, life)
	}
	return all
}

// appliedAgain applies again all that a person has applied: kubectl says of each object that it is
// unchanged, nothing is written by it, and no pod is another one.
func (b *bed) appliedAgain() {
	b.t.Helper()
	b.orchestrated()
	lives, before := b.livesOfPods(), b.written()
	b.unchanged(b.Apply(b.t, b.ceph(), "-n", ns), "storagecluster", "storagenode")
	b.unchanged(b.Apply(b.t, dataPool, "-n", ns), "pool")
	b.unchanged(b.ApplyHoldfast(b.t), "deployment", "daemonset", "clusterrole", "validatingadmissionpolicy",
		"customresourcedefinition")
	b.orchestrated()
	now := b.written()
	for _, what := range append(before.differs(now), differ(lives, b.livesOfPods())...) {
		b.t.Errorf("applied again, there is a difference: %s", what)
	}
	for _, kind := range strings.Fields("Secret ConfigMap Role RoleBinding ServiceAccount StorageNode Pool Daemon Host") {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(before.all)),
			func(name string) bool { return strings.HasPrefix(name, kind+" ") }) {
			b.t.Errorf("no %s was compared", kind)
		}
	}
	b.seen(now)
}

// seen checks that a write of each sort would be seen.
func (b *bed) seen(before written) {
	b.t.Helper()
	touched := []string{"secret/ceph-key-mon", "storagenode/" + b.firstNode()}
	for _, what := range touched {
		b.Kubectl(b.t, "-n", ns, "label", what, "seen=yes")
	}
	differs := strings.ToLower(strings.Join(before.differs(b.written()), "\n"))
	for _, what := range touched {
		if !strings.Contains(differs, strings.Replace(what, "/", " "+ns+"/", 1)+" was\n") {
			b.t.Errorf("a write of %s is not seen:\n%s", what, differs)
		}
		b.Kubectl(b.t, "-n", ns, "label", what, "seen-")
	}
}

// firstNode is the name of a StorageNode.
func (b *bed) firstNode() string {
	b.t.Helper()
	return strings.TrimPrefix(strings.Fields(b.Kubectl(b.t, "-n", ns, "get", "storagenodes", "-o", "name"))[0],
		"storagenode.holdfast.io/")
}

// unchanged checks what kubectl says of each object that was applied again.
func (b *bed) unchanged(said string, kinds ...string) {
	b.t.Helper()
	for _, line := range strings.Split(said, "\n") {
		if !strings.HasSuffix(line, " unchanged") {
			b.t.Errorf("applied again: %s", line)
		}
	}
	for _, kind := range kinds {
		if !strings.Contains("\n"+said, "\n"+kind+".") {
			b.t.Errorf("no %s was applied again:\n%s", kind, said)
		}
	}
}

// differs says what was written since.
func (w written) differs(now written) []string {
	all := differ(w.all, now.all)
	for name, version := range now.still {
		if was, still := w.still[name]; still && was != version {
			all = append(all, fmt.Sprintf("%s has version %s, and had %s", name, version, was))
		}
	}
	return all
}

func differ(before, now map[string]string) (all []string) {
	for name, was := range before {
		if is := now[name]; is != was {
			all = append(all, fmt.Sprintf("%s was\n%s\nand is\n%s", name, was, is))
		}
	}
	for name, is := range now {
		if _, found := before[name]; !found {
			all = append(all, fmt.Sprintf("%s is new:\n%s", name, is))
		}
	}
	return all
}
