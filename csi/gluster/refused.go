package gluster

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// refusals are the codes for what Holdfast refuses to make.
var refusals = map[api.Reason]codes.Code{
	api.ReasonInsufficientSpace: codes.ResourceExhausted,
	api.ReasonInsufficientNodes: codes.ResourceExhausted,
	api.ReasonInvalidSpec:       codes.InvalidArgument,
	api.ReasonUnsupported:       codes.InvalidArgument,
	api.ReasonNoCluster:         codes.FailedPrecondition,
	api.ReasonConflict:          codes.AlreadyExists,
}

// refused is the error for a Volume that a user has to change: Holdfast cannot have it as it is
// declared now.
func refused(v *api.Volume) error {
	stalled := meta.FindStatusCondition(v.Status.Conditions, api.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.ObservedGeneration < v.Generation {
		return nil
	}
	code, known := refusals[api.Reason(stalled.Reason)]
	if !known {
		code = codes.FailedPrecondition
	}
	return status.Errorf(code, "cannot make the volume %s: %s", v.Name, stalled.Message)
}

// just has a Volume be deleted as it was seen, and no other of its name.
func just(v *api.Volume) client.DeleteOption {
	return client.Preconditions{UID: &v.UID, ResourceVersion: &v.ResourceVersion}
}

// isBegun says whether anything was made for a Volume.
func isBegun(v *api.Volume) bool {
	s := &v.Status
	return s.Served || s.ID != "" || s.State != "" && s.State != api.ResourcePending
}
