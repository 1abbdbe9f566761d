// Package luks keeps devices encrypted (dm-crypt, LUKS 2). The header of each says whose it is, so that nothing foreign is opened or written over. The
// key is random and long, so it is not stretched; it reaches cryptsetup by its standard input alone.
package luks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// timeout bounds one run of cryptsetup.
const timeout = time.Minute

// NamePrefix is how the names of all opened devices begin.
const NamePrefix = "holdfast-"

// PartData is the part of an Owner that is the OSD's main device.
const PartData = "data"

// KeySize is the least size of a key in bytes.
const KeySize = 32

// Owner says whose a device is.
type Owner struct {
	// Cluster is the fsid of the Ceph cluster, and OSD the OSD's own UUID.
	Cluster, OSD string
	// Part is what of the OSD the device holds: data, db or wal.
	Part string
}

// The texts of a header: its label names the OSD and the part, its subsystem the cluster. Each has room for 47 bytes.
const (
	labelPrefix     = "osd="
	subsystemPrefix = "ceph_fsid="
)

func (o Owner) label() string     { return labelPrefix + o.OSD + " " + o.Part }
func (o Owner) subsystem() string { return subsystemPrefix + o.Cluster }

// name is what the opened device is called below /dev/mapper.
func (o Owner) name() string { return NamePrefix + o.OSD + "-" + o.Part }

// Path is where the opened device is.
func (o Owner) Path() string { return "/dev/mapper/" + o.name() }

// ErrNone is returned for a device without a LUKS header.
var ErrNone = errors.New("no LUKS header")

// The header at the start of a device (LUKS2 On-Disk Format Specification 1.1, "Binary Header"), as far as it is read.
const (
	magic                     = "LUKS\xba\xbe"
	headerSize                = 512
	labelAt, labelSize        = 24, 48
	subsystemAt, subsystemLen = 208, 48
)

// OwnerOf reads whose a device is. It returns ErrNone for one without a header, and the zero Owner for one that somebody else has encrypted.
func OwnerOf(path string) (Owner, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Owner{}, err
	}
	defer f.Close()
	b := make([]byte, headerSize)
	if n, err := io.ReadFull(f, b); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return Owner{}, fmt.Errorf("while reading the LUKS header of %s: %w", path, err)
	} else if b = b[:n]; n < headerSize {
		return Owner{}, ErrNone
	}
	return parse(b)
}

func parse(b []byte) (Owner, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return Owner{}, ErrNone
	}
	text := func(at, size int) string { return string(bytes.TrimRight(b[at:at+size], "\x00")) }
	osd, named := strings.CutPrefix(text(labelAt, labelSize), labelPrefix)
	cluster, held := strings.CutPrefix(text(subsystemAt, subsystemLen), subsystemPrefix)
	id, part, whole := strings.Cut(osd, " ")
	if !named || !held || !whole {
		return Owner{}, nil
	}
	return Owner{Cluster: cluster, OSD: id, Part: part}, nil
}

// Format encrypts a device, on which there is nothing. Cut off, it leaves the device with its owner's header and no way to open it (see Unfinished),
// or with nothing.
func Format(ctx context.Context, path string, o Owner, key []byte) error {
	if len(key) < KeySize {
		return fmt.Errorf("the key for %s is too short", path)
	}
	return cryptsetup(ctx, key, "luksFormat", "--batch-mode", "--type", "luks2", "--label", o.label(), "--subsystem", o.subsystem(),
		"--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file", "-", path)
}

// Unfinished says whether nobody can open a device, as its header has no key: encrypting it was cut off.
func Unfinished(ctx context.Context, path string) (bool, error) {
	out, err := run(ctx, nil, "luksDump", "--dump-json-metadata", path)
	if err != nil {
		return false, err
	}
	var header struct{ Keyslots map[string]json.RawMessage }
	if err := json.Unmarshal(out, &header); err != nil {
		return false, fmt.Errorf("while reading what cryptsetup says of %s: %w", path, err)
	}
	return len(header.Keyslots) == 0, nil
}

// Open opens a device, unless it is open, and returns where. Whoever else's it is, it is left alone.
func Open(ctx context.Context, path string, o Owner, key []byte) (string, error) {
	return open(ctx, path, o, key)
}

func open(ctx context.Context, path string, o Owner, key []byte, flags ...string) (string, error) {
	have, err := OwnerOf(path)
	if err != nil {
		return "", err
	}
	if have != o {
		return "", fmt.Errorf("device %s is encrypted for something else (%+v): it was not touched", path, have)
	}
	if holds, err := holder(path, o); holds || err != nil {
		return o.Path(), err
	}
	// What was open before the device was pulled is in the way of the same one under another name.
	if err := Close(ctx, o); err != nil {
		return "", err
	}
	if err := cryptsetup(ctx, key, slices.Concat([]string{"open", "--type", "luks2", "--key-file", "-"}, flags, []string{path, o.name()})...); err != nil {
		return "", err
	}
	return o.Path(), nil
}

// Fits says whether a key opens a device. Nothing is opened.
func Fits(ctx context.Context, path string, key []byte) (bool, error) {
	_, err := run(ctx, key, "open", "--test-passphrase", "--type", "luks2", "--key-file", "-", path)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notPermitted {
		return false, nil
	}
	return err == nil, err
}

// Close closes a device, if it is open.
func Close(ctx context.Context, o Owner) error {
	if !IsOpen(o) {
		return nil
	}
	return cryptsetup(ctx, nil, "close", o.name())
}

// IsOpen says whether a device is open. None is after a boot.
func IsOpen(o Owner) bool {
	_, err := os.Stat(o.Path())
	return !errors.Is(err, os.ErrNotExist)
}

// Erase destroys the keys of a device, so that nobody can read what is on it any more. Of a header that is damaged, as wiping it leaves it when it is cut
// off, they are gone already.
func Erase(ctx context.Context, path string) error {
	_, err := run(ctx, nil, "isLuks", path)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notLUKS {
		return nil
	}
	return cryptsetup(ctx, nil, "erase", "--batch-mode", path)
}

// How cryptsetup ends (cryptsetup(8), "Return codes") when a device has no valid header (wrong parameters), and when a key does not open it (no permission).
const (
	notLUKS      = 1
	notPermitted = 2
)

// holder says whether the opened device lies on this one.
func holder(path string, o Owner) (bool, error) {
	open, err := openedOn(path)
	return slices.ContainsFunc(open, func(m mapping) bool { return m.name == o.name() }), err
}

func cryptsetup(ctx context.Context, key []byte, args ...string) error {
	_, err := run(ctx, key, args...)
	return err
}

func run(ctx context.Context, key []byte, args ...string) ([]byte, error) {
	if err := tool.Require("cryptsetup", "cryptsetup-bin"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "cryptsetup", args...)
	cmd.Stdin, cmd.WaitDelay = bytes.NewReader(key), time.Second
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	out, err := tool.Ask(cmd)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("while running cryptsetup %s: %w", args[0], err)
	}
	return out, nil
}
