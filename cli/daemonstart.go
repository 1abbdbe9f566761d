package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

func newDaemonStop(g *globals) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "stop NAME", Short: "Stop a daemon of Ceph until it is started again", Args: cobra.ExactArgs(1),
		Long: `Stops the process of a daemon, which stays stopped until 'holdfast daemon start NAME'. No other daemon
takes its place. Ceph checks whether the others can do without it, as before a restart.`,
		Example: "  holdfast daemon stop osd.3 --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.actOnDaemon(cmd.Context(), api.ActionDaemonStop, args[0], false, wait, 15*time.Minute)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the process has ended")
	return cmd
}

func newDaemonStart(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "start NAME", Args: cobra.ExactArgs(1),
		Short:   "Start a daemon that was stopped or is held back, such as a flapping OSD",
		Example: "  holdfast daemon start osd.3",
		RunE:    func(cmd *cobra.Command, args []string) error { return g.startDaemon(cmd.Context(), args[0]) },
	}
}

// askedAt is when a daemon was asked to start: not before it was held back, although the clock there may be ahead of this one, and not after, where
// this one is ahead: what it does after that is judged anew.
func askedAt(d *api.Daemon, now time.Time) string {
	if since := memory.Of(d, memory.HeldSince); since != "" {
		return since
	}
	return now.UTC().Format(time.RFC3339)
}

// startDaemon asks in an annotation, since the spec of a Daemon is the engine's.
func (g *globals) startDaemon(ctx context.Context, name string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	d, err := g.findDaemon(ctx, c, name)
	if err != nil {
		return err
	}
	if d.Annotations[api.AnnotationStop] != "" {
		return g.actOnDaemon(ctx, api.ActionDaemonStart, name, false, false, 0)
	}
	if d.Spec.State != api.WantStopped {
		return &exitError{exitRefused, fmt.Errorf("the desired state of daemon %s is %s: it is not held back",
			d.Name, d.Spec.State)}
	}
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationStart, askedAt(d, time.Now()))
	err = withDeadline(ctx, func(ctx context.Context) error {
		return c.Patch(ctx, d, client.RawPatch("application/merge-patch+json", change))
	})
	if err != nil {
		return fmt.Errorf("while requesting the start of daemon %s: %w", d.Name, err)
	}
	fmt.Fprintf(g.out, "daemon/%s: if it is held back it starts now; for other causes see 'holdfast why %s'\n",
		d.Name, name)
	return nil
}
