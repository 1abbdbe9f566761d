package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func newVolumeRecreate(g *globals) *cobra.Command {
	var lost string
	cmd := &cobra.Command{
		Use:   "recreate VOLUME --lost ID",
		Short: "Accept the loss of a volume that is gone from its storage system, and have it made anew",
		Long: `Accepts the loss of a volume that somebody deleted without Holdfast: a new, empty one is made in its place, or the one by its
name that is there by now is taken for it. What is left of the lost one stays where it is; the message of the Volume names it.
--lost is the id of the lost volume (status.id): the word counts for that one alone. It is written as the annotation
` + api.AnnotationRecreate + `.`,
		Example: `  holdfast volume recreate vol1 --lost 0b9ff2c5-5c0f-4b0e-a1b5-2c2f6a6e3f11`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lost == "" {
				return &exitError{exitUsage, errors.New("say with --lost which volume is lost: the message of the Volume has its id")}
			}
			return g.recreateVolume(cmd.Context(), args[0], lost)
		},
	}
	cmd.Flags().StringVar(&lost, "lost", "", "the id of the volume that is lost")
	return cmd
}

func (g *globals) recreateVolume(ctx context.Context, name, lost string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	v, err := g.readVolume(ctx, c, name)
	if err != nil {
		return err
	}
	if why := cannotRecreate(v, lost); why != "" {
		return &exitError{exitRefused, fmt.Errorf("volume %s is not made anew: %s", name, why)}
	}
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, api.AnnotationRecreate, lost)
	err = withDeadline(ctx, func(ctx context.Context) error {
		return c.Patch(ctx, v, client.RawPatch("application/merge-patch+json", change))
	})
	if err != nil {
		return fmt.Errorf("while accepting the loss of volume %s: %w", name, err)
	}
	fmt.Fprintf(g.out, "volume/%s: the loss of %s is accepted; 'holdfast get volumes %s' shows what becomes of it\n", name, lost, name)
	return nil
}

// cannotRecreate says why a volume's loss cannot be accepted: it is there, or another one is meant.
func cannotRecreate(v *api.Volume, lost string) string {
	switch {
	case !meta.IsStatusConditionFalse(v.Status.Conditions, api.VolumePresent):
		return "it is not known to be gone"
	case v.Status.ID != "" && v.Status.ID != lost:
		return fmt.Sprintf("the lost one has the id %s, not %s", v.Status.ID, lost)
	}
	return ""
}
