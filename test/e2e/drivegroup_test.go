package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestDriveGroup brings a Ceph cluster up on the disks that a group selects, with the databases of each host on another of its disks, while nothing
// else is taken; a disk that comes later is told of, and taken when it is named; one is replaced; the one with the databases comes back under
// another name.
func TestDriveGroup(t *testing.T) {
	b := newBed(t, 3, 2)
	spec := home.SpecFor(b.Lab, 3, 2, 0)
	spec.Interval = "2s"
	small := b.Lab.Host(1).AddDisk(b, 2<<30)
	for _, h := range b.Lab.Hosts() {
		fast := h.AddDisk(b, 4<<30)
		b.await("the disk for databases to be seen", func() error { return b.deviceIs(h.Name, fast.ID(), api.DeviceAvailable) })
	}
	b.await("the small disk to be seen", func() error { return b.deviceIs("h1", small.ID(), api.DeviceAvailable) })
	manifest := spec.YAML() + b.driveGroup("disks", `{size: "5Gi:"}`)
	if out, code := b.plan(manifest); code != 0 || strings.Count(out, "(10 GiB)") < 6 || strings.Count(out, "(block.db: 1.3 GiB of file-") < 6 ||
		!strings.Contains(out, small.ID()+" (2.1 GB) of host h1: its size is 2.1 GB, not 5Gi:") {
		t.Errorf("holdfast plan ended with %d:\n%s", code, out)
	}
	example, err := os.ReadFile("../../examples/ceph-db-devices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]string{
		"its placement selects no ": string(example),
		"dbSize must be 1Gi or mor": manifest + "  dbSize: 1000M\n",
		"walSize and walSlots say ": manifest + "  walSlots: 2\n",
		"is matched by DriveGroup":  manifest + b.driveGroup("more", "{all: true}"),
		"it selects no disk. Near":  spec.YAML() + b.driveGroup("disks", `{size: "20Gi:"}`),
		"placement selects no host": strings.Replace(manifest, "h*", "none-*", 1),
		"osdsPerDevice can only be": manifest + "  osdsPerDevice: 2\n",
		"dm-crypt":                  manifest + "  encrypted: true\n",
		"by dataDevices and by db":  strings.Replace(manifest, "dbDevices: [{size: 4Gi}]", "dbDevices: [{all: true}]", 1),
		"is too small for the data": strings.Replace(manifest, "dbSlots: 3", "dbSlots: 9", 1),
		"has no disk for the datab": strings.Replace(manifest, "dbDevices: [{size: 4Gi}]", "dbDevices: [{size: 3Gi}]", 1),
		"size must be such as":      spec.YAML() + b.driveGroup("disks", `{size: "1T:2T:3T"}`),
	} {
		if out, code := b.apply(1, change); code != 3 || !strings.Contains(out, name) {
			t.Errorf("%q is refused with %d:\n%s", name, code, out)
		}
	}
	if daemons := b.daemons(); len(daemons) > 0 {
		t.Fatalf("what was refused made %d daemons", len(daemons))
	}
	b.mustApply(manifest)
	c := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 6) })
	if classes := b.ceph("osd", "crush", "class", "ls"); !strings.Contains(classes, `"cold"`) {
		t.Errorf("device classes: %s", classes)
	}
	b.haveDatabases(6)
	b.laterDisk(manifest)
	c.goesOn(t)
	b.groupReplaces(manifest)
	c.goesOn(t)
	b.databasesRenamed()
	c.goesOn(t)
	c.end(t)
	b.haveDatabases(7)
	b.noOrphans()
	if err := b.deviceIs("h1", small.ID(), api.DeviceAvailable); err != nil {
		t.Error(err)
	}
}

// laterDisk puts a disk in that matches: it is reported, and made an OSD when it is named.
func (b *bed) laterDisk(manifest string) {
	disk := b.Lab.Host(2).AddDisk(b, 10<<30)
	b.await("the new disk to be reported", func() error {
		g, err := read[api.DriveGroup](b, 1, "drivegroups", "disks")
		if err == nil && (g.Status.Waiting != 1 || g.Status.Candidates[0].ID != disk.ID() || g.Status.Taken != 6) {
			err = fmt.Errorf("%+v", g.Status)
		}
		return err
	})
	if err := b.deviceIs("h2", disk.ID(), api.DeviceAvailable); err != nil {
		b.Error(err)
	}
	b.mustApply(manifest + fmt.Sprintf("  take: [%q]\n", disk.ID()))
	if err := b.health(3, 7); err != nil {
		b.Error(err)
	}
}

// groupReplaces pulls a disk and has the group take another one in its place, under the same number.
func (b *bed) groupReplaces(manifest string) {
	h := b.Lab.Host(3)
	old := h.Disk(0).ID()
	failed := b.osdOn(old)
	h.Disk(0).Pull(b)
	b.await("the OSD to be missed", func() error { return b.reason(" on " + h.Name + " is down") })
	h.Disk(0).Replace(b)
	id := h.Disk(0).ID()
	b.await("the new disk to be seen", func() error { return b.deviceIs(h.Name, id, api.DeviceAvailable) })
	b.applyNamed(manifest + fmt.Sprintf("  take: [%q, %q]\n  exclude: [%q]\n", b.Lab.Host(2).Disk(3).ID(), id, old))
	if err := b.health(3, 7); err != nil {
		b.Error(err)
	}
	if now := b.osdOn(id); now != failed {
		b.Errorf("%s failed, and the OSD on the disk in its place is %s", failed, now)
	}
}

// haveDatabases checks that so many OSDs have their databases on another disk, as Ceph sees it.
func (b *bed) haveDatabases(want int) {
	b.Helper()
	if got := strings.Count(b.ceph("osd", "metadata", "--format", "json-pretty"), `"bluefs_dedicated_db": "1"`); got != want {
		b.Errorf("%d OSDs have databases of their own, not %d", got, want)
	}
}

// databasesRenamed switches a host off, and on again when its disk for databases has another name: its OSDs find them.
func (b *bed) databasesRenamed() {
	h := b.Lab.Host(2)
	was := h.Disk(2).Path()
	h.PowerOff(b)
	h.Disk(2).Detach(b)
	h.Disk(2).Attach(b)
	h.PowerOn(b)
	if h.Disk(2).Path() == was {
		b.Errorf("the disk is %s as before", was)
	}
	b.StartServer(b, 2)
	b.await("all OSDs to be up", func() error { return b.health(3, 7) })
}

// driveGroup is the manifest of a group of all hosts with one filter; more of its spec may follow.
func (b *bed) driveGroup(name, filter string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: DriveGroup\nmetadata: {name: %s}\nspec:\n  cluster: ceph\n  placement: {pattern: h*}\n"+
		"  deviceClass: cold\n  dbDevices: [{size: 4Gi}]\n  dbSlots: 3\n  dataDevices: [%s]\n", name, filter)
}

// plan shows the plan of a manifest.
func (b *bed) plan(manifest string) (string, int) {
	b.Helper()
	file := b.Lab.Host(1).Dir() + "/plan.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		b.Fatal(err)
	}
	out, err := b.Holdfast("plan", "-f", file, "--dry-run")
	if err != nil {
		return out + err.Error(), 1
	}
	return out, 0
}
