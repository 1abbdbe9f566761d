package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

//go:embed byhand.sh
var sequences []byte

// byHand has the sequences done. Holdfast leaves an OSD alone that it did not make.
func (b *bench) byHand(t hosts.T) (removed, replaced time.Duration) {
	disk := b.last.Disk(disks - 1)
	id := strings.TrimSpace(b.shell(t, b.script(), "add", disk.Path(), b.dir))
	b.shell(t, "bash", "-c", fmt.Sprintf("kill -9 $(<%s/pid)", b.dir))
	disk.Pull(t)
	disk.Replace(t)
	replaced = timed(func() { b.shell(t, b.script(), "replace", id, disk.Path(), b.dir) })
	removed = timed(func() { b.shell(t, b.script(), "remove", id, disk.Path(), b.dir) })
	return removed, replaced
}

// byHoldfast has Holdfast do the same with the disk beside it. What a person takes to approve of a plan does not count.
func (b *bench) byHoldfast(t hosts.T) (removed, replaced time.Duration) {
	disk := b.last.Disk(disks - 2)
	others := slices.Clone(b.spec.Devices[b.last.Name][:disks-2])
	declare := func(devices ...string) string {
		b.spec.Devices[b.last.Name] = slices.Concat(others, devices)
		return b.spec.YAML()
	}
	failed := disk.ID()
	pid := b.osdOn(t, failed).Status.PID
	disk.Pull(t)
	b.shell(t, "kill", "-9", fmt.Sprint(pid)) // without anything to write it would not notice for a while
	b.await(t, "the failure to be known", func(s *api.StorageStatus) bool { return s.Status.Ceph.OSDsUp < s.Status.Ceph.OSDs })
	disk.Replace(t)
	b.awaitDevice(t, disk.ID())
	replaced = b.carryOut(t, b.PlanNamed(t, declare(disk.ID())))
	if failed == disk.ID() {
		t.Fatalf("the disk that was put in is the one that failed: %s", failed)
	}
	removed = b.carryOut(t, b.PlanNamed(t, declare()))
	removed += timed(func() { b.awaitDevice(t, disk.ID()) })
	b.Apply(t, declare(disk.ID()), "--wait")
	return removed, replaced
}

// carryOut has a plan carried out that was approved of.
func (b *bench) carryOut(t hosts.T, plan string) time.Duration {
	return timed(func() {
		if out, err := b.Holdfast("apply", "--plan", plan, "--wait", "--timeout", limit.String()); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	})
}

// osdOn is the Daemon of the OSD on a device.
func (b *bench) osdOn(t hosts.T, device string) *api.Daemon {
	t.Helper()
	out, err := b.Holdfast("get", "daemons", "-o", "json")
	var list api.DaemonList
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	i := slices.IndexFunc(list.Items, func(d api.Daemon) bool {
		return slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.ID == device })
	})
	if err != nil || i < 0 {
		t.Fatalf("no OSD is on %s: %v", device, err)
	}
	return &list.Items[i]
}

func (b *bench) await(t hosts.T, what string, is func(*api.StorageStatus) bool) {
	t.Helper()
	home.Await(t, what, func() error {
		out, err := b.Holdfast("get", "storagestatuses", "ceph", "-o", "json")
		if err != nil {
			return err
		}
		var s api.StorageStatus
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return err
		}
		if s.Status.Ceph == nil || !is(&s) {
			return fmt.Errorf("%+v", s.Status)
		}
		return nil
	})
}

// awaitDevice waits until a device of the last host can be used for something new.
func (b *bench) awaitDevice(t hosts.T, id string) {
	t.Helper()
	home.Await(t, "the disk to be free", func() error {
		out, err := b.Holdfast("get", "hosts", b.last.Name, "-o", "json")
		if err != nil {
			return err
		}
		var h api.Host
		if err := json.Unmarshal([]byte(out), &h); err != nil {
			return err
		}
		if !slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id && d.Availability == api.DeviceAvailable }) {
			return fmt.Errorf("%+v", h.Status.Devices)
		}
		return nil
	})
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}
