package deviceaction

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// light switches the lights of the slot of a disk in its enclosure, as the kernel's driver of
// enclosures shows it.
type light struct{ Host }

// lights are the files of a slot, by the names of its lights.
var lights = map[string]string{hostaction.Ident: "locate", hostaction.Fault: "fault"}

// Kind implements action.Handler.
func (*light) Kind() action.Kind { return lightKind }

// Undo implements action.Handler.
func (*light) Undo(context.Context, *api.Action, string) (action.Progress, error) { return undone() }

// Check implements action.Handler.
func (l *light) Check(ctx context.Context, a *api.Action) error {
	_, _, err := l.slot(ctx, a)
	return err
}

// Step implements action.Handler. To switch a light on twice leaves it on.
func (l *light) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	d, slot, err := l.slot(ctx, a)
	if err != nil {
		return action.Progress{}, err
	}
	name, state := string(a.Spec.Parameters[hostaction.ParamLight]), string(a.Spec.Parameters[hostaction.ParamState])
	value := "0"
	if state == hostaction.On {
		value = "1"
	}
	file := filepath.Join(slot, lights[name])
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return action.Progress{}, hostaction.Refuse("the slot of %s has no %s light (%s)", l.title(d), name, slot)
	}
	if err == nil {
		_, err = f.WriteString(value)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return action.Progress{}, fmt.Errorf("while switching the %s light of %s: %w", name, l.title(d), err)
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("the %s light of %s is %s (slot %s of enclosure %s)",
		name, l.title(d), state, filepath.Base(slot), filepath.Base(filepath.Dir(slot)))}, nil
}

// title names a disk as somebody finds it who stands before the machine.
func (l *light) title(d *api.Device) string {
	serial := ""
	if d.Serial != "" {
		serial = ", serial number " + d.Serial
	}
	return fmt.Sprintf("disk %s (%s%s) of host %s", d.ID, d.Path, serial, l.Name)
}

// slot is the directory of the slot that has the disk of an action.
func (l *light) slot(ctx context.Context, a *api.Action) (*api.Device, string, error) {
	if err := hostaction.Check(a); err != nil {
		return nil, "", err
	}
	inventory, err := l.Devices(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("while looking at the devices: %w", err)
	}
	d, err := hostaction.Device(a, inventory)
	if err != nil {
		return nil, "", err
	}
	for i := range inventory {
		if inventory[i].ID == d.Parent {
			d = &inventory[i] // a partition has the lights of its disk
			break
		}
	}
	name := strings.ReplaceAll(strings.TrimPrefix(d.Path, "/dev/"), "/", "!")
	// Of several paths to one disk any will do.
	for _, disk := range append([]string{name}, l.names("/sys/block", name, "slaves/*")...) {
		slots := l.files("/sys/class/enclosure/*/*/device/block", disk)
		if len(slots) > 0 {
			return d, strings.TrimSuffix(slots[0], "/device/block/"+disk), nil
		}
		if slots := l.files("/sys/block", disk, "device/enclosure_device:*"); len(slots) > 0 {
			slot, err := filepath.EvalSymlinks(slots[0])
			return d, slot, err
		}
	}
	return nil, "", hostaction.Refuse("%s is in no enclosure whose lights the kernel can switch", l.title(d))
}

// files lists what matches a pattern.
func (l *light) files(parts ...string) []string {
	// A pattern whose only special characters are stars is never malformed; names of disks have
	// none.
	found, _ := filepath.Glob(filepath.Join(append([]string{l.Root}, parts...)...))
	return found
}

func (l *light) names(parts ...string) (all []string) {
	for _, path := range l.files(parts...) {
		all = append(all, filepath.Base(path))
	}
	return all
}
