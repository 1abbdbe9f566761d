package control_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
)

// fences is a namespace whose fences one test works with.
type fences struct {
	t *testing.T
	client.Client
	config *rest.Config
	ns     string
}

func newFences(t *testing.T) *fences {
	s, _ := sharedServer(t)
	admin := newClient(t, fence.Config(s.Config()))
	return &fences{t, admin, s.Config(), newNamespace(t, admin)}
}

// with returns a client whose writes carry tokens.
func (f *fences) with(tokens ...fence.Token) client.Client {
	return newClient(f.t, fence.Config(f.config, tokens...))
}

func (f *fences) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name}}
}

// set gives a fence to a holder, as the write of a Lease does.
func (f *fences) set(tokens ...fence.Token) {
	f.t.Helper()
	o := f.configMap("")
	o.GenerateName = "set-"
	if err := f.Create(fence.Setting(f.t.Context(), tokens...), o); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fences) name(suffix string) string { return f.ns + "." + suffix }

// TestFence_stale: of a server that was overtaken no sort of write is done, and it is told why.
func TestFence_stale(t *testing.T) {
	f := newFences(t)
	a, b := fence.Token{Name: f.name("leader"), Value: "a_1"}, fence.Token{Name: f.name("leader"), Value: "b_2"}
	stale := f.with(a)
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}
	writes := map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error { return stale.Create(ctx, f.configMap("new")) },
		"create, custom": func(ctx context.Context) error {
			return stale.Create(ctx, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: f.ns + "-2"}})
		},
		"update": func(ctx context.Context) error {
			o := f.configMap("old")
			if err := f.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			o.Data = map[string]string{"changed": "yes"}
			return stale.Update(ctx, o)
		},
		"update without a version": func(ctx context.Context) error {
			o := f.configMap("old")
			o.Data = map[string]string{"changed": "yes"}
			return stale.Update(ctx, o)
		},
		"patch": func(ctx context.Context) error {
			return stale.Patch(ctx, f.configMap("old"), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"changed":"yes"}}`)))
		},
		"status": func(ctx context.Context) error {
			o := &api.Host{}
			if err := f.Get(ctx, client.ObjectKeyFromObject(host), o); err != nil {
				return err
			}
			o.Status.BootID = "changed"
			return stale.Status().Update(ctx, o)
		},
		"delete": func(ctx context.Context) error { return stale.Delete(ctx, f.configMap("old")) },
		"delete all of": func(ctx context.Context) error {
			return stale.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(f.ns))
		},
	}
	for _, o := range []client.Object{f.configMap("old"), host} {
		if err := f.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(when, holder string) {
		for name, write := range writes {
			ctx, cancel := timeoutOf(time.Minute) // one that is tried again and again ends with another error
			err := write(ctx)
			cancel()
			if !fence.Lost(err) || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "was lost by a_1: "+holder) {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
	}
	refused("nobody leads", "no server has it")
	f.set(a)
	f.set(b)
	refused("another leads", "b_2 has it")
	f.set(fence.Token{Name: a.Name})
	refused("the other gave it up", "no server has it")
	f.set(a)
	for _, name := range []string{"create", "update", "patch", "status", "delete"} {
		if err := writes[name](t.Context()); err != nil {
			t.Errorf("the leader's %s: %v", name, err)
		}
	}
}

// TestFence_term: a write needs all its fences: who leads and lost one lock cannot write under it, but under others.
func TestFence_term(t *testing.T) {
	f := newFences(t)
	lead := fence.Token{Name: f.name("leader"), Value: "a"}
	one, two := fence.Token{Name: f.name("lock"), Value: "a#1"}, fence.Token{Name: f.name("lock"), Value: "a#2"}
	f.set(lead, one)
	c := f.with(lead)
	for _, tt := range []struct {
		name string
		ctx  context.Context
		lost bool
	}{
		{"under-lock", fence.With(t.Context(), one), false},
		{"without-lock", t.Context(), false},
		{"other-lock", fence.With(t.Context(), one, fence.Token{Name: f.name("other"), Value: "a#1"}), true},
		{"old-term", fence.With(t.Context(), two), true},
	} {
		if err := c.Create(tt.ctx, f.configMap(tt.name)); fence.Lost(err) != tt.lost || !tt.lost && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	f.set(two)
	if err := c.Create(fence.With(t.Context(), one), f.configMap("overtaken")); !fence.Lost(err) {
		t.Errorf("under the lock's old term: %v", err)
	}
}

// TestFence_setIsAtomic: many take one lock at a time; the fence always belongs to the one whose write of the object was done.
func TestFence_setIsAtomic(t *testing.T) {
	f := newFences(t)
	lease := f.configMap("lease")
	if err := f.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	var wins atomic.Int32
	for round := range 10 {
		var contest sync.WaitGroup
		for i := range 8 {
			contest.Go(func() {
				o := lease.DeepCopy()
				o.Data = map[string]string{"holder": string(rune('a'+i)) + string(rune('0'+round))}
				token := fence.Token{Name: f.name("lock"), Value: o.Data["holder"]}
				switch err := f.Update(fence.Setting(t.Context(), token), o); {
				case err == nil:
					wins.Add(1)
				case !apierrors.IsConflict(err):
					t.Error(err)
				}
			})
		}
		contest.Wait()
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
			t.Fatal(err)
		}
		holder := f.with(fence.Token{Name: f.name("lock"), Value: lease.Data["holder"]})
		if err := holder.Create(t.Context(), f.configMap("by-"+lease.Data["holder"])); err != nil {
			t.Errorf("round %d: the holder cannot write: %v", round, err)
		}
	}
	if wins.Load() != 10 {
		t.Errorf("%d writers won 10 rounds", wins.Load())
	}
}

// TestFence_serversAlone: neither a host nor a person can set a fence, and with it end a server's leadership.
func TestFence_serversAlone(t *testing.T) {
	f := newFences(t)
	s, config := sharedServer(t)
	lead := fence.Token{Name: f.name("leader"), Value: "a"}
	f.set(lead)
	host := newClient(t, fence.Config(newHost(t, s, config, "fenced").config))
	own := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "x"}}
	for name, ctx := range map[string]context.Context{
		"setting": fence.Setting(t.Context(), fence.Token{Name: lead.Name, Value: "h1"}),
		"needing": fence.With(t.Context(), lead),
	} {
		if err := host.Create(ctx, own); !apierrors.IsForbidden(err) || fence.Lost(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.with(lead).Create(t.Context(), f.configMap("after")); err != nil {
		t.Errorf("the leader's write: %v", err)
	}
	// Who has no fence is not asked for one.
	if err := f.Create(t.Context(), f.configMap("by-admin")); err != nil {
		t.Error(err)
	}
}

// TestFence_malformed: a header that cannot be read is refused; it must not count as none.
func TestFence_malformed(t *testing.T) {
	f := newFences(t)
	for _, value := range []string{"a b", "umlaut-ä", "x,y"} {
		err := f.with(fence.Token{Name: f.name("leader"), Value: value}).Create(t.Context(), f.configMap("x"))
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
