package write

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/spec"
	"github.com/holdfast-storage/holdfast/propose"
)

// removalOf is an Action of 'ceph orch' that is under way and has disks of host h3 leave, by a field.
func removalOf(t *testing.T, name, field string, zap bool, disks ...string) *api.Action {
	t.Helper()
	var writes []spec.Write
	var wipe []string
	for _, disk := range disks {
		u := object("StorageNode", "default", "ceph-h3")
		_ = unstructured.SetNestedStringSlice(u.Object, []string{disk}, "spec", field) // spec is a map
		writes = append(writes, spec.Write{Manager: manager(disk), Object: u})
		if zap {
			wipe = append(wipe, "h3/"+disk)
		}
	}
	parameters, err := apply.Parameters(writes, false, wipe...)
	if err != nil {
		t.Fatal(err)
	}
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.ActionSpec{
			Kind: apply.Kind, Cluster: "ceph", Parameters: parameters, Requester: "holdfast:orch:default:ceph",
		},
		Status: api.ActionStatus{State: api.ActionRunning},
	}
}

func callWith(actions ...*api.Action) *Call {
	cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ceph"}}
	view := &engine.View{Cluster: cluster}
	for _, a := range actions {
		view.Actions = append(view.Actions, *a)
	}
	return &Call{Call: answer.Call{View: view}}
}

func TestRemoving(t *testing.T) {
	for name, c := range map[string]struct {
		action  *api.Action
		change  func(*api.Action)
		devices string
		wipes   bool
		joins   bool
	}{
		"the same":        {removalOf(t, "a", "exclude", false, "d1", "d2"), nil, "h3/d1 h3/d2", false, true},
		"less":            {removalOf(t, "a", "exclude", false, "d1", "d2"), nil, "h3/d1", false, true},
		"more":            {removalOf(t, "a", "exclude", false, "d1"), nil, "h3/d1 h3/d2", false, false},
		"to erase it too": {removalOf(t, "a", "exclude", false, "d1"), nil, "h3/d1", true, false},
		"erased there":    {removalOf(t, "a", "exclude", true, "d1"), nil, "h3/d1", true, true},
		"to replace it":   {removalOf(t, "a", "replace", false, "d1"), nil, "h3/d1", false, false},
		"an ended one": {removalOf(t, "a", "exclude", false, "d1"), func(a *api.Action) {
			a.Status.State = api.ActionDone
		}, "h3/d1", false, false},
		"a cancelled one": {removalOf(t, "a", "exclude", false, "d1"), func(a *api.Action) {
			a.Spec.Want = api.WantCancelled
		}, "h3/d1", false, false},
		"one of another user": {removalOf(t, "a", "exclude", false, "d1"), func(a *api.Action) {
			a.Spec.Requester = "holdfast:admin"
		}, "h3/d1", false, false},
	} {
		if c.change != nil {
			c.change(c.action)
		}
		if got := removing(callWith(c.action), strings.Fields(c.devices), "exclude", c.wipes); (got != nil) != c.joins {
			t.Errorf("%s: it joins %v", name, got)
		}
	}
}

func TestEndRemovals(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		ends    bool // what is cancelled ends
		refused bool
	}{"the leader ends it": {true, false}, "the leader does not end it": {false, true}} {
		whole, part := removalOf(t, "whole", "exclude", false, "d1"), removalOf(t, "part", "exclude", false, "d1", "d2")
		c := callWith()
		c.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(whole, part).
			WithInterceptorFuncs(interceptor.Funcs{Patch: func(
				ctx context.Context, to client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
			) error {
				if err := to.Patch(ctx, o, p, opts...); err != nil || !want.ends {
					return err
				}
				o.(*api.Action).Status.State = api.ActionCancelled
				return to.Update(ctx, o)
			}}).Build()
		if err := endRemovals(t.Context(), c, []string{"d1"}); (err != nil) != want.refused {
			t.Errorf("%s: %v", name, err)
		}
		for _, a := range []*api.Action{whole, part} {
			var now api.Action
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(a), &now); err != nil {
				t.Fatal(err)
			}
			if cancelled := now.Spec.Want == api.WantCancelled; cancelled != (a == whole) {
				t.Errorf("%s: action %s is to be %q", name, a.Name, now.Spec.Want)
			}
		}
	}
}

// TestGrown: a service has one daemon more than are declared, however many the leader has made.
func TestGrown(t *testing.T) {
	fs := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}}
	fs.Spec.ActiveMDS, fs.Spec.StandbyMDS = 1, new(int32(2))
	fs.Spec.Placement.Hosts = []string{"h1", "h2"}
	v := callWith().View
	v.Resources = []api.Resource{fs}
	document := grown(v, "mds.home", []any{"h3"})
	want := map[string]any{"count": 4, "hosts": []any{"h1", "h2", "h3"}}
	if !reflect.DeepEqual(document["placement"], want) {
		t.Errorf("%v, want %v", document["placement"], want)
	}
	if document := grown(v, "mds.other", nil); document != nil {
		t.Errorf("%v", document)
	}
	fs.DeletionTimestamp = &metav1.Time{}
	if document := grown(v, "mds.home", nil); document != nil {
		t.Errorf("of one that is being deleted: %v", document)
	}
}

