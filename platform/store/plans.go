package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// planAge is how long a Plan is kept, whatever became of it; planInterval how often the leader
	// looks for older ones.
	planAge      = 7 * 24 * time.Hour
	planInterval = time.Hour
	// plansTimeout bounds one look, and planPage how many Plans of up to a megabyte each are read
	// at one time.
	plansTimeout = 5 * time.Minute
	planPage     = 20
)

// ClearPlans removes old Plans now, and then every hour until ctx ends. An error is logged, and
// tried again with the next look.
func (s *Store) ClearPlans(ctx context.Context) error {
	ticker := time.NewTicker(planInterval)
	defer ticker.Stop()
	for {
		if err := s.RemovePlans(ctx, time.Now().Add(-planAge)); err != nil && ctx.Err() == nil {
			s.log.Warn("cannot remove old plans", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// isOld says whether a Plan is removed, of those that were made before a time. One that is being
// applied is kept as long from its mark: applying it again resumes it.
func isOld(p *api.Plan, before time.Time) bool {
	if p.Status.State == api.PlanApplying && p.Status.Time != nil && !p.Status.Time.Time.Before(before) {
		return false
	}
	return p.CreationTimestamp.Time.Before(before.Add(planAge - lastsFor(p)))
}

// lastsFor is how long a Plan is kept. That of whoever only wanted to know is kept for a moment.
func lastsFor(p *api.Plan) time.Duration {
	said, err := time.ParseDuration(p.Annotations[api.AnnotationExpiresAfter])
	if err != nil || said < 0 || said > planAge {
		return planAge
	}
	return said
}

// RemovePlans removes the Plans that were made before a time, and those that have less time sooner.
func (s *Store) RemovePlans(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, plansTimeout)
	defer cancel()
	var old []api.Plan
	page := &api.PlanList{}
	for more := true; more; more = page.Continue != "" {
		options := &client.ListOptions{Limit: planPage, Continue: page.Continue}
		page = &api.PlanList{}
		if err := s.api.List(ctx, page, options); err != nil {
			return fmt.Errorf("while listing plans: %w", err)
		}
		for _, p := range page.Items {
			if isOld(&p, before) {
				old = append(old, api.Plan{ObjectMeta: p.ObjectMeta})
			}
		}
	}
	errs := []error{s.removeSecrets(ctx, before.Add(planAge-secretAge))}
	for i := range old {
		if err := removeUnchanged(ctx, s.api, &old[i]); err != nil {
			errs = append(errs, fmt.Errorf("while removing plan %s: %w", old[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// removeUnchanged removes an object that is as it was read. One that changed since, such as a Plan
// that a user has begun to apply, is judged again with the next look.
func removeUnchanged(ctx context.Context, c client.Writer, o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	err := c.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// secretAge is how long the Secret of a Plan is kept: longer than anybody waits for an answer.
const secretAge = 10 * time.Minute

// removeSecrets removes the Secrets that go with Plans and were made before a time. Whoever asked
// removes them; these are of those who were cut off, also before they made the Plan.
func (s *Store) removeSecrets(ctx context.Context, before time.Time) error {
	var all corev1.SecretList
	if err := s.api.List(ctx, &all, client.MatchingFields{"type": api.SecretTypePlan}); err != nil {
		return fmt.Errorf("while listing the secrets of plans: %w", err)
	}
	var errs []error
	for i := range all.Items {
		x := &all.Items[i]
		if x.Type != api.SecretTypePlan || !x.CreationTimestamp.Time.Before(before) {
			continue
		}
		if err := removeUnchanged(ctx, s.api, x); err != nil {
			errs = append(errs, fmt.Errorf("while removing the secrets of plan %s: %w", x.Name, err))
		}
	}
	return errors.Join(errs...)
}
