package fence

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// causeLost marks a refusal of the API server as that of a fence.
const causeLost metav1.CauseType = "FenceLost"

// NewRefusal is the API server's answer to a write whose fence is lost. It is no conflict: to try
// again does not help.
func NewRefusal(resource schema.GroupResource, name, why string) error {
	err := apierrors.NewForbidden(resource, name, errors.New(why))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: causeLost, Message: why}}
	return err
}

// lostByPolicy is in the refusal of the policy holdfast-leader of a Kubernetes cluster, which can
// set no cause. The text is that of the policy's own messageExpression.
const lostByPolicy = " denied request: FenceLost: "

// Lost says whether a write was refused because one of its fences is lost.
func Lost(err error) bool {
	return apierrors.HasStatusCause(err, causeLost) || apierrors.IsForbidden(err) && strings.Contains(err.Error(),
		lostByPolicy)
}
