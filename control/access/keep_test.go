package access

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// unknown is what cannot be looked up.
type unknown struct{ Kept }

func (unknown) Cluster(context.Context, string, string) (*api.StorageCluster, error) {
	return nil, apierrors.NewInternalError(errors.New("no quorum"))
}

// TestKeep_unknown: what cannot be looked up is not deleted, and is no refusal that stands.
func TestKeep_unknown(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: map[string]string{api.LabelCluster: "c"}}}
	a := admission.NewAttributesRecord(nil, secret, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "ns", "s",
		schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "", admission.Delete, nil, false, &user.DefaultInfo{Name: "jo", Groups: []string{GroupAdmins}})
	if err := (KeepAdmission{unknown{}}).Validate(t.Context(), a, nil); !apierrors.IsInternalError(err) || apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}
