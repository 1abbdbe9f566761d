package inventory

import (
	"fmt"
	"strings"
)

// reserved names partition types that belong to firmware or an operating system and often hold no signature at all.
var reserved = map[string]string{
	"c12a7328-f81f-11d2-ba4b-00a0c93ec93b": "an EFI system partition",
	"21686148-6449-6e6f-744e-656564454649": "a BIOS boot partition",
	"9e1a2d38-c612-4316-aa26-8b49521e5a8b": "a PReP boot partition",
	"e3c9e316-0b5c-4db8-817d-f92df00215ae": "a partition reserved by Windows",
	"de94bba4-06d1-4d40-a16a-bfd50179d6ac": "a Windows recovery partition",
	"0xef":                                 "an EFI system partition",
	"0x41":                                 "a PReP boot partition",
	"0x5":                                  "an extended partition",
	"0xf":                                  "an extended partition",
	"0x85":                                 "an extended partition",
}

// contentReasons says in sentences what was found on a device.
func contentReasons(f findings) []string {
	var out []string
	if f.problem != "" {
		out = append(out, f.problem)
	}
	if f.ambivalent {
		out = append(out, "has several signatures that contradict each other (see wipefs)")
	}
	if f.ceph != nil {
		out = append(out, cephReason(f))
	}
	if t := f.values["TYPE"]; t != "" && (f.ceph == nil || t != "ceph_bluestore") {
		out = append(out, signatureReason(f, t))
	}
	if t := f.values["PTTYPE"]; t != "" {
		out = append(out, fmt.Sprintf("has a partition table (%s)", t))
	}
	if what := reserved[strings.ToLower(f.values["PART_ENTRY_TYPE"])]; what != "" {
		out = append(out, "is "+what)
	}
	return append(out, f.leftovers...)
}

func cephReason(f findings) string {
	switch {
	case f.ceph.Part != "":
		return fmt.Sprintf("holds the %s of a Ceph OSD (uuid %s)", f.ceph.Part, f.ceph.OSDUUID)
	case f.ceph.OSDID != nil && f.ceph.FSID != "":
		return fmt.Sprintf("holds OSD %d of Ceph cluster %s", *f.ceph.OSDID, f.ceph.FSID)
	case f.ceph.OSDID != nil:
		return fmt.Sprintf("holds OSD %d of a Ceph cluster", *f.ceph.OSDID)
	}
	return fmt.Sprintf("holds a Ceph OSD (uuid %s)", f.ceph.OSDUUID)
}

func signatureReason(f findings, t string) string {
	name := t
	if label := f.values["LABEL"]; label != "" {
		name += fmt.Sprintf(" %q", label)
	}
	if uuid := f.values["UUID"]; uuid != "" {
		name += fmt.Sprintf(" (uuid %s)", uuid)
	}
	switch {
	case t == "LVM2_member" && f.volumeGroup != "":
		return "holds LVM volume group " + f.volumeGroup
	case t == "LVM2_member":
		return "holds an LVM physical volume: " + name
	case t == "linux_raid_member":
		return "is a member of a RAID array: " + name
	case t == "swap":
		return "holds swap space: " + name
	case t == "bcache":
		return "belongs to bcache: " + name
	}
	switch f.values["USAGE"] {
	case "filesystem":
		return "has a file system: " + name
	case "crypto":
		return "is encrypted: " + name
	}
	return "has a signature: " + name
}
