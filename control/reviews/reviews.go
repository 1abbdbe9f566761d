// Package reviews answers those who ask the API who they are and what they may do: SelfSubjectReview,
// SelfSubjectAccessReview and SelfSubjectRulesReview, as 'kubectl auth' and k9s ask. Nothing is
// stored, and no rule stands here: the authorizer that decides requests answers.
package reviews

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Rules lists what a user may do in a namespace.
type Rules func(ctx context.Context, u user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus

// Types are the Go types of the reviews, by their group.
func Types() map[string][]runtime.Object {
	return map[string][]runtime.Object{
		authorizationv1.GroupName:  {&authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{}},
		authenticationv1.GroupName: {&authenticationv1.SelfSubjectReview{}},
	}
}

// Storage returns what serves the reviews, by their group and resource.
func Storage(decides authorizer.Authorizer, rules Rules) map[string]map[string]rest.Storage {
	access := func(ctx context.Context, u user.Info, r *authorizationv1.SelfSubjectAccessReview) error {
		return mayI(ctx, decides, u, r)
	}
	list := func(ctx context.Context, u user.Info, r *authorizationv1.SelfSubjectRulesReview) error {
		return whatMayI(ctx, rules, u, r)
	}
	return map[string]map[string]rest.Storage{
		authorizationv1.GroupName: {
			"selfsubjectaccessreviews": newReview("selfsubjectaccessreview", access),
			"selfsubjectrulesreviews":  newReview("selfsubjectrulesreview", list),
		},
		authenticationv1.GroupName: {"selfsubjectreviews": newReview("selfsubjectreview", whoAmI)},
	}
}

func whoAmI(_ context.Context, u user.Info, r *authenticationv1.SelfSubjectReview) error {
	r.Status.UserInfo = authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if r.Status.UserInfo.Extra == nil {
			r.Status.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
		}
		r.Status.UserInfo.Extra[key] = values
	}
	return nil
}

func mayI(
	ctx context.Context, decides authorizer.Authorizer, u user.Info, r *authorizationv1.SelfSubjectAccessReview,
) error {
	if (r.Spec.ResourceAttributes == nil) == (r.Spec.NonResourceAttributes == nil) {
		return apierrors.NewBadRequest(
			"a review asks about one thing: set either spec.resourceAttributes or spec.nonResourceAttributes")
	}
	asked, err := attributes(u, &r.Spec)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	decision, reason, err := decides.Authorize(ctx, asked)
	r.Status = authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		r.Status.EvaluationError = err.Error()
	}
	return nil
}

func whatMayI(ctx context.Context, rules Rules, u user.Info, r *authorizationv1.SelfSubjectRulesReview) error {
	if r.Spec.Namespace == "" {
		return apierrors.NewBadRequest("a rules review is about one namespace: set spec.namespace")
	}
	r.Status = rules(ctx, u, r.Spec.Namespace)
	return nil
}

// review is the registry of a kind of reviews: one is answered when it is created, and not kept.
type review[T any, P interface {
	*T
	runtime.Object
}] struct {
	singular string
	answer   func(context.Context, user.Info, P) error
}

func newReview[T any, P interface {
	*T
	runtime.Object
}](singular string, answer func(context.Context, user.Info, P) error) rest.Storage {
	return &review[T, P]{singular, answer}
}

var _ rest.Creater = &review[authenticationv1.SelfSubjectReview, *authenticationv1.SelfSubjectReview]{}

// New returns an empty review.
func (r *review[T, P]) New() runtime.Object { return P(new(T)) }

// Destroy has nothing to clean up.
func (r *review[T, P]) Destroy() {}

// NamespaceScoped says that reviews lie in no namespace.
func (r *review[T, P]) NamespaceScoped() bool { return false }

// GetSingularName is the name of one.
func (r *review[T, P]) GetSingularName() string { return r.singular }

// Create answers a review.
func (r *review[T, P]) Create(
	ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions,
) (runtime.Object, error) {
	asked, ok := obj.(P)
	u, known := request.UserFrom(ctx)
	if !ok || !known {
		return nil, apierrors.NewInternalError(errors.New("the review came as another kind, or without a user"))
	}
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	if err := r.answer(ctx, u, asked); err != nil {
		return nil, err
	}
	return asked, nil
}
