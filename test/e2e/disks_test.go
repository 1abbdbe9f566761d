package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestDisks takes disks from a Ceph cluster and replaces one that was pulled, by editing what is declared, while a client writes.
func TestDisks(t *testing.T) {
	begin(t)
	b := newStorageBed(t, 3, 2)
	wanted := home.SpecFor(b.Lab, 3, 2, 2)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	c := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 6) })
	b.numberKept(wanted)
	c.goesOn(t)
	b.diskTaken(&wanted)
	c.goesOn(t)
	b.diskPulled(&wanted)
	c.goesOn(t)
	b.disksRefused(wanted)
	c.goesOn(t)
	b.diskRenamed()
	c.goesOn(t)
	b.diskMoved(&wanted)
	c.goesOn(t)
	c.end(t)
	b.noOrphans()
}

// numberKept replaces a disk that works: its data moves, and Ceph keeps the number of its OSD for
// the next one on the host, here on the same disk.
func (b *bed) numberKept(wanted home.Spec) {
	h := b.Lab.Host(3)
	disk := h.Disk(1).ID()
	osd := b.osdOn(disk)
	wanted.Replace = map[string][]string{h.Name: {disk}}
	b.applyNamed(wanted.YAML())
	b.await("the disk to be free", func() error { return b.deviceIs(h.Name, disk, api.DeviceAvailable) })
	if out := b.ceph("osd", "tree"); !strings.Contains(out, "destroyed") {
		b.Errorf("Ceph keeps no number:\n%s", out)
	}
	wanted.Replace = nil
	b.mustApply(wanted.YAML())
	b.await("Ceph to be well", func() error { return b.health(3, 6) })
	if now := b.osdOn(disk); now != osd {
		b.Errorf("%s was on the disk, now %s is", osd, now)
	}
}

// diskTaken takes a disk that works from the last host: its data moves, and the disk is free again.
func (b *bed) diskTaken(wanted *home.Spec) {
	h := b.Lab.Host(3)
	disk := h.Disk(1).ID()
	wanted.Devices[h.Name] = wanted.Devices[h.Name][:1]
	b.applyNamed(wanted.YAML())
	if err := b.health(3, 5); err != nil {
		b.Error(err)
	}
	b.await("the disk to be free", func() error { return b.deviceIs(h.Name, disk, api.DeviceAvailable) })
}

// diskPulled pulls a disk while it is written to, and puts a new one in, which is declared in the place of the old one: the OSD on it has the
// number of the one that failed.
func (b *bed) diskPulled(wanted *home.Spec) {
	h := b.Lab.Host(2)
	failed := b.osdOn(h.Disk(0).ID())
	h.Disk(0).Pull(b)
	b.await("the OSD to be missed", func() error { return b.reason(" on " + h.Name + " is down") })
	h.Disk(0).Replace(b)
	id := h.Disk(0).ID()
	b.await("the new disk to be seen", func() error { return b.deviceIs(h.Name, id, api.DeviceAvailable) })
	wanted.Devices[h.Name] = []string{id, h.Disk(1).ID()}
	b.applyNamed(wanted.YAML())
	if err := b.health(3, 5); err != nil {
		b.Error(err)
	}
	if now := b.osdOn(id); now != failed {
		b.Errorf("%s failed, and the OSD on the disk in its place is %s", failed, now)
	}
}

// diskRenamed pulls a disk, puts a wrong one into its place, and then the right one again, which has another device name now: the OSD comes back as it
// was, and the wrong disk is not touched.
func (b *bed) diskRenamed() {
	h := b.Lab.Host(1)
	disk := h.Disk(1)
	osd, old := b.osdOn(disk.ID()), disk.Path()
	disk.Pull(b)
	b.await("the OSD to be missed", func() error { return b.reason(" on " + h.Name + " is down") })
	wrong := h.AddDisk(b, 10<<30)
	b.await("the wrong disk to be seen", func() error { return b.deviceIs(h.Name, wrong.ID(), api.DeviceAvailable) })
	b.await("it to be told that the right one is not there", func() error { return b.reason(" is missing on host " + h.Name + ": was it removed") })
	disk.Attach(b)
	b.await("the OSD to be back", func() error { return b.health(3, 5) })
	if now := b.osdOn(disk.ID()); now != osd || disk.Path() == old {
		b.Errorf("%s was on %s, and %s is on %s", osd, old, now, disk.Path())
	}
	if err := b.deviceIs(h.Name, wrong.ID(), api.DeviceAvailable); err != nil {
		b.Error(err)
	}
}

