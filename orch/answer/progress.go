package answer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// endedFor is how long after its end Progress lists an Action: the module in ceph-mgr asks more often.
const endedFor = time.Minute

// Progress tells of the Actions that 'ceph orch' of a cluster asked for.
func Progress(view *engine.View, now time.Time) []wire.Progress {
	all := []wire.Progress{}
	orch := wire.User(types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name})
	for i := range view.Actions {
		a := &view.Actions[i]
		ended := a.Status.Finished != nil && now.Sub(a.Status.Finished.Time) > endedFor
		if a.Spec.Requester == orch && !ended {
			all = append(all, progressOf(a))
		}
	}
	return all
}

func progressOf(a *api.Action) wire.Progress {
	p := wire.Progress{ID: string(a.UID), Message: fmt.Sprintf("%s %s (action/%s)", a.Spec.Kind, a.Spec.Target, a.Name)}
	if waits := a.Status.WaitsFor; waits != "" {
		p.Message += ": waits for " + waits
	}
	done, total, _ := strings.Cut(a.Status.Progress, "/")
	n, _ := strconv.Atoi(done) // the leader writes numbers
	of, _ := strconv.Atoi(total)
	if of > 0 {
		p.Done = float64(n) / float64(of)
	}
	p.Ended = a.Status.State.Final()
	if p.Ended && a.Status.State != api.ActionDone {
		p.Failed = a.Status.Message
	}
	return p
}
