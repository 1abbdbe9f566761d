package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestDriveGroup brings a Ceph cluster up on the disks that a group selects, with the databases of each host on another of its disks, while nothing
// else is taken; a disk that comes later is told of, and taken when it is named; one is replaced; the one with the databases comes back under
// another name. Beside it another group divides a disk for two OSDs, with their logs on one more disk: it is renamed, too, one of the two leaves, and
// then the disk, which is empty after that.
func TestDriveGroup(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 2)
	spec := home.SpecFor(b.Lab, 3, 2, 0)
	spec.Interval = "2s"
	small := b.Lab.Host(1).AddDisk(b, 2<<30)
	for _, h := range b.Lab.Hosts() {
		fast := h.AddDisk(b, 4<<30)
		b.await("the disk for databases to be seen", func() error { return b.deviceIs(h.Name, fast.ID(), api.DeviceAvailable) })
	}
	b.await("the small disk to be seen", func() error { return b.deviceIs("h1", small.ID(), api.DeviceAvailable) })
	divided, logs := b.Lab.Host(2).AddDisk(b, 12<<30), b.Lab.Host(2).AddDisk(b, 1<<30)
	b.await("the disk to divide to be seen", func() error { return b.deviceIs("h2", divided.ID(), api.DeviceAvailable) })
	b.await("the disk for logs to be seen", func() error { return b.deviceIs("h2", logs.ID(), api.DeviceAvailable) })
	plain := spec.YAML() + b.driveGroup("disks", `{size: "8Gi:10Gi"}`)
	manifest := spec.YAML() + dividing + b.driveGroup("disks", `{size: "8Gi:10Gi"}`)
	if out, code := b.plan(manifest, "--dry-run"); code != 0 || strings.Count(out, "(10 GiB)") < 6 || strings.Count(out, "(block.db: 1.3 GiB of file-") < 6 ||
		!strings.Contains(out, small.ID()+" (2.1 GB) of host h1: its size is 2.1 GB, not 8Gi:10Gi") ||
		!strings.Contains(out, "disk "+divided.ID()+" (12.9 GB) of host h2 is divided for 2 OSDs, 6.4 GB each") {
		t.Errorf("holdfast plan ended with %d:\n%s", code, out)
	}
	example, err := os.ReadFile("../../examples/ceph-db-devices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]string{
		"its placement selects no ": string(example),
		"dbSize must be 1Gi or mor": plain + "  dbSize: 1000M\n",
		"walSize and walSlots say ": plain + "  walSlots: 2\n",
		"is matched by DriveGroup":  plain + b.driveGroup("more", "{all: true}"),
		"it selects no disk; close": spec.YAML() + b.driveGroup("disks", `{size: "20Gi:"}`),
		"placement selects no host": strings.Replace(plain, "h*", "none-*", 1),
		"osdsPerDevice must be fro": plain + "  osdsPerDevice: 17\n",
		"dm-crypt":                  plain + "  encrypted: true\n",
		"by dataDevices and by db":  strings.Replace(plain, "dbDevices: [{size: 4Gi}]", "dbDevices: [{all: true}]", 1),
		"is too small for the data": strings.Replace(plain, "dbSlots: 3", "dbSlots: 9", 1),
		"it has none for the datab": strings.Replace(plain, "dbDevices: [{size: 4Gi}]", "dbDevices: [{size: 3Gi}]", 1),
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
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 8) })
	if classes := b.ceph("osd", "crush", "class", "ls"); !strings.Contains(classes, `"cold"`) {
		t.Errorf("device classes: %s", classes)
	}
	b.haveDatabases(6)
	b.haveLogs(2)
	parts := b.partsOf(divided.ID())
	b.renamed(b.Lab.Host(2).Disk(2), divided, logs)
	c.goesOn(t)
	later := b.laterDisk(manifest)
	c.goesOn(t)
	manifest = b.groupReplaces(manifest, later)
	c.goesOn(t)
	b.partLeaves(manifest, parts, divided.ID())
	c.goesOn(t)
	b.applyNamed(strings.Replace(manifest, "osdsPerDevice: 2", fmt.Sprintf("osdsPerDevice: 2\n  exclude: [%q]", divided.ID()), 1))
	b.await("the disk that was divided to be empty", func() error { return b.deviceIs("h2", divided.ID(), api.DeviceAvailable) })
	b.await("the disk for logs to be empty", func() error { return b.deviceIs("h2", logs.ID(), api.DeviceAvailable) })
	c.goesOn(t)
	c.end(t)
	b.haveDatabases(7)
	b.noOrphans()
	if err := b.deviceIs("h1", small.ID(), api.DeviceAvailable); err != nil {
		t.Error(err)
	}
}

// dividing is the manifest of a group that divides a disk of h2.
const dividing = "---\napiVersion: holdfast.io/v1alpha1\nkind: DriveGroup\nmetadata: {name: divided}\nspec:\n  cluster: ceph\n  placement: {hosts: [h2]}\n" +
	"  walDevices: [{size: 1Gi}]\n  dataDevices: [{size: 12Gi}]\n  osdsPerDevice: 2\n"

