package rotation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// world is two servers and two hosts that follow a rotation, one at a time and one step at a time, and a leader that dies at
// the write with the number at.
type world struct {
	t       *testing.T
	api     client.WithWatch
	actions *actiontest.Memory
	code    *failpoint.Points
	old     *pki.Authority

	at, writes int
	// signer and trusted are what each of the servers and hosts goes by.
	signer  map[string]string
	trusted map[string][]string
	// state is what each server has heard of the rotation.
	state map[string]*State
	// turn is whose turn it is.
	turn int
	// off is who does nothing.
	off string
}

// everyone is in this order, so that the hosts have asked a server that is behind.
var everyone = []string{"host h1", "server h1", "host h2", "server h2"}

func newWorld(t *testing.T, code *failpoint.Points) *world {
	types := kruntime.NewScheme()
	for _, add := range []func(*kruntime.Scheme) error{corev1.AddToScheme, api.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: name}
	}
	old, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, actions: actiontest.NewMemory(), code: code, old: old, signer: map[string]string{}, trusted: map[string][]string{}, state: map[string]*State{}}
	w.api = fake.NewClientBuilder().WithScheme(types).WithObjects(
		&corev1.ConfigMap{ObjectMeta: meta(endpoints.ServersName), Data: map[string]string{"h1": "a:1", "h2": "b:1"}},
		&corev1.ConfigMap{ObjectMeta: meta(BeliefsName)},
		&api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}},
	).Build()
	for _, who := range everyone {
		w.signer[who], w.trusted[who] = old.Fingerprint(), []string{old.Fingerprint()}
	}
	return w
}

var errKilled = errors.New("killed")

// write is a write of the leader: it dies when the write is done and its answer is lost. What is stored then is what is stored
// before the next one.
func (w *world) write(do func() error) error {
	if w.at > 0 && w.writes >= w.at {
		return errKilled
	}
	if err := do(); err != nil {
		return err
	}
	if w.writes++; w.writes == w.at {
		w.code.Note()
		return errKilled
	}
	return nil
}

// leaders is the leader's access to the API.
func (w *world) leaders() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write(func() error { return c.Update(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
}

// recorder is the leader's access to the record of its action.
type recorder struct {
	*actiontest.Memory
	w *world
}

func (r recorder) PutStatus(ctx context.Context, a *api.Action) (stored *api.Action, err error) {
	err = r.w.write(func() error { stored, err = r.Memory.PutStatus(ctx, a); return err })
	return stored, err
}

// live is a leader's time: it carries the action out, until it ends or dies. Between its moves the others follow.
func (w *world) live(each func(a *api.Action)) {
	h := &Handler{Client: w.leaders(), Authority: func() *pki.Authority { return w.old }, Now: time.Now}
	for moves := 0; ; moves++ {
		a, err := w.actions.Get(w.t.Context(), newAction())
		if err != nil || moves > 500 {
			w.t.Fatalf("the action does not end: %v, %+v", err, a)
		}
		if a.Status.State.Final() {
			return
		}
		if each != nil {
			each(a)
		}
		turn, err := action.Execute(w.t.Context(), h, recorder{w.actions, w}, a)
		if w.at > 0 && w.writes >= w.at {
			return
		}
		if err == nil {
			time.Sleep(turn.Next)
		} else if !errors.Is(err, action.ErrConflict) {
			w.t.Fatal(err)
		}
		w.follow()
	}
}

// follow lets one server or host do what the rotation says, and tell it. Servers are restarted at once when they are waited
// for. Nobody may ever meet somebody whom it does not believe.
func (w *world) follow() {
	who := everyone[w.turn%len(everyone)]
	w.turn++
	switch kind, name, _ := strings.Cut(who, " "); {
	case who == w.off:
	case kind == "server":
		w.server(who, name)
	default: // It asks one server, and another one the next time.
		w.host(who, name, w.state[[]string{"server h1", "server h2"}[w.turn/len(everyone)%2]])
	}
	for one := range w.signer {
		for other := range w.signer {
			hosts := strings.HasPrefix(one, "host") && strings.HasPrefix(other, "host") // they talk to servers alone
			if !hosts && !slices.Contains(w.trusted[one], w.signer[other]) {
				w.t.Fatalf("%s does not believe %s", one, other)
			}
		}
	}
}

func (w *world) server(who, name string) {
	secret := &corev1.Secret{}
	err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: SecretName}, secret)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if w.state[who] = nil; err != nil {
		return
	}
	s, err := Parse(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	w.state[who] = s
	w.signer[who], w.trusted[who] = s.Signer().Fingerprint(), pki.Fingerprints(s.Trusted())
	beliefs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: BeliefsName}}
	w.change(beliefs, func() {
		if beliefs.Data == nil {
			beliefs.Data = map[string]string{}
		}
		beliefs.Data[name] = text(pki.Belief{Signer: w.signer[who], Trusted: w.trusted[who], Etcd: w.trusted[who], Generation: s.Generation})
	})
}

