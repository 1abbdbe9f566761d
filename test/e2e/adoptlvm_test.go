package e2e

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/vm"
)

//go:embed cephvolume.sh
var cephVolumeScript string

// lvmHost is the host whose OSDs ceph-volume has made.
const lvmHost = "v1"

// lvmOSDs are the OSDs that ceph-volume makes, by number.
var lvmOSDs = []int{3, 4}

// TestAdoptLVM takes over a real cluster that was made by hand, with a host, a virtual machine, on which ceph-volume has made the OSDs: on logical volumes,
// and one encrypted, with its database on another disk. A pool lies on these alone. They are handed over; they come back when the machine lost its power, and nobody
// but the agent activates the volumes; and one leaves with all that ceph-volume has made for it.
func TestAdoptLVM(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	handMade(t, lab)
	b := &bed{t, home.Start(t, lab, binary)}
	m := b.cephVolumeMachine()
	m.Await(t, "the first OSD is made") // a machine with much to do takes minutes for both
	m.Await(t, "the OSDs are made")
	b.AwaitHosts(b, 4)
	b.await("a pool on the machine's OSDs", b.lvmPool)
	written := b.lvmObjects()
	same := func(when string) {
		t.Helper()
		if read := b.lvmSums(); read != written {
			t.Fatalf("%s the objects are others:\n%s\n%s", when, written, read)
		}
	}

	first := b.osdsUp(nil)
	told := b.adopt(true)
	for _, want := range []string{"LVM on serial-disk-disk0", "LVM on serial-disk-disk1, encrypted", "db: ", "LVM on serial-disk-disk2, encrypted"} {
		if !strings.Contains(told, want) {
			t.Errorf("it does not tell of %q:\n%s", want, told)
		}
	}
	b.await("the cluster to be online", b.watchedOnline)
	if now := b.osdsUp(nil); !maps.Equal(now, first) {
		t.Fatalf("adopting restarted OSDs: they came up in maps %v, and were in %v", now, first)
	}
	b.run("ceph", "adopt", "ceph", "--hand-over", "--approve", b.code(b.run("ceph", "adopt", "ceph", "--hand-over")))
	b.await("all to be Holdfast's", func() error { return b.health(3, 5) })
	handed := b.osdsUp(first)
	same("handed over,")

	m.PowerOff()
	m.PowerOn(t)
	b.osdsUp(handed)
	b.await("Ceph to be well", func() error { return b.health(3, 5) })
	same("after a boot")

	b.lvmLeaves()
	same("with one OSD less,")
}

// cephVolumePackages and cephVolumeFiles are what ceph-volume and Ceph's command line consist of.
var (
	cephVolumePackages = []string{"python3-rados", "python3-ceph-argparse", "python3-ceph-common", "python3-pkg-resources", "python3-yaml", "python3-prettytable", "python3-wcwidth", "ceph-common", "ceph-osd"}
	cephVolumeFiles    = regexp.MustCompile(`^/usr/(lib/python3|bin/python3|bin/ceph$|sbin/ceph-volume$)`)
)

// lvmConf is for a machine without udev.
const lvmConf = "activation { udev_sync = 0\n udev_rules = 0 }\ndevices { obtain_device_list_from_udev = 0 }\n"

// cephVolumeMachine boots a machine that makes two OSDs by ceph-volume, with a key that the cluster knows, and joins.
func (b *bed) cephVolumeMachine() *vm.VM {
	b.Helper()
	files := b.cephVolumeFiles()
	conf, err := os.ReadFile(b.Lab.Host(1).Path("/etc/ceph/ceph.conf"))
	if err != nil {
		b.Fatal(err)
	}
	conf = regexp.MustCompile(`(?m)^crush location = .*\n`).ReplaceAll(conf, nil) // that is the place of h1
	b.await("the key for new OSDs", func() error {
		return b.byHand("ceph auth get-or-create client.bootstrap-osd mon 'allow profile bootstrap-osd' >/var/bootstrap.keyring")
	})
	key, err := os.ReadFile(b.Lab.Host(1).Path("/var/bootstrap.keyring"))
	if err != nil {
		b.Fatal(err)
	}
	files["etc/ceph/ceph.conf"], files["etc/ceph/bootstrap.keyring"], files["token"] = conf, key, []byte(b.Token(b, "agent"))
	return vm.Start(b, b.Lab, vm.Options{
		Kernel: kernelDir(b.T), Modules: dmCrypt, Files: files, Memory: 3000, Processors: 2,
		Disks: []int64{6 << 30, 6 << 30, 2 << 30, 256 << 20}, Script: cephVolumeScript,
	})
}

