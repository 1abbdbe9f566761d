package inventory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service/luks"
)

// sector is the unit of sizes in sysfs, whatever the sectors of the device (Documentation/ABI/stable/sysfs-block).
const sector = 512

// block is what the kernel knows of one block device.
type block struct {
	name       string // kernel name, as in /sys/block
	number     string // "major:minor"
	size       int64  // bytes
	readOnly   bool
	hidden     bool // a path of a multipath NVMe namespace, without a device node
	lost       bool // a logical volume whose disks were pulled: device-mapper keeps it, and every read fails
	rotational string
	parent     *block // nil for a whole device
	partitions []string
	holders    []string
	slaves     []string

	backing string // of a loop device
	dmName  string
	dmUUID  string
	mdUUID  string
	vendor  string
	model   string
	serial  string
	wwn     string

	mark string // changes when the device is another one, or has been written to
	udev udevEntry
}

// path is the device node. The kernel writes "!" for "/" in the names of some old controllers.
func (b *block) path() string { return "/dev/" + strings.ReplaceAll(b.name, "!", "/") }

// disk is the whole device that b is or lies on.
func (b *block) disk() *block {
	if b.parent != nil {
		return b.parent
	}
	return b
}

// leftOut tells devices that are of no interest as storage: encrypted ones that are open, volumes whose disks are gone, memory, floppies, CD-ROMs, paths that the kernel hides, and
// the boot and replay-protected areas of eMMC.
func (b *block) leftOut() bool {
	if strings.HasPrefix(b.dmName, luks.NamePrefix) {
		return true // what lies below it stands for it
	}
	if b.hidden || b.lost || (strings.HasPrefix(b.name, "mmcblk") && (strings.Contains(b.name, "boot") || strings.Contains(b.name, "rpmb"))) {
		return true
	}
	switch strings.TrimRight(b.name, "0123456789") {
	case "zram", "ram", "fd", "sr", "scd", "mtdblock":
		return true
	}
	return false
}

// readBlocks reads the whole devices and their partitions below /sys/block, sorted by name. Devices that go away meanwhile
// are left out.
func readBlocks(sys, udev string) ([]*block, error) {
	entries, err := os.ReadDir(sys)
	if err != nil {
		return nil, err
	}
	var blocks []*block
	for _, e := range entries {
		dir := filepath.Join(sys, e.Name())
		if attr(dir, "size") == "0" {
			continue // nothing is behind it: a loop device without a file, a drive without a medium
		}
		disk, err := readBlock(dir, udev)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		readHardware(dir, disk)
		blocks = append(blocks, disk)
		parts, err := readPartitions(dir, udev, disk)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, parts...)
	}
	sort.SliceStable(blocks, func(i, j int) bool { return blocks[i].name < blocks[j].name })
	markLost(blocks)
	return blocks, nil
}

// markLost marks the logical volumes of which no disk is there any more.
func markLost(blocks []*block) {
	there := map[string]bool{}
	for _, b := range blocks {
		there[b.name] = true
	}
	for _, b := range blocks {
		b.lost = strings.HasPrefix(b.dmUUID, "LVM-") && len(b.slaves) > 0 && !slices.ContainsFunc(b.slaves, func(s string) bool { return there[s] })
	}
}

func readPartitions(dir, udev string, disk *block) ([]*block, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var parts []*block
	for _, e := range entries {
		// The directory of a partition begins with the name of its disk.
		if !strings.HasPrefix(e.Name(), filepath.Base(dir)) || attr(filepath.Join(dir, e.Name()), "partition") == "" {
			continue
		}
		part, err := readBlock(filepath.Join(dir, e.Name()), udev)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		part.parent = disk
		part.rotational = disk.rotational
		part.mark += disk.mark
		disk.partitions = append(disk.partitions, part.name)
		parts = append(parts, part)
	}
	return parts, nil
}

// readBlock reads what disks and partitions have in common.
func readBlock(dir, udev string) (*block, error) {
	number, err := os.ReadFile(filepath.Join(dir, "dev"))
	if err != nil {
		return nil, err
	}
	sectors, err := strconv.ParseInt(attr(dir, "size"), 10, 64)
	if err != nil {
		// Without its size there is no telling what this is; the device is going away.
		return nil, fs.ErrNotExist
	}
	b := &block{
		name:       filepath.Base(dir),
		number:     strings.TrimSpace(string(number)),
		size:       sectors * sector,
		readOnly:   attr(dir, "ro") == "1",
		hidden:     attr(dir, "hidden") == "1",
		rotational: attr(dir, "queue/rotational"),
		holders:    names(filepath.Join(dir, "holders")),
		slaves:     names(filepath.Join(dir, "slaves")),
	}
	b.udev = readUdev(filepath.Join(udev, "b"+b.number))
	b.mark = strings.Join([]string{b.number, attr(dir, "diskseq"), attr(dir, "size"), attr(dir, "ro"), writes(attr(dir, "stat"))}, " ")
	return b, nil
}

// writes returns the counters of completed writes and discards in a stat file, fields 5 and 12.
func writes(stat string) string {
	f := strings.Fields(stat)
	if len(f) < 12 {
		return stat
	}
	return f[4] + " " + f[11]
}

// readHardware reads what only whole devices have. Where a file is depends on the driver: NVMe, SCSI and ATA, MMC, virtio.
func readHardware(dir string, b *block) {
	b.backing = attr(dir, "loop/backing_file")
	b.dmName, b.dmUUID = attr(dir, "dm/name"), attr(dir, "dm/uuid")
	b.mdUUID = first(attr(dir, "md/uuid"), b.udev.env["MD_UUID"])
	b.vendor = first(attr(dir, "device/vendor"), b.udev.env["ID_VENDOR"])
	if strings.HasPrefix(b.vendor, "0x") { // virtio's and PCI's number of the vendor, which tells nobody anything
		b.vendor = ""
	}
	b.model = first(attr(dir, "device/model"), attr(dir, "device/name"), b.udev.env["ID_MODEL"])
	b.serial = first(attr(dir, "serial"), attr(dir, "device/serial"), vpdSerial(dir), b.udev.env["ID_SERIAL_SHORT"])
	b.wwn = first(wwn(attr(dir, "wwid")), wwn(attr(dir, "device/wwid")),
		wwn(b.udev.env["ID_WWN_WITH_EXTENSION"]), wwn(b.udev.env["ID_WWN"]))
	b.mark += " " + b.backing
}

// vpdSerial reads the serial number from a SCSI device's vital product data, page 0x80: four bytes of header, then text.
func vpdSerial(dir string) string {
	page, err := os.ReadFile(filepath.Join(dir, "device/vpd_pg80"))
	if err != nil || len(page) < 4 {
		return ""
	}
	return strings.Trim(string(page[4:]), " \x00\n")
}

// attr reads a small file; one that is missing is the same as an empty one.
func attr(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func names(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
