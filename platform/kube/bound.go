package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// HostPolicies are the policies of deploy/kubernetes/21-hosts.yaml. RBAC lets a host write the
// objects of all hosts, and these hold it to its own: without them, whoever is root on one node
// could start anything on all others.
var HostPolicies = []string{
	"holdfast-host-token", "holdfast-hosts", "holdfast-host-daemons", "holdfast-host-actions", "holdfast-host-leases", "holdfast-host-pods",
}

// UnboundError says that a policy is missing, or its binding.
type UnboundError struct{ Policy string }

func (e *UnboundError) Error() string {
	return fmt.Sprintf("the policy %s or its binding is missing, so a host could write what belongs to another host: "+
		"apply deploy/kubernetes/21-hosts.yaml, or start the operator with --unfenced", e.Policy)
}

// hostsBound returns an *UnboundError where a policy is missing that binds hosts. What cannot be
// read is taken to be there.
func (t *Terms) hostsBound(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(t.config), "term"))
	if err != nil {
		return fmt.Errorf("while preparing to look at policies: %w", err)
	}
	api := clients.AdmissionregistrationV1()
	for _, name := range HostPolicies {
		_, err := api.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			_, err = api.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
		}
		if apierrors.IsNotFound(err) {
			return &UnboundError{name}
		}
		if err != nil && ctx.Err() == nil {
			t.log.Info("cannot read the policies; retrying", "error", err)
		}
	}
	return nil
}
