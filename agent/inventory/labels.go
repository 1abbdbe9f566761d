package inventory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// labelCopies tells the copies of a BlueStore label on a device of a size.
func labelCopies(r io.ReaderAt, size int64) ([]string, error) {
	var out []string
	b := make([]byte, len(bluestore.Magic))
	for _, at := range bluestore.LabelCopies {
		if at+int64(len(b)) > size {
			break
		}
		if _, err := r.ReadAt(b, at); err != nil {
			return nil, fmt.Errorf("at byte %d: %w", at, err)
		}
		if string(b) == bluestore.Magic {
			out = append(out, fmt.Sprintf("has a copy of an OSD's BlueStore label at %d GiB (byte %d)", at>>30, at))
		}
	}
	return out, nil
}

// volumeGroup reads the name of the LVM volume group from a physical volume: a label in one of the first four sectors
// leads to the metadata area, whose header leads to the metadata, a text that starts with the name (LVM2,
// lib/format_text/layout.h). It returns "" for a physical volume that belongs to no group, or that it does not understand.
func volumeGroup(r io.ReaderAt) string {
	for at := int64(0); at < 4*sector; at += sector {
		label := make([]byte, sector)
		if _, err := r.ReadAt(label, at); err != nil {
			return ""
		}
		if bytes.HasPrefix(label, []byte("LABELONE")) {
			return volumeGroupFrom(r, label)
		}
	}
	return ""
}

func volumeGroupFrom(r io.ReaderAt, label []byte) string {
	u64 := binary.LittleEndian.Uint64
	const uuidAndSize, location = 32 + 8, 16
	// Two lists follow the header, the data areas and the metadata areas; an empty location ends each.
	at := int(binary.LittleEndian.Uint32(label[20:])) + uuidAndSize
	for at >= 0 && at+2*location <= len(label) && u64(label[at:]) != 0 {
		at += location
	}
	at += location
	if at < 0 || at+location > len(label) {
		return ""
	}
	area := int64(u64(label[at:]))
	header := make([]byte, sector)
	if _, err := r.ReadAt(header, area); err != nil || string(header[4:20]) != " LVM2 x[5A%r0N*>" {
		return ""
	}
	text := make([]byte, 256)
	if _, err := r.ReadAt(text, area+int64(u64(header[40:]))); err != nil {
		return ""
	}
	name, _, ok := strings.Cut(string(text), " {")
	if !ok || strings.ContainsAny(name, " \n\x00") {
		return ""
	}
	return name
}