// diskMoved carries a disk to another host: what to do is told, and its OSD follows it there, with its number and its data.
func (b *bed) diskMoved(wanted *home.Spec) {
	from, to := b.Lab.Host(2), b.Lab.Host(3)
	disk := from.Disk(1)
	osd := b.osdOn(disk.ID())
	name := strings.Replace(strings.TrimPrefix(osd, "ceph-"), "-", ".", 1)
	disk.Pull(b)
	b.await("the OSD to be missed", func() error { return b.reason(" on " + from.Name + " is down") })
	disk.MoveTo(b, to)
	b.await("it to be told where the disk is", func() error {
		return b.reason("its disk is in host " + to.Name + " now, as " + disk.ID() + ": move it from the StorageNode of host")
	})
	if out := b.run("why", name); !strings.Contains(out, "its disk is in host "+to.Name+" now") {
		b.Errorf("holdfast why %s:\n%s", name, out)
	}
	wanted.Devices[from.Name] = wanted.Devices[from.Name][:1]
	wanted.Devices[to.Name] = append(wanted.Devices[to.Name], disk.ID())
	b.mustApply(wanted.YAML()) // the cluster's policy is Wipe, and nothing is destroyed
	b.await("Ceph to be well", func() error { return b.health(3, 5) })
	if now := b.osdOn(disk.ID()); now != osd || b.daemon(osd).Spec.Host != to.Name {
		b.Errorf("%s was on the disk, now %s is, on %s", osd, now, b.daemon(osd).Spec.Host)
	}
	if out := b.ceph("osd", "find", strings.TrimPrefix(name, "osd.")); !strings.Contains(out, `"host": "`+to.Name+`"`) {
		b.Errorf("CRUSH has it elsewhere:\n%s", out)
	}
}

// osdOn is the name of the daemon of the OSD on a device.
func (b *bed) osdOn(device string) string {
	b.Helper()
	for _, d := range b.daemons() {
		if slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.ID == device }) {
			return d.Name
		}
	}
	b.Fatalf("no OSD is on %s", device)
	return ""
}

// disksRefused takes all disks of a host, which Ceph needs for a third copy: nothing is done.
func (b *bed) disksRefused(wanted home.Spec) {
	all := wanted.Devices[b.Lab.Host(1).Name]
	wanted.Devices[b.Lab.Host(1).Name] = nil
	out, code := b.apply(1, wanted.YAML(), "--wait", "--timeout", "30s")
	if code != 3 || !strings.Contains(out, "keeps 3 copies, one per host, but 2 hosts would be left") {
		b.Errorf("holdfast apply ended with %d:\n%s", code, out)
	}
	wanted.Devices[b.Lab.Host(1).Name] = all
	b.mustApply(wanted.YAML())
	if err := b.health(3, 5); err != nil {
		b.Error(err)
	}
}

// applyNamed applies what destroys what is on a disk, as a person has to: it is refused until its plan is named.
func (b *bed) applyNamed(manifest string) {
	b.Helper()
	b.holdfast(0, "apply", "--plan", b.PlanNamed(b, manifest), "--wait", "--timeout", "100s")
}

// deviceIs checks what can be done with a device of a host.
func (b *bed) deviceIs(host, id string, want api.Availability) error {
	h, err := read[api.Host](b, 1, "hosts", host)
	if err != nil {
		return err
	}
	for _, d := range h.Status.Devices {
		if d.ID == id && d.Availability == want {
			return nil
		}
	}
	return fmt.Errorf("device %s of host %s is not %s: %+v", id, host, want, h.Status.Devices)
}

// reason checks that the cluster's status gives a reason with these words.
func (b *bed) reason(words string) error {
	s, err := read[api.StorageStatus](b, 1, "storagestatuses", "ceph")
	if err == nil && !strings.Contains(strings.Join(s.Status.Reasons, "\n"), words) {
		err = fmt.Errorf("%q is no reason why it is %s: %v", words, s.Status.Status, s.Status.Reasons)
	}
	return err
}
