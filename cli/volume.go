package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/resolve"
)

func newVolume(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "volume", Short: "Resolve split-brain of GlusterFS volumes"}
	cmd.AddCommand(newVolumeResolve(g))
	return cmd
}

func newVolumeResolve(g *globals) *cobra.Command {
	var keep string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "resolve VOLUME FILE… --keep NODE|latest-mtime|bigger-file",
		Short: "Keep one copy of files in split-brain, and heal the others from it",
		Long: `Chooses the right copy of files in split-brain of a GlusterFS volume: the copy of a node, the
latest, or the largest. The other copies are healed from it, and their contents are lost. 'holdfast
get volume NAME -o yaml' lists the files, and the place of each copy (status.bricks). If two of
three copies agree, latest-mtime and bigger-file choose nothing: name a node.`,
		Example: `  holdfast volume resolve vol1 /mail/inbox --keep n1`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keep == "" {
				return &exitError{exitUsage, errors.New("name the right copy with --keep: a node, latest-mtime, or bigger-file")}
			}
			return g.resolveSplitBrain(cmd.Context(), args[0], args[1:], keep, timeout)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "the right copy: a node, latest-mtime, or bigger-file")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait; the work continues after that")
	return cmd
}

func (g *globals) resolveSplitBrain(ctx context.Context, name string, files []string, keep string, timeout time.Duration) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	v, err := g.readVolume(ctx, c, name)
	if err != nil {
		return err
	}
	a := &api.Action{Spec: api.ActionSpec{
		Kind: resolve.Kind, Target: "volume/" + name, Cluster: v.Spec.Cluster,
		Parameters: map[string]api.ActionParameter{
			resolve.Files: api.ActionParameter(strings.Join(files, "\n")), resolve.Keep: api.ActionParameter(keep),
		},
	}}
	a.Namespace, a.GenerateName = g.namespace, "resolve-"+name+"-"
	err = withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, a) })
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &exitError{exitRefused, &plainError{err}}
	}
	if err != nil {
		return fmt.Errorf("while creating the action: %w", err)
	}
	fmt.Fprintf(g.out, "action/%s created\n", a.Name)
	return g.waitAction(ctx, c, a, timeout)
}

func (g *globals) readVolume(ctx context.Context, c client.Client, name string) (*api.Volume, error) {
	v := &api.Volume{}
	v.Namespace, v.Name = g.namespace, name
	err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(v), v) })
	if apierrors.IsNotFound(err) {
		return nil, &exitError{exitRefused, fmt.Errorf("volume/%s does not exist in namespace %s: see 'holdfast get "+
			"volumes'", name, g.namespace)}
	}
	if err != nil {
		return nil, fmt.Errorf("while reading volume %s: %w", name, err)
	}
	return v, nil
}
