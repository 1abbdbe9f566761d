package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// recoverOptions are those of 'holdfast ceph recover-mons'.
type recoverOptions struct {
	from    string
	lost    []string
	force   bool
	approve string
	timeout time.Duration
}

func newCephRecoverMons(g *globals) *cobra.Command {
	var o recoverOptions
	cmd := &cobra.Command{
		Use:   "recover-mons CLUSTER [--from osds] [--lost HOST,…] [--approve CODE]",
		Short: "Recover the mons after their quorum is lost for good",
		Long: `Recovers the mons of a Ceph cluster if so many of them, or of their stores, are lost for good that
the others can never form a quorum. Without --approve it shows what it would do and what would be
lost, and changes nothing. The code that it prints confirms exactly that.

It starts with the mon that has the newest store, and removes the others from its map. With --from
osds, when no mon has its store, it makes a store from the maps of the OSDs and the keys in the
Secrets. The other mons then join as new ones. Old stores are kept.

It is refused while the mons answer, while the existing stores are a quorum, and while a host that
may have newer data is disconnected: switch that host on, or name it with --lost if it never comes
back.`,
		Example: `  holdfast ceph recover-mons ceph
  holdfast ceph recover-mons ceph --lost h2,h3 --approve 3f9a12c4
  holdfast ceph recover-mons ceph --from osds`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return g.recoverMons(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.from, "from", "alone", "the source of the first mon: alone (its own store) or osds (their maps)")
	cmd.Flags().StringSliceVar(&o.lost, "lost", nil, "hosts that will never come back")
	cmd.Flags().BoolVar(&o.force, "force", false,
		"continue although newer data is discarded: whole stores, or OSDs that do not answer")
	cmd.Flags().StringVar(&o.approve, "approve", "", "the confirmation code printed by the dry run")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait; the work continues after that")
	return cmd
}

func (o *recoverOptions) action(key types.NamespacedName) *api.Action {
	a := &api.Action{Spec: api.ActionSpec{
		Kind: ceph.RecoverKind, Target: "storagecluster/" + key.Name, Cluster: key.Name, Parameters: map[string]api.ActionParameter{
			ceph.RecoverFrom: api.ActionParameter(o.from), ceph.RecoverLost: api.ActionParameter(strings.Join(o.lost, ",")),
		},
	}}
	if o.force {
		a.Spec.Parameters[ceph.RecoverForce] = hosts.Yes
	}
	a.Namespace, a.GenerateName = key.Namespace, "recover-mons-"+key.Name+"-"
	return a
}

func (g *globals) recoverMons(ctx context.Context, name string, o recoverOptions) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	key, err := g.cephCluster(ctx, c, name)
	if err != nil {
		return err
	}
	a := o.action(key)
	words, err := recoverWords(ctx, c, key, a)
	if err != nil {
		return err
	}
	fmt.Fprintln(g.out, strings.Join(words, "\n"))
	sum := sha256.Sum256([]byte(strings.Join(words, "\n")))
	code := hex.EncodeToString(sum[:4])
	switch o.approve {
	case code:
	case "":
		_, err := fmt.Fprintf(g.out,
			"\nNothing was changed. To confirm exactly this, run the command again with --approve %s\n", code)
		return err
	default:
		return &exitError{exitRefused, fmt.Errorf("the code %s is out of date: the cluster changed since the dry run. "+
			"Check the list above, then run the command with --approve %s", o.approve, code)}
	}
	err = withDeadline(ctx, func(ctx context.Context) error { return c.Create(ctx, a) })
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return &exitError{exitRefused, &plainError{err}}
	}
	if err != nil {
		return fmt.Errorf("while creating the action: %w", err)
	}
	fmt.Fprintf(g.out, "\naction/%s created\n", a.Name)
	return g.waitAction(ctx, c, a, o.timeout)
}

// recoverWords tells what would be done, or refuses it.
func recoverWords(ctx context.Context, c client.Client, key types.NamespacedName, a *api.Action) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	objects, err := store.ReadObjects(ctx, c)
	if err != nil {
		return nil, err
	}
	view, err := objects.View(key)
	if err != nil {
		return nil, err
	}
	for i := range view.Actions {
		if other := &view.Actions[i]; other.Spec.Kind == ceph.RecoverKind && other.Spec.Cluster == key.Name && !other.Status.State.Final() {
			return nil, &exitError{exitRefused, fmt.Errorf("action %s already recovers the mons%s: follow it with 'holdfast "+
				"action wait %s'",
				other.Name, waitText(other), other.Name)}
		}
	}
	words, err := ceph.Words(view, a.Spec)
	if errors.Is(err, action.ErrRefused) {
		return nil, &exitError{exitRefused, err}
	}
	return words, err
}
