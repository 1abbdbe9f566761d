package gluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// wipeNote is a file with the device of a file system that is to be wiped as soon as it is not mounted any more. Without it an agent that is killed in between
// leaves a device behind that nobody can use.
func wipeNote(l *service.Local, uuid string) string { return filepath.Join(l.Data, "wipe-"+uuid) }

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

// wipeNoted does what a note says. A device on which there is something else by now is left alone.
func wipeNoted(ctx context.Context, note, uuid string) error {
	device, err := os.ReadFile(note)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := wipe(ctx, string(device), uuid); err != nil && !gone(err) {
		return err
	}
	return dropNote(note)
}
