package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func newOrchestrate(g *globals) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "orchestrate CLUSTER",
		Short: "Orchestrate a cluster now, even if it waits for a retry",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.orchestrate(cmd.Context(), args[0], wait, timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the run and print its report")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long --wait waits")
	return cmd
}

func (g *globals) orchestrate(ctx context.Context, name string, wait bool, timeout time.Duration) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: g.namespace, Name: name}
	request, err := askForRun(ctx, c, key)
	if err != nil {
		return err
	}
	if !wait {
		fmt.Fprintf(g.out, "storagecluster/%s: orchestration requested; follow it with 'holdfast status %s'\n", name, name)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	report, err := g.awaitRun(ctx, c, key, request)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &exitError{exitTimeout, fmt.Errorf("storagecluster/%s: the requested run has not ended after %s: check "+
			"that a server leads; see 'holdfast status %s'", name, timeout, name)}
	}
	if err != nil {
		return err
	}
	printReport(g.out, report)
	if report.Outcome == api.OutcomeFailed {
		return &exitError{exitFailed, fmt.Errorf("the orchestration of %s failed: %s", name, report.Error)}
	}
	return nil
}

// askForRun writes the request into the cluster and returns it.
func askForRun(ctx context.Context, c client.Client, key types.NamespacedName) (request string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var cluster api.StorageCluster
	if err := c.Get(ctx, key, &cluster); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
	} else if err != nil {
		return "", &exitError{exitRefused, fmt.Errorf("storagecluster/%s does not exist in namespace %s: see 'holdfast "+
			"get storageclusters -A'", key.Name, key.Namespace)}
	}
	if cluster.ModeOf() == api.ClusterPaused {
		return "", pausedError(key.Name)
	}
	request = time.Now().UTC().Format(time.RFC3339Nano)
	before := cluster.DeepCopy()
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[api.AnnotationOrchestrate] = request
	if err := c.Patch(ctx, &cluster, client.MergeFrom(before)); err != nil {
		return "", fmt.Errorf("while requesting an orchestration of storagecluster/%s: %w", key.Name, err)
	}
	return request, nil
}

func pausedError(name string) error {
	return &exitError{exitRefused, fmt.Errorf("storagecluster/%s is paused: set spec.mode to Active or Observed "+
		"first", name)}
}

// awaitRun waits for the report of a run that began after the request was written.
func (g *globals) awaitRun(ctx context.Context, c client.Client, key types.NamespacedName, request string) (*api.OrchestrationReport, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		var cluster api.StorageCluster
		if err := c.Get(ctx, key, &cluster); err != nil {
			return nil, fmt.Errorf("while waiting for the orchestration of storagecluster/%s: %w", key.Name, err)
		}
		switch {
		case answers(&cluster, request):
			return cluster.Status.Report, nil
		case cluster.ModeOf() == api.ClusterPaused:
			return nil, pausedError(key.Name)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, &exitError{exitFailed, errors.New("interrupted; the orchestration continues")}
		}
	}
}

// answers says whether the last run began after the request was written. A run tells which request it read before it began; one
// that somebody else wrote over ours is later still. No clocks are compared.
func answers(c *api.StorageCluster, request string) bool {
	done := c.Status.OrchestratedRequest
	now := c.Annotations[api.AnnotationOrchestrate]
	return c.Status.Report != nil && done != "" && (done == request || now != request && done == now)
}

func printReport(w io.Writer, r *api.OrchestrationReport) {
	fmt.Fprintf(w, "%s by %s, in %s\n", r.Outcome, r.Leader, r.Duration.Round(time.Millisecond))
	for _, d := range r.Decisions {
		fmt.Fprintf(w, "  %-6s  %s: %s\n", d.Verdict, printable(d.Object), printable(d.Message))
	}
}

// laterRun is a run of the engine that began after everything was written. Only such a run knows
// whether a resource is still refused that was refused before for lack of something else, such as a
// Secret of the same file.
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

// verdict is the outcome of a snapshot, and the latest snapshot where that is the end of the
// waiting.
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

// needsRun says whether something is written that no status names the generation of, such as a
// Secret or the labels of a Host.
func needsRun(targets []target) bool {
	return slices.ContainsFunc(targets, func(t target) bool {
		kind := t.GetKind()
		named := kind == engine.KindCluster || kind == engine.KindNode || kind == engine.KindAction || kind == "Namespace"
		return !named && api.NewResource(kind) == nil && !t.done()
	})
}
