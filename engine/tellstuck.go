package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// TellStuck writes the event ActionStuck to the cluster of an action, or to those that use its host. It is an event of its own, not
// a difference between views: the action, which cannot be written, looks the same in both.
func TellStuck(ctx context.Context, store Store, a *api.Action, why error, now time.Time) error {
	clusters := []types.NamespacedName{{Namespace: a.Namespace, Name: a.Spec.Cluster}}
	if a.Spec.Cluster == "" {
		host, err := store.Host(ctx, a.Spec.Host)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("while looking which clusters use host %s: %w", a.Spec.Host, err)
		}
		clusters = host.Clusters
	}
	event := Event{
		Code: ActionStuck, Object: "action/" + a.Name, Time: now,
		Message: words.Cut(fmt.Sprintf("%s is stuck; Holdfast retries it: %v", whatAction(a), why), maxDecisionMessage),
	}
	var errs []error
	for _, name := range clusters {
		errs = append(errs, tellOne(ctx, store, name, event))
	}
	return errors.Join(errs...)
}

func tellOne(ctx context.Context, store Store, name types.NamespacedName, event Event) error {
	cluster, err := store.Cluster(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		_, err = store.Emit(ctx, cluster, []Event{event}, nil)
	}
	if err != nil {
		return fmt.Errorf("while writing an event of cluster %s: %w", name.Name, err)
	}
	return nil
}