// cephVolumeFiles are the programs of the machine, and what they read.
func (b *bed) cephVolumeFiles() map[string][]byte {
	b.Helper()
	plugins, err := filepath.Glob("/usr/lib/x86_64-linux-gnu/ceph/*/*.so") // what ceph-osd opens when it starts
	if err != nil {
		b.Fatal(err)
	}
	files, err := vm.Programs(b.Context(), append(plugins, "ceph-osd", "ceph-bluestore-tool", "ceph-authtool", "cryptsetup", "lvm", "dmsetup", "lsblk", "blkid", "udevadm", "findmnt", "wipefs",
		"mke2fs", b.Binary)...)
	if err != nil {
		b.Fatal(err)
	}
	python, err := os.Readlink("/usr/bin/python3")
	if err != nil {
		b.Fatal(err)
	}
	more, err := vm.Packages(b.Context(), cephVolumeFiles, append(cephVolumePackages, python+"-minimal", "lib"+python+"-minimal", "lib"+python+"-stdlib")...)
	if err != nil {
		b.Fatal(err)
	}
	maps.Copy(files, more)
	files["etc/machine"] = fmt.Appendf(nil, "HOLDFAST=%s\nPYTHON=%s\n", b.Binary, python)
	files["etc/lvm/lvm.conf"] = []byte(lvmConf)
	files["etc/passwd"] = []byte("root:x:0:0::/:/bin/sh\nceph:x:64045:64045::/var/lib/ceph:/bin/false\n")
	files["etc/group"] = []byte("root:x:0:\ndisk:x:6:\nceph:x:64045:\n")
	return files
}

// lvmPool makes a pool that lies on the machine's OSDs alone, each of which has all of it.
func (b *bed) lvmPool() error {
	return b.byHand("ceph osd crush rule create-replicated lvm " + lvmHost + " osd >&2 && ceph osd pool create lvm 8 8 replicated lvm >&2 && " +
		"ceph osd pool set lvm size 2 >&2 && ceph osd pool set lvm min_size 1 >&2 && ceph osd pool application enable lvm test >&2")
}

// lvmObjects writes objects, and returns their checksums.
func (b *bed) lvmObjects() string {
	b.Helper()
	b.await("objects to be written", func() error {
		return b.byHand("for i in 1 2 3 4 5 6 7 8; do head -c 500000 /dev/urandom >/var/object && rados -p lvm put object$i /var/object; done")
	})
	return b.lvmSums()
}

// lvmSums reads the objects.
func (b *bed) lvmSums() (sums string) {
	b.Helper()
	b.await("the objects to be read", func() (err error) {
		sums, err = b.Lab.Host(1).Try(b.Context(), "timeout", "20", "bash", "-c",
			"set -e; for i in 1 2 3 4 5 6 7 8; do rm -f /var/object; rados -p lvm get object$i /var/object; sha256sum </var/object; done")
		return err
	})
	if strings.Count(sums, "\n") < 7 {
		b.Fatalf("not eight objects: %q", sums)
	}
	return sums
}

// osdsUp waits until the machine's OSDs are up, and came up after some maps of Ceph's, and returns the maps in which they did.
func (b *bed) osdsUp(after map[int]int) map[int]int {
	b.Helper()
	up := map[int]int{}
	b.awaitFor(vm.Limit, "the machine's OSDs to be up", func() error {
		var dump struct {
			OSDs []struct {
				OSD, Up int
				UpFrom  int `json:"up_from"`
			}
		}
		out, err := b.Lab.Host(1).Try(b.Context(), "timeout", "20", "ceph", "osd", "dump", "-f", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &dump)
		}
		if err != nil {
			return err
		}
		clear(up)
		for _, o := range dump.OSDs {
			if slices.Contains(lvmOSDs, o.OSD) && o.Up == 1 && o.UpFrom > after[o.OSD] {
				up[o.OSD] = o.UpFrom
			}
		}
		if len(up) < len(lvmOSDs) {
			return fmt.Errorf("not up after maps %v: %+v", after, dump.OSDs)
		}
		return nil
	})
	return up
}

// lvmLeaves takes the OSD with its database on another disk from the cluster, with its data: what ceph-volume made for it goes from both disks, and nothing
// from the one of the other OSD.
func (b *bed) lvmLeaves() {
	b.Helper()
	if err := b.byHand("ceph osd pool set lvm crush_rule replicated_rule >&2"); err != nil {
		b.Fatal(err)
	}
	b.Lab.Host(1).Run(b, b.Context(), kubectl, "--kubeconfig", "/var/lib/holdfast/admin.kubeconfig", "patch", "storagecluster", "ceph",
		"--type", "merge", "-p", `{"spec":{"deletionPolicy":"Wipe"}}`)
	b.await("the pool to be clean", func() error { return b.health(3, 5) })
	node, err := read[api.StorageNode](b, 1, "storagenodes", "ceph-"+lvmHost)
	if err != nil {
		b.Fatal(err)
	}
	node.Spec.Devices = slices.DeleteFunc(node.Spec.Devices, func(id string) bool { return b.osdOn(id) == "ceph-osd-4" })
	spec, err := json.Marshal(node.Spec)
	if err != nil {
		b.Fatal(err)
	}
	b.applyNamed(fmt.Sprintf("apiVersion: holdfast.io/v1alpha1\nkind: StorageNode\nmetadata: {name: %s}\nspec: %s\n", node.Name, spec))
	for _, disk := range []string{"serial-disk-disk1", "serial-disk-disk2"} {
		b.await("the disk "+disk+" to be free", func() error { return b.deviceIs(lvmHost, disk, api.DeviceAvailable) })
	}
	if err := b.deviceIs(lvmHost, "serial-disk-disk0", api.DeviceAvailable); err == nil {
		b.Error("the disk of the other OSD is free, too")
	}
	b.await("Ceph to be well", func() error { return b.health(3, 4) })
}
