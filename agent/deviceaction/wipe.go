package deviceaction

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/partition"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// wipe wipes disks. The leader has seen to it that no StorageNode, DriveGroup or storage system
// needs the disk; what the host itself knows is looked at here, each time that the step is done.
type wipe struct{ Host }

// Kind implements action.Handler.
func (*wipe) Kind() action.Kind { return wipeKind }

// Undo implements action.Handler.
func (*wipe) Undo(context.Context, *api.Action, string) (action.Progress, error) { return undone() }

// Check implements action.Handler.
func (w *wipe) Check(ctx context.Context, a *api.Action) error {
	if err := hostaction.Check(a); err != nil {
		return err
	}
	_, err := w.free(ctx, a, hostaction.Device)
	return err
}

// Step implements action.Handler. After a kill the disk is wiped again, unless somebody has begun
// to use it meanwhile. Then it is known by its id alone: a link that named it may have gone with
// what was on it.
func (w *wipe) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	if step == "look" {
		return w.look(ctx, a)
	}
	disk, err := w.free(ctx, a, hostaction.Confirmed)
	if err != nil {
		return action.Progress{}, err
	}
	defer w.hold(disk)()
	for i := range disk { // the partitions first: without the disk's table nobody finds them any more
		part := disk[len(disk)-1-i]
		err := gate.Wipe(ctx, part.Path, func() error { return w.unclaimed(disk) })
		if errors.Is(err, unix.EBUSY) {
			return action.Progress{}, hostaction.Refuse("device %s (%s) is in use: %v", part.ID, part.Path, err)
		}
		if err != nil {
			return action.Progress{}, err
		}
	}
	if err := partition.Forget(ctx, disk[0].Path); err != nil {
		return action.Progress{}, err
	}
	return action.Progress{Done: true, Message: w.title(disk[0]) + " is wiped"}, nil
}

// look has the server know the disk as it is now.
func (w *wipe) look(ctx context.Context, a *api.Action) (action.Progress, error) {
	inventory, err := w.Scan(ctx)
	if err != nil {
		return action.Progress{}, fmt.Errorf("while looking at the devices: %w", err)
	}
	if err := w.Report(ctx); err != nil {
		return action.Progress{}, err
	}
	p := action.Progress{Done: true, Message: "the device is wiped; host " + w.Name + " does not show it now"}
	if d, err := hostaction.Confirmed(a, inventory); err == nil {
		p.Message = w.title(d) + " is wiped and available"
		if why := d.Taken(); why != "" {
			p.Message = w.title(d) + " is wiped, but not available: " + why
		}
	}
	return p, nil
}

func (w *wipe) title(d *api.Device) string {
	return fmt.Sprintf("device %s (%s) of host %s", d.ID, d.Path, w.Name)
}

// free is the disk with its partitions, or an error that says why it may not be wiped.
func (w *wipe) free(
	ctx context.Context, a *api.Action, find func(*api.Action, []api.Device) (*api.Device, error),
) ([]*api.Device, error) {
	inventory, err := w.Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("while looking at the devices: %w", err)
	}
	d, err := find(a, inventory)
	if err != nil {
		return nil, err
	}
	if err := hostaction.Wipeable(d); err != nil {
		return nil, err
	}
	disk := hostaction.Disk(d, inventory)
	if err := w.unclaimed(disk); err != nil {
		return nil, err
	}
	for _, part := range disk {
		if why := w.Working(part.ID); why != "" {
			return nil, hostaction.Refuse("device %s (%s): the agent is at work on it: it %s", part.ID, part.Path, why)
		}
	}
	why, err := w.Busy(ctx, d.Path)
	if err != nil {
		return nil, fmt.Errorf("while checking whether device %s is in use: %w", d.ID, err)
	}
	if len(why) > 0 {
		return nil, hostaction.Refuse("device %s (%s) %s", d.ID, d.Path, words.Few(why))
	}
	return disk, nil
}

// unclaimed refuses a disk that a Daemon of this host uses.
func (w *wipe) unclaimed(disk []*api.Device) error {
	all, known := w.Daemons()
	if !known {
		return errors.New("the server has not sent the list of daemons of this host yet")
	}
	return hostaction.ClaimedBy(all, disk)
}

func (w *wipe) hold(disk []*api.Device) (release func()) {
	ids := make([]string, len(disk))
	for i, part := range disk {
		ids[i] = part.ID
	}
	return w.Hold(ids, "is being wiped")
}
