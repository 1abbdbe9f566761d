package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/exit"
)

// freeTimeout bounds the scan of a machine and the some hundred writes after it.
const freeTimeout = 2 * time.Minute

func newFree(h Home) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "free DEVICE --id ID",
		Short: "Make a device with unneeded data available",
		Long: `Clears a device with unknown data or copies of a BlueStore label: both ends, and the places that the
inventory samples. This takes seconds, also on a large disk without discards. The data is lost, but
most of it is not overwritten: if others must not read it, use 'blkdiscard -z', which takes as long
as writing the whole disk.

A device with a signature (a filesystem, a partition table, an OSD), a mounted device, and a device
in use are refused. See the reasons in 'holdfast device list', unmount the device, and
remove its signatures ('wipefs --all'). Run the command as root on the host of the device. The id is
required because a name such as /dev/sdb may be another disk after a boot.`,
		Example: `  holdfast device free /dev/sdb --id wwn-5000c500a1b2c3d4`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if id == "" {
				return exit.With(exit.Usage,
					errors.New("name the device with --id, as 'holdfast device list' shows it: "+
						"a name below /dev may be another disk after a boot"))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), freeTimeout)
			defer cancel()
			return h.free(ctx, args[0], id)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the id of the device, from 'holdfast device list'")
	return cmd
}

func (h Home) free(ctx context.Context, path, id string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return exit.With(exit.Refused, fmt.Errorf("device does not exist: %w", err))
	}
	d, err := At(ctx, path)
	if err != nil {
		return err
	}
	if d.ID != id {
		return exit.With(exit.Refused, fmt.Errorf("%s is %s, not %s: nothing was changed", path, d.ID, id))
	}
	if d.Taken() == "" {
		fmt.Fprintf(h.Out, "device %s (%s) is already available\n", d.ID, path)
		return nil
	}
	if err := gate.Clear(ctx, d); err != nil {
		return exit.With(exit.Refused, err)
	}
	d, err = At(ctx, path)
	if err == nil && d.Taken() != "" {
		err = fmt.Errorf("device %s (%s) was cleared, but is not available: %s", d.ID, path, d.Taken())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "device %s (%s) is available\n", d.ID, path)
	return nil
}

// At is a device of this machine, as its agent sees it.
func At(ctx context.Context, path string) (*api.Device, error) {
	only, err := inventory.Filter(os.Getenv(inventory.FilterVariable))
	if err != nil {
		return nil, err
	}
	devices, err := (&inventory.Scanner{Only: only}).Rescan(ctx)
	if err != nil {
		return nil, fmt.Errorf("while reading the devices of this machine: %w", err)
	}
	i := slices.IndexFunc(devices, func(d api.Device) bool { return d.Path == path })
	if i < 0 {
		return nil, exit.With(exit.Refused, fmt.Errorf("this machine has no device %s", path))
	}
	return &devices[i], nil
}