// host says where it is when it asks where to go.
func (w *world) host(who, name string, s *State) {
	if s == nil {
		return
	}
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.change(host, func() {
		host.Annotations = map[string]string{Annotation: text(pki.Belief{Signer: w.signer[who], Trusted: w.trusted[who], Generation: s.Generation})}
	})
	w.signer[who], w.trusted[who] = s.Signer().Fingerprint(), pki.Fingerprints(s.Trusted())
}

func text(b pki.Belief) string {
	data, err := json.Marshal(b)
	if err != nil {
		panic(err) // it holds nothing but text
	}
	return string(data)
}

func (w *world) change(o client.Object, change func()) {
	err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
	if err == nil {
		change()
		err = w.api.Update(w.t.Context(), o)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func newAction() *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "rotate"},
		Spec:       api.ActionSpec{Kind: KindName, Target: Target, Want: api.WantDone},
		Status:     api.ActionStatus{State: api.ActionNew},
	}
}

// cancelIn cancels the action when a step was looked at so many times.
func (w *world) cancelIn(step string, looks int) func(*api.Action) {
	if step == "" {
		return nil
	}
	calls := 0
	return func(a *api.Action) {
		for _, s := range a.Status.Steps {
			if s.Name == step && s.State == api.StepRunning {
				calls++
			}
		}
		if calls == looks && a.Spec.Want != api.WantCancelled {
			b := a.DeepCopy()
			b.Spec.Want = api.WantCancelled
			if err := w.actions.UpdateSpec(w.t.Context(), b); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// TestCrash kills the leader at each write, in rotations that are done and that are cancelled in each of their
// steps. Another leader brings each to its end, and nobody is locked out at any time. Which places write is read from the code.
func TestCrash(t *testing.T) {
	code, err := failpoint.List(".", "Create", "Update", "Delete")
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range []struct {
		cancel string
		end    api.ActionState
		// fresh says that the new authority alone is left, and not the old one.
		fresh bool
	}{{"", api.ActionDone, true}, {"trust", api.ActionCancelled, false}, {"sign", api.ActionCancelled, false}, {"drop", api.ActionCancelled, true}} {
		t.Run("cancel in "+story.cancel, func(t *testing.T) {
			writes := 1
			for at := 0; at <= writes; at++ {
				if at > 0 && !tier.Tries(t, at, 5) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, code)
					if err := w.actions.Create(t.Context(), newAction()); err != nil {
						t.Fatal(err)
					}
					w.at = at
					w.live(w.cancelIn(story.cancel, 3))
					writes = max(writes, w.writes)
					w.at = 0
					w.live(w.cancelIn(story.cancel, 3))
					w.check(story.end, story.fresh)
				})
			}
			t.Logf("%d points", writes)
		})
	}
	testTakeOver(t, code)
	missing, all := code.Missing()
	if (len(missing) > 0 && !testing.Short()) || all < 5 {
		t.Errorf("of %d places in the code no leader was killed at these: %s", all, strings.Join(missing, ", "))
	}
}

func (w *world) check(end api.ActionState, fresh bool) {
	w.t.Helper()
	a, err := w.actions.Get(w.t.Context(), newAction())
	if err != nil || a.Status.State != end {
		w.t.Fatalf("killed at %d: it ended as %s: %s (%v)", w.at, a.Status.State, a.Status.Message, err)
	}
	for _, who := range everyone {
		isOld := w.signer[who] == w.old.Fingerprint()
		if strings.HasPrefix(who, "server") && (len(w.trusted[who]) != 1 || isOld == fresh) {
			w.t.Errorf("%s: signed by the old one %v, believes %d", who, isOld, len(w.trusted[who]))
		}
	}
	err = w.api.Get(w.t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: SecretName}, &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		w.t.Errorf("the keys of the rotation are still there: %v", err)
	}
}

