package prepare

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/agent/pending"
)

// TestReadSecret_forbidden: in Kubernetes the operator gives the right to read a Secret after it
// made the Daemon, so the agent waits for it. On bare machines a refusal is an error.
func TestReadSecret_forbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "key", errors.New("no right"))
	refuses := interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
	}
	for _, ofNode := range []bool{true, false} {
		c := interceptor.NewClient(fake.NewClientBuilder().Build(), refuses)
		s := &Secrets{Client: c, OfNode: ofNode, Timeout: time.Minute}
		err := s.Read(t.Context(), "ns", "key", &corev1.Secret{})
		if pending.Is(err) != ofNode || apierrors.IsForbidden(err) == ofNode {
			t.Errorf("of a Node %v: %v", ofNode, err)
		}
	}
}
