package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/store"
)

func newCephClientFiles(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "client-files CLIENT DIRECTORY",
		Short: "Write the ceph.conf and the keyring of a Client",
		Long: `Writes ceph.conf and ceph.client.CLIENT.keyring into a directory. Copy them to /etc/ceph of the
client's machine. Existing files are not replaced.`,
		Example: `  holdfast ceph client-files vms /root/vms
  rados --conf /root/vms/ceph.conf --keyring /root/vms/ceph.client.vms.keyring -n client.vms -p images ls`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.cephClientFiles(cmd.Context(), args[0], args[1])
		},
	}
}

func (g *globals) cephClientFiles(ctx context.Context, name, dir string) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var x api.Client
	if err := c.Get(ctx, types.NamespacedName{Namespace: g.namespace, Name: name}, &x); apierrors.IsNotFound(err) {
		return &exitError{exitRefused, fmt.Errorf("client/%s does not exist in namespace %s: see 'holdfast get clients'",
			name, g.namespace)}
	} else if err != nil {
		return fmt.Errorf("while reading client/%s: %w", name, err)
	}
	if x.Status.Secret == "" {
		return &exitError{exitRefused, fmt.Errorf("client/%s has no key yet: see 'holdfast why client/%s'", name, name)}
	}
	data, err := (&store.Secrets{Reader: c, Namespace: g.namespace}).Secret(ctx, x.Status.Secret)
	if err != nil {
		return fmt.Errorf("while reading the key of client/%s: %w", name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("while making the directory: %w", err)
	}
	conf := fmt.Appendf(nil, "[global]\nfsid = %s\nmon_host = %s\n", x.Status.FSID, x.Status.MonHost)
	for _, file := range []struct {
		name string
		text []byte
	}{{"ceph.conf", conf}, {"ceph." + x.Status.Entity + ".keyring", data["keyring"]}} {
		if err := g.writeNew(filepath.Join(dir, file.name), file.text); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that only its owner can read, and that was not there.
func (g *globals) writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &exitError{exitRefused, fmt.Errorf("%s already exists: choose another directory, or move the file "+
			"away", path)}
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("while writing %s: %w", path, err)
	}
	fmt.Fprintf(g.out, "%s written\n", path)
	return nil
}
