package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/store"
)

func newCephMirrorToken(g *globals) *cobra.Command {
	var cluster string
	cmd := &cobra.Command{
		Use:   "mirror-token SECRET [--cluster NAME]",
		Short: "Print the token that lets another cluster mirror block images of this one",
		Long: `Prints the manifest of a Secret with this name. Apply it in the control plane of the other cluster
and name it in the peerSecret of a pool of its RBDMirror: rbd-mirror there then fetches images of
this cluster. The Secret contains a key: handle it like a password.`,
		Example: "  holdfast ceph mirror-token site-a | holdfast --kubeconfig site-b.kubeconfig apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.cephMirrorToken(cmd.Context(), cluster, args[0])
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "the StorageCluster (default: the only one of type ceph in the namespace)")
	return cmd
}

func (g *globals) cephMirrorToken(ctx context.Context, cluster, secret string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	key, err := g.cephCluster(ctx, c, cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := readSnapshot(ctx, c, key)
	if err != nil {
		return err
	}
	if s.Cluster == nil || s.Cluster.Spec.Type != api.StorageCeph {
		return &exitError{exitRefused, fmt.Errorf("storagecluster/%s is not a Ceph cluster", key.Name)}
	}
	token, err := ceph.MirrorTokenOf(ctx, &engine.View{Cluster: s.Cluster, Daemons: s.Daemons}, &store.Secrets{Reader: c, Namespace: key.Namespace})
	if err != nil {
		return &exitError{exitRefused, err}
	}
	_, err = fmt.Fprintf(g.out, "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: %s\nstringData: {%s: %q}\n", secret, api.SecretTypeMirrorToken, api.SecretEntryToken, token)
	return err
}