// TestUndo cancels a rotation at any moment. Nobody is locked out by what servers and hosts said before.
func TestUndo(t *testing.T) {
	for looks := 1; looks < 12; looks++ {
		for _, step := range []string{"trust", "sign"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, &failpoint.Points{})
				if err := w.actions.Create(t.Context(), newAction()); err != nil {
					t.Fatal(err)
				}
				w.live(w.cancelIn(step, looks))
				for range everyone {
					w.follow()
				}
			})
		}
	}
}

// testTakeOver: a rotation that was given up, because somebody was switched off in a step and did not come back, is carried to
// its end by the next one, whose leader dies at each write.
func testTakeOver(t *testing.T, code *failpoint.Points) {
	for _, c := range []struct {
		off, step string
		stuck     Phase
	}{{"host h2", stepSign, Trust}, {"server h2", stepTrust, Forget}, {"server h2", stepDrop, Drop}} {
		t.Run(fmt.Sprintf("%s off in %s", c.off, c.step), func(t *testing.T) {
			writes := 1
			for at := 0; at <= writes; at++ {
				if at > 0 && !tier.Tries(t, at, 5) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, code)
					w.giveUp(c.off, c.step, c.stuck)
					w.at, w.writes = at, 0
					w.live(nil)
					w.at, writes = 0, max(writes, w.writes)
					w.live(nil)
					w.check(api.ActionDone, true)
				})
			}
		})
	}
}

// giveUp has a rotation end with its state left behind in a phase, and creates another one.
func (w *world) giveUp(off, step string, stuck Phase) {
	first := newAction()
	first.Spec.Timeout.Duration = time.Minute
	if err := w.actions.Create(w.t.Context(), first); err != nil {
		w.t.Fatal(err)
	}
	w.live(func(a *api.Action) {
		for _, s := range a.Status.Steps {
			if s.Name == step && s.State == api.StepRunning {
				w.off = off
			}
		}
	})
	a, err := w.actions.Get(w.t.Context(), first)
	if err != nil || a.Status.State != api.ActionFailed {
		w.t.Fatalf("it ended as %s: %s (%v)", a.Status.State, a.Status.Message, err)
	}
	secret := &corev1.Secret{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: SecretName}, secret); err != nil || string(secret.Data[keyPhase]) != string(stuck) {
		w.t.Fatalf("it was left in phase %s: %v", secret.Data[keyPhase], err)
	}
	w.off = ""
	if err := errors.Join(w.actions.Remove(w.t.Context(), a), w.actions.Create(w.t.Context(), newAction())); err != nil {
		w.t.Fatal(err)
	}
}

// TestStep_removed: no new authority is made while a server is on the list that has no Host any more.
func TestStep_removed(t *testing.T) {
	w := newWorld(t, &failpoint.Points{})
	h := &Handler{Client: w.leaders(), Authority: func() *pki.Authority { return w.old }, Now: time.Now}
	if err := w.api.Delete(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}}); err != nil {
		t.Fatal(err)
	}
	p, err := h.Step(t.Context(), newAction(), stepTrust)
	if s, _, _ := h.load(t.Context()); err != nil || p.Done || !strings.HasSuffix(p.WaitsFor, ": h2") || s != nil {
		t.Errorf("%+v, %v; the state is %v", p, err, s)
	}
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: endpoints.ServersName}}
	w.change(list, func() { delete(list.Data, "h2") })
	p, err = h.Step(t.Context(), newAction(), stepTrust)
	if s, _, _ := h.load(t.Context()); err != nil || p.WaitsFor != "" || s == nil {
		t.Errorf("then %+v, %v; the state is %v", p, err, s)
	}
}

func TestCheck_underWay(t *testing.T) {
	w := newWorld(t, &failpoint.Points{})
	h := &Handler{Client: w.leaders(), Authority: func() *pki.Authority { return w.old }, Now: time.Now}
	one, other := newAction(), newAction()
	one.UID, other.UID, other.Name = "one", "other", "another"
	if err := errors.Join(w.api.Create(t.Context(), one), h.begin(t.Context(), one)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{h.Check(t.Context(), other), second(h.Step(t.Context(), other, stepTrust))} {
		if !errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), "by the action rotate") {
			t.Errorf("a second rotation: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
