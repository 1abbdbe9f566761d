package agent

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestNewAgent_needs(t *testing.T) {
	if err := Run(t.Context(), Config{Name: "h", REST: &rest.Config{}}); err == nil {
		t.Error("an agent without a runtime ran")
	}
}

// TestReadSecret_forbidden: in Kubernetes the operator gives the right to read a Secret after it made
// the Daemon, so the agent waits for it. On bare machines a refusal is an error.
func TestReadSecret_forbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key", errors.New("no right"))
	refuses := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	}
	for _, ofNode := range []bool{true, false} {
		a := &agent{Config: Config{OfNode: ofNode}, client: interceptor.NewClient(fake.NewClientBuilder().Build(), refuses)}
		err := a.readSecret(t.Context(), "ns", "key", &corev1.Secret{})
		waits := new(waitError)
		if errors.As(err, &waits) != ofNode || apierrors.IsForbidden(err) == ofNode {
			t.Errorf("of a Node %v: %v", ofNode, err)
		}
	}
}
