package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/control"
)

// copyTimeout bounds a backup and a restore; the database may have 2 GiB.
const copyTimeout = 15 * time.Minute

func newBackup(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Save the control plane to a file: everything that is declared, and its keys",
		Long: `Has a server take a backup of the control plane, and saves it to a new file. It works from any machine that has an
administrator's kubeconfig. 'holdfast restore' makes a control plane of it again.

The file holds the keys of the control plane, in clear: whoever has it has all rights. Keep it as you keep a root password. What
your storage clusters store is not in it.

Each server also takes one every hour by itself, into 'snapshots' below its data directory.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), copyTimeout)
			defer cancel()
			config, err := g.restConfig()
			if err != nil {
				return err
			}
			h, err := control.FetchBackup(ctx, config, args[0])
			if err != nil {
				return refusedIf(err)
			}
			_, err = fmt.Fprintf(g.out, "%s: the control plane as of revision %d, by server %s. It holds the keys: keep it secret.\n", args[0], h.Revision, h.Server)
			return err
		},
	}
}

// refusedIf gives an error that says that a request makes no sense its exit code.
func refusedIf(err error) error {
	if errors.Is(err, control.ErrRefused) {
		return &exitError{exitRefused, err}
	}
	return err
}

func newRestore(g *globals) *cobra.Command {
	c := control.RestoreConfig{}
	fromData := false
	cmd := &cobra.Command{
		Use:   "restore (FILE | --from-data)",
		Short: "Make this server the first of its control plane again, from a backup or from its own data",
		Long: `Makes the server in the data directory the first and only one of its control plane. For when more than half of the members
of etcd are lost for good, or all. The server must be stopped. While the others have a quorum nothing is lost, and it is refused:
what was written since would be.

  holdfast restore --from-data     one server is left, with its data: nothing is lost
  holdfast restore FILE            from a file of 'holdfast backup', or of 'snapshots' below the data directory of a server

Then start the server again. Storage daemons run on meanwhile. Stop the servers that are lost, if they can come back: they must
not go on without this one. The old data is moved aside, and the command prints where to. It may be repeated.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if fromData == (len(args) == 1) || len(args) > 1 {
				return errors.New("name either one backup or --from-data")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), copyTimeout)
			defer cancel()
			if len(args) == 1 {
				c.File = args[0]
			}
			c.DataDir, c.Log = g.dataDir, newLog(g)
			done, err := control.Restore(ctx, c)
			if err != nil {
				return refusedIf(err)
			}
			return g.printRestored(done)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&fromData, "from-data", false, "take the data that this server has, instead of a backup")
	f.BoolVar(&c.Replace, "replace", false, "replace the control plane in the data directory by another one")
	f.BoolVar(&c.Overthrow, "overthrow", false, "restore also while other servers have a quorum: their state is thrown away")
	f.StringVar(&c.Name, "name", "", "the name of this server, if the data directory holds none (default: the host name)")
	f.StringVar(&c.Address, "address", "", "the IP address of this server, if the data directory holds none; hosts find it by themselves if it is that of a lost server")
	f.IntVar(&c.APIPort, "api-port", 0, fmt.Sprintf("the port of the API (default %d)", control.DefaultAPIPort))
	f.IntVar(&c.EtcdPeerPort, "etcd-peer-port", 0, fmt.Sprintf("the port that the servers' etcd members talk on (default %d)", control.DefaultEtcdPeerPort))
	f.IntVar(&c.EtcdClientPort, "etcd-client-port", 0, fmt.Sprintf("the port of etcd on loopback (default %d)", control.DefaultEtcdClientPort))
	return cmd
}

func (g *globals) printRestored(done *control.Restored) error {
	fmt.Fprintf(g.out, "The server %s (%s) is the first of its control plane again, from %s, revision %d.\n", done.Name, done.Address, done.From(), done.Revision)
	if done.Kept != "" {
		fmt.Fprintf(g.out, "What was there before lies in %s; remove it when all is well.\n", done.Kept)
	}
	if done.Unknown {
		fmt.Fprintf(g.out, "No server of the backup had this address, so hosts do not find it by themselves: write %s into %s on each host that shall use it, "+
			"in the place of what is there, and start its agent again.\n", done.Address, filepath.Join(control.HostDir(defaultDataDir), "servers"))
	}
	by := ""
	if g.dataDir != defaultDataDir {
		by = " --data-dir " + g.dataDir
	}
	_, err := fmt.Fprintf(g.out, "Now start it: 'systemctl start holdfast', or 'holdfast server%s'.\n", by)
	return err
}
