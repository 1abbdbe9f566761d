// Package farewell is what an agent says at its end.
package farewell

import (
	"context"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/internal/absence"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// timeout bounds a farewell: a stop does not wait for it.
const timeout = 2 * time.Second

// Say notes in the Lease of a host that its agent was stopped in order: one that is killed, or
// whose machine loses power, notes nothing. Nothing is said without a Lease.
func Say(c client.Client, lease *coordinationv1.Lease, log *slog.Logger) {
	if lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	full := lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&full.ObjectMeta, instance.Farewell, string(absence.Stopped))
	if err := c.Patch(ctx, full, client.MergeFrom(lease)); err != nil {
		log.Debug("the end of the agent is not recorded", "error", err)
	}
}
