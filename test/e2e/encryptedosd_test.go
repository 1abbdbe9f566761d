package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/vm"
)

// sealedDisk is the disk of the machine that is to be encrypted, and sealedHost the machine's name.
const (
	sealedDisk = "serial-disk-disk0"
	sealedHost = "v1"
)

// agentScript runs the agent of a host, which keeps its state on its second disk. The token is for its first start alone.
const agentScript = `
mkdir -p /run /etc /var
/bin/blkid /dev/vdb >/dev/null || /bin/mke2fs -q -t ext4 /dev/vdb
mount -t ext4 /dev/vdb /var
mkdir -p /var/lib /var/log
hostname ` + sealedHost + `
tail -F -n 40 /var/lib/holdfast/agent/daemons/default.ceph-osd-0/log/daemon.log 2>/dev/null &
if [ -e /var/joined ]; then
  exec %[1]s agent </dev/null
fi
touch /var/joined
exec %[1]s agent --join - </token
`

const encryptedYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: DriveGroup\nmetadata: {name: sealed}\nspec:\n  cluster: ceph\n  encrypted: true\n" +
	"  placement: {hosts: [" + sealedHost + "]}\n  dataDevices: [{size: '1Gi:'}]\n"

// TestEncryptedOSD has a host whose kernel has dm-crypt, a virtual machine, run the only OSD of a cluster on a disk that is encrypted: nothing is on the
// disk in clear; when the machine lost its power and comes back, the OSD is opened with the key in its Secret and has what a client wrote; and with
// the cluster goes what is left of the key.
func TestEncryptedOSD(t *testing.T) {
	begin(t)
	b := newBed(t, 1, 0)
	m := b.sealedMachine()
	b.AwaitHosts(b, 2)
	b.await("the disk to be seen", func() error { return b.deviceIs(sealedHost, sealedDisk, api.DeviceAvailable) })
	spec := home.SpecFor(b.Lab, 1, 1, 0)
	onFirst := "{count: 1, hostSelector: {matchLabels: {kubernetes.io/hostname: h1}}}"
	manifest := strings.ReplaceAll(spec.YAML(), "{count: 1}", onFirst) + encryptedYAML
	b.Apply(b, manifest)
	b.await("the disk to be encrypted", func() error { return holds(m.Disk(0), luksHeader) })
	var made sealedOSD
	b.await("the OSD to be up", func() (err error) { made, err = b.sealedOSD(0); return err })
	b.await("Ceph to be well", func() error { return b.health(1, 1) })

	const text = "an object that nobody reads on the disk. "
	b.writesObject(strings.Repeat(text, 1<<15))
	m.PowerOff()
	if err := holds(m.Disk(0), luksHeader, "osd="+made.UUID+" data"); err != nil {
		t.Error(err)
	}
	if err := lacks(m.Disk(0), text, "bluestore block device"); err != nil {
		t.Error(err)
	}
	m.PowerOn(t)
	b.await("the OSD to be up again", func() error {
		again, err := b.sealedOSD(made.UpFrom)
		if err == nil && again.UUID != made.UUID {
			err = fmt.Errorf("it is another one: %+v, and was %+v", again, made)
		}
		return err
	})
	if got := b.readsObject(); got != strings.Repeat(text, 1<<15) {
		t.Errorf("the object has %d bytes, and other ones than were written", len(got))
	}

	b.Wipe(b, manifest)
	b.await("the disk to be free", func() error { return b.deviceIs(sealedHost, sealedDisk, api.DeviceAvailable) })
	if err := lacks(m.Disk(0), luksHeader, luksSecond); err != nil {
		t.Error(err)
	}
}

// sealedMachine boots a machine with Ceph's OSD and the agent, which joins.
func (b *bed) sealedMachine() *vm.VM {
	b.Helper()
	plugins, err := filepath.Glob("/usr/lib/x86_64-linux-gnu/ceph/*/*.so") // what ceph-osd opens when it starts
	if err != nil {
		b.Fatal(err)
	}
	files, err := vm.Programs(b.Context(), append(plugins, "ceph-osd", "cryptsetup", "blkid", "mke2fs", b.Binary)...)
	if err != nil {
		b.Fatal(err)
	}
	files["token"] = []byte(b.Token(b, "agent"))
	return vm.Start(b, b.Lab, vm.Options{
		Kernel: kernelDir(b.T), Modules: dmCrypt, Files: files, Memory: 1400, Disks: []int64{2 << 30, 256 << 20}, Script: fmt.Sprintf(agentScript, b.Binary),
	})
}

// sealedOSD is an OSD in Ceph's map.
type sealedOSD struct {
	UUID   string
	Up, In int
	UpFrom int `json:"up_from"` // the map in which it came up last
}

// sealedOSD is the OSD of the cluster, if it is in, and came up after a map.
func (b *bed) sealedOSD(after int) (o sealedOSD, err error) {
	var dump struct{ OSDs []sealedOSD }
	out, err := b.Holdfast("ceph", "shell", "--", "ceph", "osd", "dump", "-f", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &dump)
	}
	if err != nil {
		return o, err
	}
	if len(dump.OSDs) != 1 || dump.OSDs[0].Up != 1 || dump.OSDs[0].In != 1 || dump.OSDs[0].UpFrom <= after {
		return o, fmt.Errorf("not up and in after map %d: %+v; of its daemon: %+v", after, dump.OSDs, b.daemon("ceph-osd-0").Status)
	}
	return dump.OSDs[0], nil
}

const objectFile = "/var/lib/object"

func (b *bed) writesObject(text string) {
	b.Helper()
	b.ceph("osd", "pool", "create", "sealed", "8")
	if err := os.WriteFile(b.Lab.Host(1).Path(objectFile), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.run("ceph", "shell", "--", "rados", "-p", "sealed", "put", "object", objectFile)
}

func (b *bed) readsObject() string {
	b.Helper()
	b.run("ceph", "shell", "--", "rados", "-p", "sealed", "get", "object", objectFile+".read")
	text, err := os.ReadFile(b.Lab.Host(1).Path(objectFile + ".read"))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// The beginnings of the two headers of LUKS 2.
const (
	luksHeader = "LUKS\xba\xbe\x00\x02"
	luksSecond = "SKUL\xba\xbe\x00\x02"
)

// holds checks that all of some texts are on a disk.
func holds(disk string, texts ...string) error {
	return eachOn(disk, texts, func(text string, found bool) error {
		if !found {
			return fmt.Errorf("%q is not on the disk", text)
		}
		return nil
	})
}

// lacks checks that none of some texts is on a disk.
func lacks(disk string, texts ...string) error {
	return eachOn(disk, texts, func(text string, found bool) error {
		if found {
			return fmt.Errorf("%q is on the disk", text)
		}
		return nil
	})
}

func eachOn(disk string, texts []string, check func(text string, found bool) error) error {
	found, err := search(disk, texts)
	for _, text := range texts {
		err = errors.Join(err, check(text, found[text]))
	}
	return err
}

// search reads a disk, and says which texts, of less than a page, are on it.
func search(disk string, texts []string) (map[string]bool, error) {
	f, err := os.Open(disk)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const page, chunk = 4 << 10, 4 << 20
	found, b := map[string]bool{}, make([]byte, page+chunk)
	for {
		n, err := io.ReadFull(f, b[page:])
		for _, text := range texts {
			found[text] = found[text] || bytes.Contains(b[:page+n], []byte(text))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		copy(b, b[chunk:])
	}
}
