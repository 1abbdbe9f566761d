package kube

import (
	"context"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/store"
	"github.com/holdfast-storage/holdfast/propose"
)

// Plans are the Plans of a Kubernetes cluster. Each is refused at once: its API server does not record who made a Plan, and with the
// rights of which user the objects of the Plan would be checked.
type Plans struct{ *store.Plans }

// Check refuses a Plan.
func (Plans) Check(context.Context, *api.Plan) (propose.Request, error) {
	return propose.Request{}, propose.Refuse("no plans are made in Kubernetes, because its API servers do not record who asks for one: " +
		"use 'kubectl apply', 'kubectl diff' and 'kubectl delete' instead")
}