// laterHome is a leader that has nothing against anything. Its view is a later one each time, and
// the last one for ever.
type laterHome struct {
	Home
	views []*engine.View
}

func (h *laterHome) View(context.Context, types.NamespacedName) (*engine.View, error) {
	v := h.views[0]
	if len(h.views) > 1 {
		h.views = h.views[1:]
	}
	return v, nil
}

func (*laterHome) Propose(_ context.Context, r propose.Request, _ time.Duration) (*propose.Proposal, error) {
	return &propose.Proposal{Targets: r.Targets}, nil
}

// TestCall_later: calls that build on what an earlier call declares wait until its Action has
// written that, and are refused while it has not.
func TestCall_later(t *testing.T) {
	const addMDS = `{"spec":{"service_type":"mds","service_id":"home","placement":{}}}`
	for name, call := range map[string]struct{ method, args, writes string }{
		"add":              {"add_daemon", addMDS, "Filesystem/home"},
		"remove":           {"remove_service", `{"service_name":"mds.home"}`, "Filesystem/home"},
		"remove a group":   {"remove_service", `{"service_name":"osd.hdd"}`, "DriveGroup/hdd"},
		"remove mirrors":   {"remove_service", `{"service_name":"rbd-mirror"}`, "RBDMirror/any"},
		"apply, unchanged": {"apply", `{"specs":[{"service_type":"mon","placement":{"count":3}}]}`, "StorageCluster/ceph"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, of, _ := strings.Cut(call.writes, "/")
			before, after := laterView(t, kind, of, api.StepRunning), laterView(t, kind, of, api.StepDone)
			c := laterCall(t, call.args, before, before, after)
			if _, err := Do(t.Context(), call.method, c); err != nil || c.View.Actions[0].Status.Steps[0].State != api.StepDone {
				t.Errorf("%v; its view has %+v", err, c.View.Actions[0].Status)
			}
			var refusal *answer.Error
			_, err := Do(t.Context(), call.method, laterCall(t, call.args, before))
			if !errors.As(err, &refusal) || refusal.Errno != -int(syscall.EAGAIN) {
				t.Errorf("%v, want a refusal to try again", err)
			}
			other := laterView(t, "ObjectStore", "s3", api.StepRunning)
			if _, err := Do(t.Context(), call.method, laterCall(t, call.args, other)); err != nil {
				t.Errorf("while an Action writes to another resource: %v", err)
			}
		})
	}
}

// laterView is a cluster with three mons and a Filesystem, of which an Action writes an object.
func laterView(t *testing.T, kind, name string, step api.StepState) *engine.View {
	t.Helper()
	a := removalOf(t, "orch-earlier", "exclude", false, "d1")
	a.Status.Steps = []api.ActionStep{{Name: apply.StepPersist, State: step}}
	var err error
	a.Spec.Parameters, err = apply.Parameters([]spec.Write{{Object: object(kind, "default", name)}}, false)
	if err != nil {
		t.Fatal(err)
	}
	v := callWith(a).View
	v.Cluster.Spec.Ceph = &api.CephSpec{}
	v.Cluster.Spec.Ceph.Mon.Count = 3
	fs := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}}
	fs.Spec.StandbyMDS = new(int32(15)) // one more is the most that there can be
	v.Resources = []api.Resource{fs}
	return v
}

// laterCall is a call that sees one view, and then others. The API takes what it writes, and its
// Actions are done at once.
func laterCall(t *testing.T, args string, views ...*engine.View) *Call {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	to := fake.NewClientBuilder().WithScheme(scheme).WithObjects(views[0].Cluster.DeepCopy()).WithInterceptorFuncs(
		interceptor.Funcs{
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return nil
			},
			Create: func(ctx context.Context, to client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				a := o.(*api.Action)
				a.Spec.Requester, a.Status.State = "holdfast:orch:default:ceph", api.ActionDone
				return to.Create(ctx, a, opts...)
			},
		}).Build()
	return &Call{
		Call: answer.Call{View: views[0], Args: []byte(args)}, ID: "0123456789abcdef", Client: to,
		Home: &laterHome{views: views},
	}
}

// TestAddDaemon_twice: a call that is sent twice adds one daemon, though there may be no more.
func TestAddDaemon_twice(t *testing.T) {
	v := laterView(t, "Filesystem", "home", api.StepDone)
	c := laterCall(t, `{"spec":{"service_type":"mds","service_id":"home","placement":{}}}`, v)
	first, err := Do(t.Context(), "add_daemon", c)
	if err != nil {
		t.Fatal(err)
	}
	v.Resources[0].(*api.Filesystem).Spec.StandbyMDS = new(int32(16))
	if again, err := Do(t.Context(), "add_daemon", c); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("%v, %v; the first time %v", again, err, first)
	}
	c.ID = "another"
	if more, err := Do(t.Context(), "add_daemon", c); err == nil {
		t.Errorf("one too many is not refused: %v", more)
	}
}
