package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/propose"
)

// authenticated is the group of everyone whom the API server knows.
const authenticated = "system:authenticated"

// checksAtOnce is how many objects of one Plan the API server checks at one time.
const checksAtOnce = 8

// Plans is the Store's face for Plans.
type Plans struct{ store *Store }

// Plans returns it.
func (s *Store) Plans() *Plans { return &Plans{s} }

// Asked are the Plans that nobody has answered yet, the oldest first.
func (x *Plans) Asked() []types.NamespacedName {
	var list api.PlanList
	x.store.list(&list)
	open := slices.DeleteFunc(list.Items, func(p api.Plan) bool { return p.Status.State != "" || p.Spec.Digest != "" })
	slices.SortStableFunc(open, func(a,
		b api.Plan,
	) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	names := make([]types.NamespacedName, len(open))
	for i := range open {
		names[i] = client.ObjectKeyFromObject(&open[i])
	}
	return names
}

// withoutContent keeps of a Plan in the cache only whether it was answered: it may have a megabyte.
func withoutContent(o any) (any, error) {
	if p, ok := o.(*api.Plan); ok {
		p.ManagedFields, p.Annotations = nil, nil
		content := api.PlanContent{Digest: p.Spec.Digest}
		p.Spec, p.Status = api.PlanSpec{PlanContent: content}, api.PlanStatus{State: p.Status.State}
	}
	return o, nil
}

// Notify calls f with each change of a Plan, until ctx ends. f must not block.
func (x *Plans) Notify(ctx context.Context, f func()) {
	s := x.store
	s.mu.Lock()
	s.planWatchers[&f] = true
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.planWatchers, &f)
	})
}

// sawPlan tells those who watch Plans.
func (s *Store) sawPlan(o client.Object) {
	if _, ok := o.(*api.Plan); !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.planWatchers {
		(*f)()
	}
}

// Get reads a Plan from the API. The error wraps engine.ErrNotFound when it is gone.
func (x *Plans) Get(ctx context.Context, name types.NamespacedName) (*api.Plan, error) {
	p := &api.Plan{}
	if err := x.store.api.Get(ctx, name, p); err != nil {
		return nil, notFound(err, "plan %s", name)
	}
	return p, nil
}

// Answer writes the status of a Plan. One that is gone is no error, and one that somebody else has
// written to is looked at again.
func (x *Plans) Answer(ctx context.Context, p *api.Plan) error {
	if err := x.store.api.Status().Update(ctx, p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("while writing the answer to plan %s: %w", p.Name, err)
	}
	return nil
}

// Objects reads all objects. Daemons and Secrets, of which there are many and which the leader
// writes itself, are from the cache; all else is from the API, so that what somebody wrote a moment
// ago is in it.
func (x *Plans) Objects(ctx context.Context) (*engine.Objects, error) {
	s := x.store
	if err := s.fresh.wait(ctx); err != nil {
		return nil, err
	}
	o := &engine.Objects{}
	if err := readFew(ctx, s.api, o); err != nil {
		return nil, err
	}
	for _, d := range s.daemons.List() {
		o.Daemons = append(o.Daemons, *d.(*api.Daemon))
	}
	for _, secret := range s.secrets.List() {
		o.Secrets = append(o.Secrets, secretOf(secret.(*corev1.Secret)))
	}
	return o, nil
}

// Secrets reads the Secrets of a namespace.
func (x *Plans) Secrets(namespace string) engine.SecretReader {
	return &Secrets{Reader: x.store.api, Namespace: namespace}
}

// Check has the API server say what a Plan makes of each of its objects, in the name and with the
// rights of who asked for it. Nothing is written, so it needs no token of the leader, which is for
// servers alone. An error that wraps propose.ErrRefused is the server's word on the objects.
func (x *Plans) Check(ctx context.Context, p *api.Plan) (propose.Request, error) {
	r := propose.Request{Operation: p.Spec.Operation}
	if p.Spec.Requester == "" {
		return r, propose.Refuse("the API server did not record who made the plan")
	}
	if !slices.Contains(p.Spec.Groups, authenticated) { // the server would add it to whom the leader impersonates
		return r, propose.Refuse("the API server did not record that user %s is authenticated: make another plan",
			p.Spec.Requester)
	}
	given, err := propose.Parse(p)
	if err != nil {
		return r, err
	}
	if err := x.addSecrets(ctx, p, given); err != nil {
		return r, err
	}
	d, err := x.dryRun(p)
	if err != nil {
		return r, err
	}
	r.Targets = make([]propose.Target, len(given))
	errs := make([]error, len(given))
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for i, u := range given {
		group.Go(func() error {
			r.Targets[i], errs[i] = d.checkNamed(ctx, u)
			return nil // all of them are told
		})
	}
	_ = group.Wait()
	return r, errors.Join(errs...)
}

// dryRun prepares to ask in the name of who asked for a plan. Where the leader may not act in the
// name of others, it asks in its own what they may do.
func (x *Plans) dryRun(p *api.Plan) (dryRun, error) {
	d, config := dryRun{plan: p}, rest.CopyConfig(x.store.plain)
	if x.store.reviews {
		config, d.may = rest.CopyConfig(x.store.fenced), reviewer{x.store.api, p}.may
	} else {
		config.Impersonate = rest.ImpersonationConfig{UserName: p.Spec.Requester, Groups: p.Spec.Groups}
	}
	var err error
	if d.client, err = client.New(config, client.Options{Scheme: x.store.api.Scheme()}); err != nil {
		return d, fmt.Errorf("while preparing a client in the name of %s: %w", p.Spec.Requester, err)
	}
	return d, nil
}

// addSecrets puts the Secrets of the manifest, which names them alone, in their places.
func (x *Plans) addSecrets(ctx context.Context, p *api.Plan, given []*unstructured.Unstructured) error {
	var with corev1.Secret
	for _, u := range given {
		if !propose.IsSecret(u) || p.Spec.Operation == api.PlanDelete {
			continue
		}
		err := x.store.api.Get(ctx, client.ObjectKeyFromObject(p), &with)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("while reading the secrets of plan %s: %w", p.Name, err)
		}
		var full unstructured.Unstructured
		data := with.Data[propose.SecretEntry(u)]
		if with.Type != api.SecretTypePlan || json.Unmarshal(data, &full.Object) != nil {
			return propose.Refuse("secret/%s: a plan cannot contain a Secret, because other users may read plans: "+
				"apply the Secret separately",
				u.GetName())
		}
		if !propose.IsSecret(&full) || full.GetName() != u.GetName() || full.GetNamespace() != u.GetNamespace() {
			return propose.Refuse("secret/%s: the Secret of plan %s holds another object of that name", u.GetName(),
				p.Name)
		}
		u.Object = full.Object
	}
	return nil
}

// fieldManager is in whose name the objects of a plan are applied.
func fieldManager(p *api.Plan) string {
	const most = 128
	name := cmp.Or(p.Spec.FieldManager, p.Spec.Requester)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}
