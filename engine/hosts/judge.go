package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// judgement is what the clusters say of a host.
type judgement struct {
	// Refusals and Waits are sentences, with the cluster that says each.
	Refusals, Waits []string
	// changes are the daemons, as "namespace/name", that a cluster is about to change.
	changes map[string]bool
}

// judge asks all clusters that the host matters to what they would say if their views were changed so.
func (j *job) judge(ctx context.Context, change func(*engine.View)) (*judgement, error) {
	all := &judgement{changes: map[string]bool{}}
	for _, cluster := range j.Clusters {
		if err := j.ask(ctx, cluster, change, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (j *job) ask(ctx context.Context, cluster types.NamespacedName, change func(*engine.View), all *judgement) error {
	view, plan, err := j.suppose(ctx, cluster, change)
	if err != nil || plan == nil {
		return err
	}
	if len(view.Errors) > 0 && view.Cluster.DeletionTimestamp == nil { // of one that is deleted nothing is needed any more
		return fmt.Errorf("state of cluster %s unknown: %s", cluster.Name, view.Errors[0].Message)
	}
	for _, d := range plan.Decisions {
		if d.Object != "host/"+j.Host.Name {
			continue
		}
		text := fmt.Sprintf("cluster %s: %s", cluster.Name, d.Message)
		switch d.Verdict {
		case api.VerdictRefuse:
			all.Refusals = append(all.Refusals, text)
		case api.VerdictWait:
			all.Waits = append(all.Waits, text)
		case api.VerdictDo, api.VerdictSkip:
		}
	}
	for _, c := range plan.Daemons {
		all.changes[cluster.Namespace+"/"+c.Daemon.Name] = true
	}
	return nil
}

// suppose makes the plan of a cluster. It is nil for a cluster that is gone, or that nobody can plan.
func (c Config) suppose(ctx context.Context, cluster types.NamespacedName, change func(*engine.View)) (*engine.View, *engine.Plan, error) {
	there, err := c.Store.Cluster(ctx, cluster)
	if isGone(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	planner := c.Planners[there.Spec.Type]
	if planner == nil {
		return nil, nil, nil
	}
	view, plan, err := planner.Suppose(ctx, cluster, change)
	if isGone(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("while checking cluster %s: %w", cluster.Name, err)
	}
	return view, plan, nil
}

// inMode changes the host's mode in a view.
func (j *job) inMode(mode api.HostMode) func(*engine.View) {
	return func(v *engine.View) { v.SetHostMode(j.Host.Name, mode) }
}

// allow refuses a mode that a cluster refuses, or that a cluster which is not looked after would not act on.
func (j *job) allow(ctx context.Context, mode api.HostMode) error {
	if err := j.active(ctx); err != nil {
		return err
	}
	found, err := j.judge(ctx, j.inMode(mode))
	if err != nil {
		return err
	}
	if len(found.Refusals) > 0 {
		return refuse("%s", strings.Join(found.Refusals, "; "))
	}
	return nil
}

// active refuses while a cluster with daemons on the host is not looked after: it would do nothing about a mode.
func (j *job) active(ctx context.Context) error {
	for _, name := range j.Clusters {
		c, err := j.Store.Cluster(ctx, name)
		if isGone(err) {
			continue
		} else if err != nil {
			return err
		}
		if c.Spec.Mode == api.ClusterObserved || c.Spec.Mode == api.ClusterPaused {
			return refuse("cluster %s is in mode %s and would do nothing for host %s: set its spec.mode to Active first",
				name.Name, c.Spec.Mode, j.Host.Name)
		}
	}
	return nil
}

func (j *job) silent() bool { return !j.Host.AgentHeard() }

// left returns the names of the daemons on the host that are wanted, sorted.
func (j *job) left(wanted func(*api.Daemon) bool) []string {
	var names []string
	for i := range j.Daemons {
		if wanted(&j.Daemons[i]) {
			names = append(names, j.Daemons[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
