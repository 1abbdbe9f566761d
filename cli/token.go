package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/control/join"
)

func newToken(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Manage join tokens"}
	var role string
	var ttl time.Duration
	create := &cobra.Command{
		Use:   "create",
		Short: "Create a token for one machine to join",
		Long: `Creates and prints a token with which one machine may join. It is valid once, until it expires. It
contains the fingerprint of this control plane's authority, so that the machine can verify the
servers. Handle it like a password.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.createToken(cmd.Context(), join.Role(role), ttl) },
	}
	create.Flags().StringVar(&role, "role", string(join.RoleAgent), "the role of the machine: agent, or server (which may hold a copy of the state)")
	create.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long the token is valid")
	cmd.AddCommand(create)
	return cmd
}

func (g *globals) createToken(ctx context.Context, role join.Role, ttl time.Duration) error {
	if err := join.Check(role, ttl); err != nil {
		return &exitError{exitUsage, err}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	config, err := g.restConfig()
	if err != nil {
		return err
	}
	token, err := join.Create(ctx, config, role, ttl)
	if err != nil {
		return ofServers(ctx, g, err, "add the machine to it; each Node on which the DaemonSet holdfast-agent runs becomes a Host")
	}
	// The token alone goes to standard output, so that a script can take it.
	fmt.Fprintf(g.err, "On the new machine, within %s:\n  holdfast %s --join \\\n", ttl, role)
	fmt.Fprintln(g.out, token)
	return nil
}