// haveLogs checks that so many OSDs have their logs on another disk, as Ceph sees it.
func (b *bed) haveLogs(want int) {
	b.Helper()
	if got := strings.Count(b.ceph("osd", "metadata", "--format", "json-pretty"), `"bluefs_dedicated_wal": "1"`); got != want {
		b.Errorf("%d OSDs have logs of their own, not %d", got, want)
	}
}

// partsOf are the identities of the partitions of a disk of h2 that OSDs have their data on.
func (b *bed) partsOf(disk string) (parts []string) {
	b.Helper()
	g, err := read[api.DriveGroup](b, 1, "drivegroups", "divided")
	if err != nil || g.Status.Taken != 1 || len(g.Status.Devices) != 2 {
		b.Fatalf("%+v, %v", g.Status, err)
	}
	parts = b.partsOnHost(disk)
	for _, x := range g.Status.Devices {
		if !slices.Contains(parts, x.ID) {
			b.Errorf("the group has %s, and on the disk are %v", x.ID, parts)
		}
	}
	return parts
}

func (b *bed) partsOnHost(disk string) (parts []string) {
	b.Helper()
	h, err := read[api.Host](b, 1, "hosts", "h2")
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range h.Status.Devices {
		if d.Parent == disk {
			parts = append(parts, d.ID)
		}
	}
	return parts
}

// partLeaves takes one of the parts of a disk away: its OSD leaves, and the other one stays as it is.
func (b *bed) partLeaves(manifest string, parts []string, disk string) {
	stays := b.osdOn(parts[1])
	b.applyNamed(strings.Replace(manifest, "osdsPerDevice: 2", fmt.Sprintf("osdsPerDevice: 2\n  exclude: [%q]", parts[0]), 1))
	if err := b.health(3, 8); err != nil {
		b.Error(err)
	}
	if now := b.osdOn(parts[1]); now != stays {
		b.Errorf("%s was on the other part, and %s is", stays, now)
	}
	b.await("the part to be gone", func() error {
		if left := b.partsOnHost(disk); len(left) != 1 || left[0] != parts[1] {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}

// laterDisk puts a disk in that matches: it is reported, and made an OSD when it is named.
func (b *bed) laterDisk(manifest string) (id string) {
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
	b.applyPlanned(manifest + fmt.Sprintf("  take: [%q]\n", disk.ID()))
	if err := b.health(3, 9); err != nil {
		b.Error(err)
	}
	return disk.ID()
}

// groupReplaces pulls a disk and has the group take another one in its place, under the same number. It returns what is declared then.
func (b *bed) groupReplaces(manifest, later string) string {
	h := b.Lab.Host(3)
	old := h.Disk(0).ID()
	failed := b.osdOn(old)
	h.Disk(0).Pull(b)
	b.await("the OSD to be missed", func() error { return b.reason(" on " + h.Name + " is down") })
	h.Disk(0).Replace(b)
	id := h.Disk(0).ID()
	b.await("the new disk to be seen", func() error { return b.deviceIs(h.Name, id, api.DeviceAvailable) })
	manifest += fmt.Sprintf("  take: [%q, %q]\n  exclude: [%q]\n", later, id, old)
	b.applyNamed(manifest)
	if err := b.health(3, 9); err != nil {
		b.Error(err)
	}
	if now := b.osdOn(id); now != failed {
		b.Errorf("%s failed, and the OSD on the disk in its place is %s", failed, now)
	}
	return manifest
}

// haveDatabases checks that so many OSDs have their databases on another disk, as Ceph sees it.
func (b *bed) haveDatabases(want int) {
	b.Helper()
	if got := strings.Count(b.ceph("osd", "metadata", "--format", "json-pretty"), `"bluefs_dedicated_db": "1"`); got != want {
		b.Errorf("%d OSDs have databases of their own, not %d", got, want)
	}
}

// renamed switches a host off, and on again when its disks that are divided have other names: its OSDs find their parts.
func (b *bed) renamed(disks ...*hosts.Disk) {
	h := b.Lab.Host(2)
	h.PowerOff(b)
	var was []string
	for _, d := range disks {
		was = append(was, d.Path())
		d.Detach(b)
	}
	for i := range disks { // each gets the name of another one
		disks[len(disks)-1-i].Attach(b)
	}
	h.PowerOn(b)
	if disks[0].Path() == was[0] {
		b.Errorf("the disk is %s as before", was[0])
	}
	b.StartServer(b, 2)
	b.await("all OSDs to be up", func() error { return b.health(3, 8) })
}

// driveGroup is the manifest of a group of all hosts with one filter; more of its spec may follow.
func (b *bed) driveGroup(name, filter string) string {
	return fmt.Sprintf("---\napiVersion: holdfast.io/v1alpha1\nkind: DriveGroup\nmetadata: {name: %s}\nspec:\n  cluster: ceph\n  placement: {pattern: h*}\n"+
		"  deviceClass: cold\n  dbDevices: [{size: 4Gi}]\n  dbSlots: 3\n  dataDevices: [%s]\n", name, filter)
}

// plan shows the plan of a manifest.
func (b *bed) plan(manifest string, args ...string) (string, int) {
	b.Helper()
	file := b.Lab.Host(1).Dir() + "/plan.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		b.Fatal(err)
	}
	out, err := b.Holdfast(append([]string{"plan", "-f", file}, args...)...)
	if err != nil {
		return out + err.Error(), 1
	}
	return out, 0
}
