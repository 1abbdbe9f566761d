// Package bluestore reads the label that Ceph's BlueStore writes at the start of a device.
//
// The label (bluestore_bdev_label_t in Ceph's os/bluestore/bluestore_types.cc) is one block of 4 KiB: two lines of text
// (a magic and the OSD's UUID), then the fields in Ceph's own encoding, then a CRC-32C of all before it.
package bluestore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// ErrNoLabel is returned for a device that does not start with a BlueStore label.
var ErrNoLabel = errors.New("no BlueStore label")

// Magic is how a label begins.
const Magic = "bluestore block device\n"

// LabelSize is the size of the label block in bytes.
const LabelSize = 4096

// LabelCopies are the places, in bytes, of the copies that BlueStore keeps of its label since
// release 19, so that an OSD survives the loss of the first one (Ceph, os/bluestore/BlueStore.cc,
// bdev_label_positions). A device with a copy alone is a damaged OSD, or what an earlier one has
// left.
var LabelCopies = []int64{1 << 30, 10 << 30, 100 << 30, 1000 << 30}

// Label is what the label says.
type Label struct {
	// OSDUUID is the identity that the OSD got when it was made.
	OSDUUID string
	// Size is the size of the device in bytes, as it was when the label was written.
	Size uint64
	// Created is when the label was first written.
	Created time.Time
	// Description is "main" for the data device, "bluefs db" and "bluefs wal" for the others.
	Description string
	// Meta holds what the OSD keeps beside: whoami, ceph_fsid, mkfs_done …
	Meta map[string]string
}

// ClusterFSID is the cluster that the OSD belongs to, or "" while mkfs has not come so far.
func (l *Label) ClusterFSID() string { return l.Meta["ceph_fsid"] }

// OSDID is the number of the OSD; ok is false while mkfs has not come so far.
func (l *Label) OSDID() (id int32, ok bool) {
	n, err := strconv.ParseInt(l.Meta["whoami"], 10, 32)
	return int32(n), err == nil
}

// MkfsDone says whether 'ceph-osd --mkfs' came to its end: the OSD writes "ready" last.
func (l *Label) MkfsDone() bool { return l.Meta["mkfs_done"] == "yes" && l.Meta["ready"] == "ready" }

// Part is "db" or "wal" for a device that holds no more than the database or the log of its OSD, and "" for one with data.
func (l *Label) Part() string {
	part, _ := strings.CutPrefix(l.Description, "bluefs ")
	if part == l.Description {
		return ""
	}
	return part
}

// ReadLabel reads the label of the device or file at path. The error wraps ErrNoLabel when there is none; another error
// means that it cannot be known, for example because the label is damaged.
func ReadLabel(path string) (*Label, error) {
	// Without O_NONBLOCK, opening a drive without a medium could wait for it.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("while reading the BlueStore label: %w", err)
	}
	defer f.Close()
	b := make([]byte, LabelSize)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("while reading the BlueStore label: %w", err)
	}
	l, err := ParseLabel(b[:n])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// textSize is the size of the two lines of text: the magic, the UUID in text and its newline.
const textSize = len(Magic) + 36 + 1

// ParseLabel reads a label from the first bytes of a device.
func ParseLabel(b []byte) (*Label, error) {
	if !bytes.HasPrefix(b, []byte(Magic)) {
		return nil, ErrNoLabel
	}
	if len(b) < textSize {
		return nil, errors.New("damaged BlueStore label: it ends too early")
	}
	d := &decoder{b: b[textSize:]}
	d.u8() // the version of the encoding: later ones only add fields at the end
	if compat := d.u8(); compat > 2 && d.err == nil {
		return nil, fmt.Errorf("BlueStore label of an unknown encoding (%d)", compat)
	}
	body := &decoder{b: d.bytes(int(d.u32()))}
	covered := len(b) - len(d.b)
	sum := d.u32()
	if d.err != nil {
		return nil, fmt.Errorf("damaged BlueStore label: %w", d.err)
	}
	// Ceph starts its CRC with all ones, as usual, and leaves out the usual inversion at the end.
	if ^crc32.Checksum(b[:covered], crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, errors.New("damaged BlueStore label: its checksum is wrong")
	}
	return body.label()
}

func (d *decoder) label() (*Label, error) {
	var id uuid.UUID
	copy(id[:], d.bytes(len(id)))
	l := &Label{OSDUUID: id.String(), Size: d.u64()}
	sec, nsec := d.u32(), d.u32()
	l.Created = time.Unix(int64(sec), int64(nsec)).UTC()
	l.Description = d.string()
	l.Meta = map[string]string{}
	for n := d.u32(); n > 0 && d.err == nil; n-- {
		key := d.string()
		l.Meta[key] = d.string()
	}
	if d.err != nil {
		return nil, fmt.Errorf("damaged BlueStore label: %w", d.err)
	}
	return l, nil
}
