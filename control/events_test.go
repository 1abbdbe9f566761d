package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// told writes a ClusterEvent of cluster a.
func told(t *testing.T, c client.Client, ns string, sequence int64, code, object string, at time.Time) *api.ClusterEvent {
	t.Helper()
	e := &api.ClusterEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: api.ClusterEventName("a", sequence)},
		Cluster:    "a", Sequence: sequence, Code: code, Object: object, Message: object + " " + code,
		Time: metav1.NewMicroTime(at),
	}
	if err := c.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return e
}

func names(events []corev1.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Reason)
	}
	return strings.Join(all, " ")
}

// TestEvents_ofAnObject: what 'kubectl describe' asks finds the events of the object, those of an
// earlier object of its name not among them.
func TestEvents_ofAnObject(t *testing.T) {
	s, config := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "images"}, Spec: api.PoolSpec{Cluster: "a"}}
	if err := c.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	host := newHost(t, s, config, "told")
	now := time.Now()
	told(t, c, ns, 1, "RESOURCE_GONE", "pool/images", now.Add(-time.Hour))
	told(t, c, ns, 2, "RESOURCE_ONLINE", "pool/images", now)
	told(t, c, ns, 3, "RESOURCE_ONLINE", "pool/others", now)
	told(t, c, ns, 4, "AGENT_DOWN", "host/told", now.Add(time.Second))
	as := configAs(t, s, config, pki.Leaf{User: "v", Groups: []string{"holdfast:viewers"}})
	viewer, err := kubernetes.NewForConfig(as)
	if err != nil {
		t.Fatal(err)
	}
	pool.SetGroupVersionKind(api.GroupVersion.WithKind("Pool"))
	found, err := viewer.CoreV1().Events(ns).SearchWithContext(t.Context(), scheme.Scheme, pool)
	if err != nil || names(found.Items) != "ResourceOnline" || found.Items[0].InvolvedObject.UID != pool.UID {
		t.Errorf("events of the pool: %v, %v", found, err)
	}
	h := &api.Host{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "told"}, h); err != nil {
		t.Fatal(err)
	}
	h.SetGroupVersionKind(api.GroupVersion.WithKind("Host"))
	found, err = viewer.CoreV1().Events("").SearchWithContext(t.Context(), scheme.Scheme, h)
	if err != nil || names(found.Items) != "AgentDown" || found.Items[0].Type != corev1.EventTypeWarning {
		t.Errorf("events of the host %s: %v, %v", host.keyID, found, err)
	}
	all, err := viewer.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || names(all.Items) != "ResourceGone ResourceOnline ResourceOnline AgentDown" {
		t.Errorf("all events: %v, %v", names(all.Items), err)
	}
	warnings, err := viewer.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil || names(warnings.Items) != "AgentDown" {
		t.Errorf("warnings: %v, %v", names(warnings.Items), err)
	}
}

// TestEvents_watch: a watch goes on where a list ended, tells of what is selected alone, and of removals.
func TestEvents_watch(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	core, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	old := told(t, c, ns, 1, "DAEMON_FAILED", "daemon/a", time.Now())
	list, err := core.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "involvedObject.kind=Daemon"}
	changes, err := core.CoreV1().Events(ns).Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	told(t, c, ns, 2, "RESOURCE_NEW", "pool/b", time.Now())
	told(t, c, ns, 3, "DAEMON_RUNNING", "daemon/a", time.Now())
	if err := c.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED DaemonRunning", "DELETED DaemonFailed"} {
		change := <-changes.ResultChan()
		e, ok := change.Object.(*corev1.Event)
		if !ok || string(change.Type)+" "+e.Reason != want {
			t.Fatalf("got %+v, want %s", change, want)
		}
	}
}

// TestEvents_informers: a client that has what there is sent as the beginning of a watch is told where that ends.
func TestEvents_informers(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	core, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	told(t, c, ns, 1, "DAEMON_FAILED", "daemon/a", time.Now())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	yes := true
	changes, err := core.CoreV1().Events(ns).Watch(ctx, metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	if first := <-changes.ResultChan(); first.Type != watch.Added {
		t.Fatalf("got %+v", first)
	}
	second := <-changes.ResultChan()
	e, ok := second.Object.(*corev1.Event)
	if !ok || second.Type != watch.Bookmark || e.ResourceVersion == "" ||
		e.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got %+v", second)
	}
}

// TestEvents_modern: k9s reads the same events in the group events.k8s.io.
func TestEvents_modern(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	set, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	core, view := set.CoreV1().Events(ns), set.EventsV1().Events(ns)
	told(t, c, ns, 1, "DAEMON_FAILED", "daemon/a", time.Now())
	told(t, c, ns, 2, "RESOURCE_NEW", "pool/b", time.Now())
	options := metav1.ListOptions{FieldSelector: "regarding.kind=Daemon"}
	list, err := view.List(t.Context(), options)
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("got %+v, %v", list, err)
	}
	old, err := core.Get(t.Context(), list.Items[0].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := list.Items[0]
	if got.Reason != old.Reason || got.Note != old.Message || got.Regarding != old.InvolvedObject || got.Type != old.Type {
		t.Errorf("got %+v, and %+v", got, old)
	}
	options.ResourceVersion = list.ResourceVersion
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes, err := view.Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	told(t, c, ns, 3, "DAEMON_RUNNING", "daemon/a", time.Now())
	change := <-changes.ResultChan()
	if e, ok := change.Object.(*eventsv1.Event); !ok || e.Reason != "DaemonRunning" || change.Type != watch.Added {
		t.Errorf("got %+v", change)
	}
	for _, path := range []string{"/apis/events.k8s.io/v1/namespaces/" + ns + "/events", "/api/v1/namespaces/" + ns + "/events"} {
		table, err := set.RESTClient().Get().AbsPath(path).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(table), `"Last Seen"`) || !strings.Contains(string(table), `"Pool/b"`) {
			t.Errorf("%s: %s, %v", path, table, err)
		}
	}
}

// TestEvents_readAlone: what is told is told by ClusterEvents.
func TestEvents_readAlone(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	written := told(t, c, ns, 1, "CLUSTER_ONLINE", "cluster/a", time.Now())
	got := &corev1.Event{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(written), got); err != nil || got.Reason != "ClusterOnline" {
		t.Errorf("got %v, %v", got, err)
	}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "none"}, got)
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `events "none"`) {
		t.Errorf("an event that is none: %v", err)
	}
	shown := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: written.Name}}
	if err := c.Delete(t.Context(), shown); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("deleting an event: %v", err)
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}}
	if err := c.Create(t.Context(), event); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("creating an event: %v", err)
	}
}
