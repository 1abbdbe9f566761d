package operate

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/platform/kube"
	bed "github.com/holdfast-storage/holdfast/test/kube"
)

// TestPolicies_operator: the operator does its work, and uses its rights for nothing else: no Role
// of other people's, and nothing of a namespace but the label that protects it.
func TestPolicies_operator(t *testing.T) {
	p := install(t, "20-fence", "21-hosts", "22-people", "23-operator")
	keep(t, p)
	declared(t, p)
	admin, operator := clientAs(t, p, "admin", bed.Masters), clientOf(t, operator(t, p), "first")
	namespace := func() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}} }
	eventually(t, "the namespace to be protected", func(ctx context.Context) bool {
		ns := namespace()
		must(t, admin.Get(ctx, client.ObjectKeyFromObject(ns), ns))
		_, protected := ns.Labels[kube.LabelProtected]
		return protected
	})
	role := func(name string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	must(t, admin.Create(t.Context(), role("theirs")))
	tryAll(t, []attempt{
		{"the Role of a host", "", func(ctx context.Context) error {
			return operator.Create(ctx, role("holdfast-host-x"), client.DryRunAll)
		}},
		{
			"another Role", "Roles and RoleBindings of hosts alone",
			func(ctx context.Context) error { return operator.Create(ctx, role("mine")) },
		},
		{"delete a Role of other people's", "Roles and RoleBindings of hosts alone", func(ctx context.Context) error {
			return operator.Delete(ctx, role("theirs"))
		}},
		{"another label of a namespace", "may change only this label of a namespace", func(ctx context.Context) error {
			return operator.Patch(ctx, namespace(),
				merged(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))
		}},
		{"an annotation of a namespace", "may change only this label of a namespace", func(ctx context.Context) error {
			return operator.Patch(ctx, namespace(),
				merged(`{"metadata":{"annotations":{"holdfast.io/unprotected":"yes"}}}`))
		}},
		{"the label of a namespace", "", func(ctx context.Context) error {
			return operator.Patch(ctx, namespace(), merged(`{"metadata":{"labels":{"holdfast.io/protected":null}}}`),
				client.DryRunAll)
		}},
	})
}
