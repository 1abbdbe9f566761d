package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/access"
)

// personName is how people may be called. A certificate's name has 64 characters at most, and names with a colon are Holdfast's own.
var personName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// roleGroups are the groups of people, by role.
var roleGroups = map[string]string{"viewer": access.GroupViewers, "admin": access.GroupAdmins}

func newKubeconfig(g *globals) *cobra.Command {
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Manage kubeconfigs for other users"}
	var role, output string
	var ttl time.Duration
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a kubeconfig for a user",
		Long: `Creates a key and a certificate for a user, and writes them into a kubeconfig that only its owner
may read. It needs the key of the authority: run it on a server, as root. The file identifies the
user until it expires: handle it like a password. A single kubeconfig cannot be revoked; 'holdfast
ca rotate' revokes all of them.`,
		Example: `  sudo holdfast kubeconfig create jo --role viewer
  sudo holdfast kubeconfig create kim --role admin --ttl 720h -o kim.kubeconfig`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return g.createKubeconfig(args[0], role, cmp.Or(output, args[0]+".kubeconfig"), ttl)
		},
	}
	create.Flags().StringVar(&role, "role", "viewer", "the rights: viewer (read everything except Secrets) or admin (everything)")
	create.Flags().DurationVar(&ttl, "ttl", 365*24*time.Hour, "how long the kubeconfig is valid")
	create.Flags().StringVarP(&output, "output", "o", "", "the file to write, which must not exist (default NAME.kubeconfig)")
	cmd.AddCommand(create)
	return cmd
}

func (g *globals) createKubeconfig(name, role, path string, ttl time.Duration) error {
	group, known := roleGroups[role]
	switch {
	case !known:
		return &exitError{exitUsage, fmt.Errorf("unknown role --role %s: use viewer or admin", role)}
	case ttl < time.Minute:
		return &exitError{exitUsage, fmt.Errorf("--ttl %s is too short: use a minute or more", ttl)}
	case !personName.MatchString(name) || strings.HasSuffix(name, "."):
		return &exitError{exitUsage, fmt.Errorf("%q is not a valid user name: use up to 63 letters, digits, and . _ @ - "+
			"between them", name)}
	}
	ends, err := control.IssueKubeconfig(g.dataDir, path, name, group, ttl, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "%s gives %s the role %s until %s: 'holdfast --kubeconfig %s status'\n",
		path, name, role, ends.UTC().Format(time.DateTime+"Z"), path)
	return err
}
