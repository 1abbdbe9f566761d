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
		Short: "Save the control plane and its keys to a file",
		Long: `Asks a server for a backup of the control plane and writes it to a new file. It works from any
machine with an administrator's kubeconfig. 'holdfast restore' restores the backup.

The file contains the keys of the control plane, unencrypted: they give all rights. Protect the file
like a root password. The data of your storage clusters is not in it.

Each server also takes a backup every hour, into 'snapshots' below its data directory.`,
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
				return ofServers(ctx, g, refusedIf(err), "back up its etcd; everything that Holdfast records is there")
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
		Short: "Restore the control plane on this server from a backup or its own data",
		Long: `Makes the server in the data directory the first and only one of its control plane. Use it when more
than half of the members of etcd, or all, are lost for good. Stop the server before. While the other
servers have a quorum nothing is lost, and the restore is refused, because it would discard their
later writes.

  holdfast restore --from-data     this server has its data: nothing is lost
  holdfast restore FILE            from a file of 'holdfast backup', or of 'snapshots' below the data directory of a server

Then start the server again. Storage daemons keep running meanwhile. Make sure that the lost servers
stay off: they must not run without this one. The old data is moved aside, and the command prints
where. The command may be repeated.`,
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
	f.BoolVar(&fromData, "from-data", false, "use the data of this server instead of a backup")
	f.BoolVar(&c.Replace, "replace", false, "replace another control plane in the data directory")
	f.BoolVar(&c.Overthrow, "overthrow", false, "restore although other servers have a quorum; their state is discarded")
	f.StringVar(&c.Name, "name", "", "the name of this server, if the data directory has none (default: the host name)")
	f.StringVar(&c.Address, "address", "", "the IP address of this server, if the data directory has none; with the "+
		"address of a lost server, hosts find it without changes")
	f.IntVar(&c.APIPort, "api-port", 0, fmt.Sprintf("the port of the API (default %d)", control.DefaultAPIPort))
	f.IntVar(&c.EtcdPeerPort, "etcd-peer-port", 0, fmt.Sprintf("the port for etcd between servers (default %d)", control.DefaultEtcdPeerPort))
	f.IntVar(&c.EtcdClientPort, "etcd-client-port", 0, fmt.Sprintf("the port of etcd on loopback (default %d)", control.DefaultEtcdClientPort))
	return cmd
}

func (g *globals) printRestored(done *control.Restored) error {
	fmt.Fprintf(g.out, "The server %s (%s) is the first of its control plane again, from %s, revision %d.\n", done.Name, done.Address, done.From(), done.Revision)
	if done.Kept != "" {
		fmt.Fprintf(g.out, "The old data is in %s; remove it when the control plane works.\n", done.Kept)
	}
	if done.Unknown {
		fmt.Fprintf(g.out, "No server of the backup had this address, so the hosts do not find it: on each host, replace "+
			"the contents of %s by %s and restart the agent.\n",
			filepath.Join(control.HostDir(defaultDataDir), "servers"), done.Address)
	}
	by := ""
	if g.dataDir != defaultDataDir {
		by = " --data-dir " + g.dataDir
	}
	_, err := fmt.Fprintf(g.out, "Now start it: 'systemctl start holdfast', or 'holdfast server%s'.\n", by)
	return err
}
