package store

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose"
)

// reviewer asks the API what the requester of a plan may do.
type reviewer struct {
	client client.Client
	plan   *api.Plan
}

// may refuses, as the API would, what the requester may not do with an object.
func (r reviewer) may(
	ctx context.Context, u *unstructured.Unstructured, mapper meta.RESTMapper, verbs ...string,
) error {
	kind := u.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return refusal(err)
	}
	for _, verb := range verbs {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: r.plan.Spec.Requester, Groups: r.plan.Spec.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: u.GetNamespace(), Verb: verb, Name: u.GetName(),
				Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource,
			},
		}}
		if err := r.client.Create(ctx, review); err != nil {
			return fmt.Errorf("while asking what %s may do: %w", r.plan.Spec.Requester, err)
		}
		if !review.Status.Allowed {
			return propose.Refuse("user %s cannot %s %s", r.plan.Spec.Requester, verb, mapping.Resource.GroupResource())
		}
	}
	return nil
}
