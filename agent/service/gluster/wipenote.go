package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

const notePrefix = "wipe-"

// wipeNote is a file with the device of a file system that is to be wiped as soon as it is not mounted any more. Without it an agent that is killed in between
// leaves a device behind that nobody can use. It stays until the file system is forgotten, so that one that was wiped is not missed.
func wipeNote(l *service.Local, uuid string) string { return filepath.Join(l.Data, notePrefix+uuid) }

func noted(l *service.Local, uuid string) bool {
	_, err := os.Lstat(wipeNote(l, uuid))
	return err == nil
}

// noteWipe writes the note, or takes back that of an earlier try if nothing is to be wiped.
func noteWipe(note, device string, goes bool) error {
	if !goes {
		return dropNote(note)
	}
	return atomicfile.Write(note, []byte(device), 0o600)
}

func dropNote(note string) error {
	if _, err := os.Lstat(note); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return atomicfile.Remove(note)
}

// forgetNotes drops the notes of file systems that were given up.
func forgetNotes(l *service.Local, table *fstab) error {
	files, err := os.ReadDir(l.Data)
	if err != nil {
		return fmt.Errorf("while looking for what was to be wiped: %w", err)
	}
	for _, f := range files {
		uuid, ok := strings.CutPrefix(f.Name(), notePrefix)
		if !ok || table.has(uuid) {
			continue
		}
		if err := dropNote(wipeNote(l, uuid)); err != nil {
			return err
		}
	}
	return nil
}

// resumeWipe goes on with what an agent noted and did not come to. Since then the policy may be another one, and what was empty may have been mounted and
// written to: unless all data goes, or the wipe had begun, the file system is mounted as before, for its content to be looked at again.
func resumeWipe(ctx context.Context, l *service.Local, line fstabLine) error {
	if busy(line.dir) {
		return nil
	}
	path, err := notedDevice(wipeNote(l, line.uuid), line.uuid)
	if err != nil || path == "" {
		return err
	}
	sb, err := readSuperblock(path)
	if err != nil {
		return err
	}
	if dataGoes(l) || sb == nil || sb.unfinished {
		return wipeSoon(ctx, path, line.uuid)
	}
	return mount(ctx, line, path, 0)
}

// wipeNoted does what a note says, if there is one.
func wipeNoted(ctx context.Context, note, uuid string) error {
	path, err := notedDevice(note, uuid)
	if err != nil || path == "" {
		return err
	}
	return wipeSoon(ctx, path, uuid)
}

// notedDevice is where the file system of a note is by now: a boot may give a disk another name. It is "" without a note, and when the file system is nowhere: a
// device on which there is something else is left alone.
func notedDevice(note, uuid string) (string, error) {
	name, err := os.ReadFile(note)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return deviceOf(string(name), uuid)
}

// wipeSoon waits for who has not let go yet of what was just unmounted: to mount it again to look at it would only begin that anew.
func wipeSoon(ctx context.Context, path, uuid string) error {
	for try := 1; ; try++ {
		err := wipe(ctx, path, uuid)
		if err == nil || gone(err) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || try == busyTries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(busyPause):
		}
	}
}

// blockDevices has a name for each block device that the kernel knows (sysfs(5)).
const blockDevices = "/sys/class/block"

// deviceOf finds the device with a file system, first under the name that it had; "" when it is nowhere. Those that others are made of, as the paths of a
// multipath device, are not it, nor are those that cannot be read.
func deviceOf(name, uuid string) (string, error) {
	if carries(name, uuid) {
		return name, nil
	}
	all, err := os.ReadDir(blockDevices)
	if err != nil {
		return "", fmt.Errorf("while looking for the device of the file system %s: %w", uuid, err)
	}
	var found []string
	for _, d := range all {
		path := filepath.Join("/dev", strings.ReplaceAll(d.Name(), "!", "/"))
		holders, err := os.ReadDir(filepath.Join(blockDevices, d.Name(), "holders"))
		if (err != nil || len(holders) == 0) && carries(path, uuid) {
			found = append(found, path)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("the file system %s is on %s: none was touched. Detach or wipe the copies", uuid, strings.Join(found, " and "))
	}
	return strings.Join(found, ""), nil
}

func carries(path, uuid string) bool {
	sb, err := readSuperblock(path)
	return err == nil && sb != nil && sb.uuid == uuid
}
