package lvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/blank"
)

// Remove removes a volume that ceph-volume has made for an OSD, and, with the last volume of a group that it has made, the group and what it has written
// on the disks, so that these are free. wiped says that nothing is on it any more: one that is there and was not wiped is an error. A volume or a group that a person has named stays, whatever lies on it. It may be cut off anywhere and done again:
// file, which it makes and removes, remembers the disks when their group is gone already.
func (v Volume) Remove(ctx context.Context, osdUUID string, wiped bool, file string) error {
	volumes, err := report(ctx, "lvs", "lv_name,vg_name,lv_tags,lv_health_status", "lv_uuid="+dashed(v.UUID))
	if err != nil {
		return err
	}
	for _, x := range volumes {
		if !madeFor(x, osdUUID) || x["lv_health_status"] == "partial" { // of that a disk is missing, and nobody can wipe the rest
			return nil
		}
		if !wiped {
			return fmt.Errorf("the logical volume %s/%s is there, and the kernel does not show it, so it was not wiped: activate it ('lvchange --activate y %[1]s/%[2]s')", x["vg_name"], x["lv_name"])
		}
		if _, err := run(ctx, "lvremove", "--yes", x["vg_name"]+"/"+x["lv_name"]); err != nil {
			return err
		}
	}
	if err := v.removeGroup(ctx, file); err != nil {
		return err
	}
	return freeDisks(ctx, file)
}

// What ceph-volume names groups and volumes (Ceph, ceph_volume/api/lvm.py, create_vg and create_lv: "ceph-" and "osd-block-" with a UUID; before release 15
// also ceph_volume/devices/lvm/strategies). A person may put OSDs on volumes with other names, which get the same tags.
const aUUID = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var (
	madeGroup  = regexp.MustCompile(`^ceph-(block-|block-dbs-|block-wals-)?` + aUUID + `$`)
	madeVolume = regexp.MustCompile(`^osd-(block|data|db|wal|block-db|block-wal)-` + aUUID + `$`)
)

// madeFor says whether ceph-volume has made and named a volume for an OSD.
func madeFor(volume map[string]string, osdUUID string) bool {
	return madeGroup.MatchString(volume["vg_name"]) && madeVolume.MatchString(volume["lv_name"]) &&
		slices.Contains(strings.Split(volume["lv_tags"], ","), "ceph.osd_fsid="+osdUUID)
}

// removeGroup removes the volume's group if it is empty, and notes its disks before. One of which a disk is missing stays: LVM does not remove it.
func (v Volume) removeGroup(ctx context.Context, file string) error {
	what := "vg_uuid=" + dashed(v.Group)
	groups, err := report(ctx, "vgs", "vg_name,lv_count,vg_missing_pv_count", what)
	if err != nil || len(groups) != 1 || groups[0]["lv_count"] != "0" || groups[0]["vg_missing_pv_count"] != "0" || !madeGroup.MatchString(groups[0]["vg_name"]) {
		return err
	}
	disks, err := report(ctx, "pvs", "pv_uuid", what)
	if err != nil {
		return err
	}
	var ids []string
	for _, x := range disks {
		ids = append(ids, x["pv_uuid"])
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(file, text, 0o600); err != nil {
		return fmt.Errorf("while noting the disks of volume group %s: %w", groups[0]["vg_name"], err)
	}
	_, err = run(ctx, "vgremove", groups[0]["vg_name"])
	return err
}

// What of a disk LVM keeps for itself unless it is told otherwise, in bytes: in the first block the
// label, by which the disk is known, and behind it the metadata of its group.
const (
	labelBlock    = 4 << 10
	metadataBytes = 1 << 20
)

// clearDisk is pvremove that leaves nothing of what the volumes held either. The label goes last:
// until then LVM knows the disk, and pvremove, after which nobody does, would refuse one without
// metadata.
func clearDisk(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		return fmt.Errorf("while opening %s to free it: %w", path, err)
	}
	defer f.Close() // it is synced
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	return blank.Wipe(ctx, f, size, labelBlock, blank.Span{To: metadataBytes})
}

// freeDisks has disks that belonged to a group look empty. One that is in another group by now is none of ours.
func freeDisks(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var ids []string
	if err == nil {
		err = json.Unmarshal(text, &ids)
	}
	if err != nil {
		return fmt.Errorf("while reading which disks the volume group had: %w", err)
	}
	for _, id := range ids {
		disks, err := report(ctx, "pvs", "pv_name,vg_name", "pv_uuid="+id)
		if err != nil {
			return err
		}
		for _, x := range disks {
			if x["vg_name"] != "" {
				continue
			}
			if err := clearDisk(ctx, x["pv_name"]); err != nil {
				return err
			}
		}
	}
	return atomicfile.Remove(file)
}
