package luks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// mapping is what device-mapper has built on a device.
type mapping struct{ name, uuid, path string }

// openedOn lists what device-mapper has built on a device.
func openedOn(path string) (all []mapping, err error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join("/sys/class/block", filepath.Base(real), "holders")
	holders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, h := range holders {
		m := mapping{path: "/dev/" + h.Name()}
		for file, into := range map[string]*string{"name": &m.name, "uuid": &m.uuid} {
			text, err := os.ReadFile(filepath.Join(dir, h.Name(), "dm", file))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			*into = strings.TrimSpace(string(text))
		}
		all = append(all, m)
	}
	return all, nil
}

// Claimable says why a device that somebody else has encrypted cannot be made an owner's, or nil; and where it is open now, if it is. The key is tried,
// and nothing is changed.
func Claimable(ctx context.Context, path string, o Owner, key []byte) (open string, err error) {
	have, err := OwnerOf(path)
	if err == nil && have != o && have != (Owner{}) {
		err = fmt.Errorf("it is encrypted for something else (%+v)", have)
	}
	if err == nil {
		err = second(path)
	}
	if err != nil {
		return "", fmt.Errorf("device %s: %w", path, err)
	}
	if fits, err := Fits(ctx, path, key); err != nil || !fits {
		return "", errors.Join(err, fmt.Errorf("the key for device %s does not open it", path))
	}
	all, err := openedOn(path)
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if !strings.HasPrefix(m.uuid, "CRYPT-") {
			return "", fmt.Errorf("device %[3]s is in use by %[1]s (%[2]s), which is not its decrypted form", m.name,
				m.path, path)
		}
		open = m.path
	}
	return open, nil
}

// second refuses a header of LUKS 1, which has no room for its owner.
func second(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var version [2]byte
	if _, err := f.ReadAt(version[:], int64(len(magic))); err != nil {
		return err
	}
	if v := binary.BigEndian.Uint16(version[:]); v != 2 {
		return fmt.Errorf("it is encrypted with LUKS %d, whose header cannot say whose it is: while its OSD does not run, 'cryptsetup convert --type luks2' makes it LUKS 2 and leaves the data as it is", v)
	}
	return nil
}

// Claim makes a device that is Claimable the owner's, and opens it as Open does from then on: what is open on it under other names is closed, and the header
// says whose it is. Its keys stay, and discards go on to reach the disk, as ceph-volume has them. It may be cut off anywhere and done again. Nobody may use
// the device.
func Claim(ctx context.Context, path string, o Owner, key []byte) (string, error) {
	if err := Available(); err != nil {
		return "", err
	}
	all, err := openedOn(path)
	if err != nil {
		return "", err
	}
	for _, m := range all {
		if m.name == o.name() {
			continue
		}
		if err := cryptsetup(ctx, nil, "close", m.name); err != nil {
			return "", err
		}
	}
	have, err := OwnerOf(path)
	if err == nil && have != o {
		err = cryptsetup(ctx, nil, "config", "--label", o.label(), "--subsystem", o.subsystem(), path)
	}
	if err != nil {
		return "", err
	}
	return open(ctx, path, o, key, "--allow-discards", "--persistent")
}
