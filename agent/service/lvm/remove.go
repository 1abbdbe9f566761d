package lvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Remove removes a volume that ceph-volume has made for an OSD, and, with the last volume of a group that it has made, the group and what it has written
// on the disks, so that these are free. A volume or a group that a person has named stays, whatever lies on it. It may be cut off anywhere and done again:
// file, which it makes and removes, remembers the disks when their group is gone already.
func (v Volume) Remove(ctx context.Context, osdUUID, file string) error {
	volumes, err := report(ctx, "lvs", "lv_name,vg_name,lv_tags", "lv_uuid="+dashed(v.UUID))
	if err != nil {
		return err
	}
	for _, x := range volumes {
		if !madeFor(x, osdUUID) {
			return nil
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

// madeFor says whether ceph-volume has made and named a volume for an OSD (Ceph, ceph_volume/devices/lvm/prepare.py, prepare_data_device: "ceph-" and
// "osd-block-" with UUIDs; batch.py names those for databases and logs in this way, too).
func madeFor(volume map[string]string, osdUUID string) bool {
	return strings.HasPrefix(volume["vg_name"], "ceph-") && strings.HasPrefix(volume["lv_name"], "osd-") &&
		slices.Contains(strings.Split(volume["lv_tags"], ","), "ceph.osd_fsid="+osdUUID)
}

// removeGroup removes the volume's group if it is empty, and notes its disks before.
func (v Volume) removeGroup(ctx context.Context, file string) error {
	what := "vg_uuid=" + dashed(v.Group)
	groups, err := report(ctx, "vgs", "vg_name,lv_count", what)
	if err != nil || len(groups) != 1 || groups[0]["lv_count"] != "0" || !strings.HasPrefix(groups[0]["vg_name"], "ceph-") {
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
			if _, err := run(ctx, "pvremove", "--yes", x["pv_name"]); err != nil {
				return err
			}
		}
	}
	return os.Remove(file)
}
