package bare_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// actionWorld is the people who write actions.
type actionWorld struct{ world }

func (w actionWorld) Create(ctx context.Context, a *api.Action) error {
	return w.Client.Create(ctx, a.DeepCopy())
}

func (w actionWorld) UpdateSpec(ctx context.Context, a *api.Action) error {
	var now api.Action
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(a), &now); err != nil {
		return err
	}
	now.Spec, now.Annotations = a.Spec, a.Annotations
	return w.Client.Update(ctx, &now)
}

func TestActions(t *testing.T) {
	actions, err := newStore(t, "s1").Actions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	actiontest.RunStore(t, actions, actionWorld{newWorld(t)})
}
