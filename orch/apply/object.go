package apply

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// Object applies an object by server-side apply in the name of a manager. The object becomes what
// the server answers. Fields that somebody else applied are a conflict, which is refused with who
// it was, unless take is set.
func Object(
	ctx context.Context, c client.Client, u *unstructured.Unstructured, manager string, take bool,
	more ...client.ApplyOption,
) error {
	opts := append([]client.ApplyOption{client.FieldOwner(manager)}, more...)
	if take {
		opts = append(opts, client.ForceOwnership)
	}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	if causes := plans.FieldConflicts(err); len(causes) > 0 {
		return conflict(u, manager, err)
	}
	if err != nil {
		return fmt.Errorf("while writing %s: %w", NameOf(u), err)
	}
	return nil
}

// conflict says who applied the fields that a call would change.
func conflict(u *unstructured.Unstructured, manager string, err error) error {
	var parts []string
	for _, c := range plans.FieldConflicts(err) {
		parts = append(parts, fmt.Sprintf("%s was applied by %s", strings.TrimPrefix(c.Field, "."), plans.ManagerIn(c)))
	}
	return answer.Errorf("%s: %s, not by %s: change it there, or have calls of 'ceph orch' count with "+
		"spec.ceph.orch.conflicts: Take",
		NameOf(u), strings.Join(parts, "; "), manager)
}

// NameOf names an object as people write it: filesystem/home.
func NameOf(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "/" + u.GetName()
}
