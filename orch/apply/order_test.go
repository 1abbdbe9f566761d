package apply

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// object is one with a list of devices in a field of its spec.
func object(kind, name, field string, devices ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	u.SetNamespace("default")
	u.SetName(name)
	_ = unstructured.SetNestedStringSlice(u.Object, devices, "spec", field) // spec is a map
	return u
}

// applying is an Action that writes an object, created so many seconds after others.
func applying(t *testing.T, name string, seconds int, u *unstructured.Unstructured) *api.Action {
	t.Helper()
	parameters, err := Parameters([]spec.Write{{Manager: "m", Object: u}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: at(seconds)},
		Spec:       api.ActionSpec{Kind: Kind, Cluster: "ceph", Parameters: parameters},
		Status: api.ActionStatus{
			State: api.ActionRunning, Steps: []api.ActionStep{{Name: StepPersist, State: api.StepRunning}},
		},
	}
}

func at(seconds int) metav1.Time { return metav1.NewTime(time.Unix(int64(1000+seconds), 0)) }

func TestEarlier(t *testing.T) {
	node := object("StorageNode", "ceph-h3", "exclude", "disk")
	of := applying(t, "orch-of", 10, node)
	of.Annotations = map[string]string{wire.AnnotationAsked: "2026-11-29T00:00:10.500000000Z"}
	writes, err := writesOf(of)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*api.Action)
		want   string
	}{
		"one that has not written":         {func(*api.Action) {}, "orch-other"},
		"one that has written":             {func(a *api.Action) { a.Status.Steps[0].State = api.StepDone }, ""},
		"one that has ended":               {func(a *api.Action) { a.Status.State = api.ActionCancelled }, ""},
		"one of another cluster":           {func(a *api.Action) { a.Spec.Cluster = "other" }, ""},
		"one of another kind":              {func(a *api.Action) { a.Spec.Kind = api.ActionDaemonRestart }, ""},
		"one that was created later":       {func(a *api.Action) { a.CreationTimestamp = at(11) }, ""},
		"one of the same second, before":   {sameSecond("2026-11-29T00:00:10.100000000Z"), "orch-other"},
		"one of the same second, after":    {sameSecond("2026-11-29T00:00:10.900000000Z"), ""},
		"one that writes another object":   {writing(t, object("StorageNode", "ceph-h2", "exclude", "disk")), ""},
		"one that writes another kind":     {writing(t, object("DriveGroup", "ceph-h3", "exclude", "disk")), ""},
		"one that cannot be read, refused": {func(a *api.Action) { a.Spec.Parameters = nil }, ""},
	} {
		other := applying(t, "orch-other", 5, node)
		c.change(other)
		got, err := earlier(t.Context(), fakeClient(t, of, other), of, writes)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func sameSecond(asked string) func(*api.Action) {
	return func(a *api.Action) {
		a.CreationTimestamp, a.Annotations = at(10), map[string]string{wire.AnnotationAsked: asked}
	}
}

func TestUnwritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.Action)
		name   string
		finds  bool
	}{
		"one that has not written":       {func(*api.Action) {}, "home", true},
		"any of the kind":                {func(*api.Action) {}, "", true},
		"one that has not begun":         {func(a *api.Action) { a.Status = api.ActionStatus{} }, "home", true},
		"one that writes another object": {func(*api.Action) {}, "other", false},
		"one that has written":           {func(a *api.Action) { a.Status.Steps[0].State = api.StepDone }, "home", false},
		"one that has ended":             {func(a *api.Action) { a.Status.State = api.ActionFailed }, "home", false},
		"one of another cluster":         {func(a *api.Action) { a.Spec.Cluster = "other" }, "home", false},
		"one of another kind":            {func(a *api.Action) { a.Spec.Kind = api.ActionDaemonRestart }, "home", false},
		"one that is being cancelled":    {func(a *api.Action) { a.Spec.Want = api.WantCancelled }, "home", true},
		"one that waits for approval": {func(a *api.Action) {
			a.Status.State = api.ActionPendingApproval
		}, "home", false},
		"the one of the call": {func(a *api.Action) { a.Name = "orch-own" }, "home", false},
	} {
		a := applying(t, "orch-a", 5, object("Filesystem", "home", "x"))
		c.change(a)
		got := Unwritten([]api.Action{*a}, "ceph", "Filesystem", c.name, "orch-own")
		if (got != nil) != c.finds {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func writing(t *testing.T, u *unstructured.Unstructured) func(*api.Action) {
	return func(a *api.Action) { a.Spec.Parameters = applying(t, "", 0, u).Spec.Parameters }
}

func TestLeaves(t *testing.T) {
	osd := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph-osd-4"}}
	osd.Spec.Host, osd.Spec.Devices = "h3", []api.DaemonDevice{{Name: "block", ID: "disk"}}
	of := object("StorageNode", "ceph-h3", "exclude", "disk")
	taken := object("StorageNode", "ceph-h3", "devices", "disk")
	replaced := object("StorageNode", "ceph-h3", "replace", "disk")
	for name, c := range map[string]struct {
		there        []client.Object
		now          *unstructured.Unstructured
		waits, stays bool
	}{
		"it is there":              {[]client.Object{osd}, of, true, false},
		"it is gone":               {nil, of, false, false},
		"it was taken back":        {[]client.Object{osd}, taken, false, true},
		"gone, and then undone":    {nil, taken, false, false},
		"the other way to replace": {[]client.Object{osd}, replaced, true, false},
	} {
		wait, err := leaves(t.Context(), fakeClient(t, c.there...), of, c.now)
		if (wait != "") != c.waits || (err != nil) != c.stays {
			t.Errorf("%s: %q, %v", name, wait, err)
		}
	}
}
