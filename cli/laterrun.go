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
	ended   bool
}

// judges says whether an outcome stands. The first one that needs a later run asks for the run.
func (r *laterRun) judges(ctx context.Context, is outcome) bool {
	switch {
	case is == underWay:
		return false
	case is == held, is == ready && !r.always:
		return true
	case r.asked:
		return r.over(ctx)
	}
	r.asked = true
	request, err := askForRun(ctx, r.client, r.key)
	r.request = request
	return err != nil
}

// over says whether the run has ended. A watch may be behind what the API has, so it is not asked.
func (r *laterRun) over(ctx context.Context) bool {
	if r.request == "" || r.ended {
		return true
	}
	var c api.StorageCluster
	err := withDeadline(ctx, func(ctx context.Context) error { return r.client.Get(ctx, r.key, &c) })
	r.ended = err == nil && answers(&c, r.request)
	return r.ended
}

// verdict is the outcome of a snapshot, and the latest snapshot where that is the end of the waiting.
func (r *laterRun) verdict(ctx context.Context, s snapshot) (snapshot, outcome, error) {
	if !r.judges(ctx, s.outcome()) {
		return s, underWay, nil
	}
	ended := r.ended
	latest, err := readLatest(ctx, r.client, r.key)
	if err != nil {
		return s, underWay, err
	}
	latest.applied = s.applied
	is := latest.outcome()
	if !r.judges(ctx, is) || r.ended != ended { // it was read before the run ended
		return s, underWay, nil
	}
	return latest, is, nil
}

// needsRun says whether something is written that no status names the generation of, such as a Secret or the labels of a Host.
func needsRun(targets []target) bool {
	return slices.ContainsFunc(targets, func(t target) bool {
		kind := t.GetKind()
		named := kind == engine.KindCluster || kind == engine.KindNode || kind == engine.KindAction || kind == "Namespace"
		return !named && api.NewResource(kind) == nil && !t.done()
	})
}
