package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
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
