package cli

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// laterRun is a run of the engine that began after everything was written. Only such a run knows whether a resource is still
// refused that was refused before for lack of something else, such as a Secret of the same file.
type laterRun struct {
	client client.Client
	key    types.NamespacedName
	// always says that what is ready is judged by such a run, too.
	always  bool
	asked   bool
	request string // empty where no run can be asked for: the user may not, or the cluster is paused
}

// judges says whether an outcome stands, of which a run says that was seen in the status of a cluster. The first outcome that
// needs a later run asks for the run.
func (r *laterRun) judges(ctx context.Context, is outcome, seen *api.StorageCluster) bool {
	switch {
	case is == underWay:
		return false
	case is == held, is == ready && !r.always:
		return true
	}
	if !r.asked {
		r.asked = true
		if request, err := askForRun(ctx, r.client, r.key); err == nil {
			r.request = request
			return false
		}
	}
	return r.request == "" || answers(seen, r.request)
}

// verdict is the outcome of a snapshot, and the latest snapshot where that is the end of the waiting.
func (r *laterRun) verdict(ctx context.Context, s snapshot) (snapshot, outcome, error) {
	if !r.judges(ctx, s.outcome(), s.Cluster) {
		return s, underWay, nil
	}
	latest, err := readLatest(ctx, r.client, r.key)
	if err != nil {
		return s, underWay, err
	}
	latest.applied = s.applied
	if is := latest.outcome(); r.judges(ctx, is, s.Cluster) {
		return latest, is, nil
	}
	return s, underWay, nil
}

// needsRun says whether something is written that no status names the generation of, such as a Secret or the labels of a Host.
func needsRun(targets []target) bool {
	return slices.ContainsFunc(targets, func(t target) bool {
		kind := t.GetKind()
		named := kind == engine.KindCluster || kind == engine.KindNode || kind == engine.KindAction || kind == "Namespace"
		return !named && api.NewResource(kind) == nil && !t.done()
	})
}
