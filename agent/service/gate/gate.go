// Package gate is what every use of a device passes that writes over what is on it. Nothing is made
// on a device that is not Available, or on which a look at that very moment finds anything.
//
// What makes a file system, a partition table or an encrypted device writes in several places, and
// for a moment what is on the device has no signature. An agent that dies then leaves a device that
// is not Available, and that nobody could tell from one with data. So it is noted in the daemon's
// directory before, and the note, which goes when all is made, lets the same daemon begin anew
// there: as long as its Daemon names the device, nothing on it has a signature, and nothing is
// where what is being made cannot have been written yet.
package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/blank"
)

// Refusal is the error of a device that is not free.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(d *api.Device, why []string) error {
	return &Refusal{fmt.Sprintf("device %s (%s) is not empty (%s): it was not touched. Wipe it if its data is not needed",
		d.ID, d.Path, strings.Join(why, "; "))}
}

// Free says why a daemon may make nothing on a device, or nil. Make asks that, too; it is for who
// has much to do before.
//
// A device that was open when it was scanned may be free by now, as a partition of a disk whose
// table was just changed: that is asked anew when it passes.
func Free(l *service.Local, d *api.Device) error {
	why := d.Taken()
	if why == "" || why == inventory.InUse || begun(l, d) {
		return nil
	}
	return refuse(d, []string{why})
}

// Make has something made on devices, as they were just seen, or refuses it. Done again after it
// was cut off, it begins anew.
func Make(ctx context.Context, l *service.Local, devices []*api.Device, do func() error) error {
	if err := Forget(l); err != nil {
		return err
	}
	for _, d := range devices {
		if err := pass(ctx, l, d); err != nil {
			return err
		}
	}
	for _, d := range devices {
		if begun(l, d) {
			continue
		}
		if err := atomicfile.Write(noteOf(l, d.ID), []byte(d.ID), 0o600); err != nil {
			return fmt.Errorf("while noting what device %s is used for: %w", d.ID, err)
		}
	}
	if err := do(); err != nil {
		return err
	}
	for _, d := range devices {
		if err := Done(l, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// Done drops the note of a device, if there is one: what was begun has been made, also where that
// was seen by its signature.
func Done(l *service.Local, id string) error {
	note := noteOf(l, id)
	if _, err := os.Lstat(note); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return atomicfile.Remove(note)
}

// pass looks at a device once more, opened by nobody else: a while may have passed since it was
// scanned.
func pass(ctx context.Context, l *service.Local, d *api.Device) error {
	if err := Free(l, d); err != nil {
		return err
	}
	f, err := openAlone(ctx, d.Path, os.O_RDONLY)
	if err != nil {
		return inUse(d, err)
	}
	defer f.Close()
	if why := content(ctx, l, d); len(why) > 0 {
		return refuse(d, why)
	}
	return nil
}

// openAlone opens a device that nobody else has open in this way. A short look of somebody, such as
// that of an inventory, is waited for.
func openAlone(ctx context.Context, path string, flag int) (f *os.File, err error) {
	for pause := 20 * time.Millisecond; pause < time.Second; pause *= 2 {
		f, err = os.OpenFile(path, flag|unix.O_EXCL|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.EBUSY) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return nil, err
}

// What may have been written to a device on which something was begun and is not to be told by a
// signature yet, in bytes: at the start the keys of LUKS 2 and tables, at the end what tables have
// there.
const (
	begunStart = 16 << 20
	begunEnd   = 1 << 20
)

func content(ctx context.Context, l *service.Local, d *api.Device) []string {
	return inventory.Content(ctx, d, func(size int64) blank.Span {
		if begun(l, d) {
			return blank.Span{From: begunStart, To: size - begunEnd}
		}
		return blank.Span{To: size}
	})
}

// Undo clears what Make began on a daemon's devices, and did not end. It does nothing where that
// has a signature by now: then the service agent knows whose it is.
func Undo(ctx context.Context, l *service.Local) error {
	if err := Forget(l); err != nil {
		return err
	}
	devices := slices.Clone(l.Inventory)
	for _, d := range l.Devices {
		devices = append(devices, d)
	}
	for i := range devices {
		d := &devices[i]
		if d.Path == "" || !begun(l, d) || len(content(ctx, l, d)) > 0 {
			continue
		}
		if err := clearBegun(ctx, d.Path); err != nil {
			return fmt.Errorf("while clearing device %s, on which something was begun: %w", d.ID, err)
		}
		if err := Done(l, d.ID); err != nil {
			return err
		}
	}
	return nil
}

// Clear has a device look empty on which there is something, but nothing with a signature, and
// which nobody uses.
func Clear(ctx context.Context, d *api.Device) error {
	if !inventory.Unknown(ctx, d) {
		return refuse(d, []string{d.Taken()})
	}
	err := clearBegun(ctx, d.Path)
	if errors.Is(err, unix.EBUSY) {
		return inUse(d, err)
	}
	return err
}

func inUse(d *api.Device, err error) error {
	return &Refusal{fmt.Sprintf("device %s (%s) is in use: it was not touched (%v)", d.ID, d.Path, err)}
}

func clearBegun(ctx context.Context, path string) error {
	f, err := openAlone(ctx, path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close() // it is synced
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	start, end := blank.Span{To: begunStart}, blank.Span{From: max(0, size-begunEnd), To: size}
	return blank.Clear(ctx, f, blank.With(size, start, end))
}

const notePrefix = "making-on-"

// noteOf is the file that says that a device was free when something was begun on it.
func noteOf(l *service.Local, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(l.Data, notePrefix+hex.EncodeToString(sum[:8]))
}

func begun(l *service.Local, d *api.Device) bool {
	id, err := os.ReadFile(noteOf(l, d.ID))
	return err == nil && string(id) == d.ID
}

// Forget drops the notes of devices that the Daemon does not name any more: whatever is on them
// when it names them again may be somebody's.
func Forget(l *service.Local) error {
	files, err := os.ReadDir(l.Data)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while looking for what was begun: %w", err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), notePrefix) || named(l, filepath.Join(l.Data, f.Name())) {
			continue
		}
		if err := atomicfile.Remove(filepath.Join(l.Data, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func named(l *service.Local, note string) bool {
	id, err := os.ReadFile(note)
	return err == nil && slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool {
		return d.ID == string(id) || d.Of == string(id)
	})
}
