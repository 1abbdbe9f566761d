package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/vm"
)

const kernelClientYAML = "---\napiVersion: holdfast.io/v1alpha1\nkind: Client\nmetadata: {name: kernel}\nspec:\n  cluster: ceph\n" +
	"  caps: {mon: 'profile rbd, allow r', osd: 'profile rbd pool=images, allow rw tag cephfs data=home', mds: allow rw}\n" +
	"---\napiVersion: holdfast.io/v1alpha1\nkind: Filesystem\nmetadata: {name: home}\nspec: {cluster: ceph}\n"

// kernelScript maps an image by krbd and mounts the filesystem, and writes a half to each, and then the other. What it reads comes from
// Ceph, and not from memory: the filesystem is mounted anew for that.
const kernelScript = `
mount -t ceph "$(cat /mons):/" /mnt -o "name=kernel,secret=$(cat /key)"
echo "$(cat /mons) name=kernel,secret=$(cat /key) images disk -" >/sys/bus/rbd/add_single_major
dd if=/dev/urandom of=/tmp/data bs=1M count=16 2>/dev/null
dd if=/tmp/data of=/dev/rbd0 bs=1M conv=fsync 2>/dev/null
dd if=/tmp/data of=/mnt/file bs=1M conv=fsync 2>/dev/null
echo "wrote the first half"
dd if=/tmp/data of=/mnt/file bs=1M seek=16 conv=fsync,notrunc 2>/dev/null
umount /mnt
mount -t ceph "$(cat /mons):/" /mnt -o "name=kernel,secret=$(cat /key)"
dd if=/tmp/data of=/dev/rbd0 bs=1M seek=16 conv=fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches
cat /tmp/data /tmp/data | sha256sum | sed 's/^/written: /'
dd if=/dev/rbd0 bs=1M count=32 2>/dev/null | sha256sum | sed 's/^/read: /'
sha256sum /mnt/file | sed 's/^/read: /'
umount /mnt
echo 0 >/sys/bus/rbd/remove_single_major
`

// TestKernelClient has the kernel of another machine write to an image of a Pool and to a Filesystem, with the key of a Client, while an
// OSD is killed; what it wrote is what everybody reads.
func TestKernelClient(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	b.mustApply(home.SpecFor(b.Lab, 3, 2, 1).YAML() + poolYAML("images") + kernelClientYAML)
	b.holdfast(0, "ceph", "shell", "--", "rbd", "create", "--size", "32M", "images/disk")
	m := vm.Start(t, b.Lab, vm.Options{
		Kernel: kernelDir(t), Modules: []string{"rbd", "ceph"}, Script: kernelScript,
		Files: map[string][]byte{"key": []byte(b.key("kernel")), "mons": []byte(b.monAddresses())},
	})
	m.Await(t, "wrote the first half")
	b.daemonRestarts(t)
	out := m.Wait(t)
	sums := regexp.MustCompile(`(?m)^(?:written|read): ([0-9a-f]{64})`).FindAllStringSubmatch(out, -1)
	if len(sums) != 3 || sums[0][1] != sums[1][1] || sums[0][1] != sums[2][1] {
		t.Fatalf("the kernel reads something else than it wrote: %v", sums)
	}
	sum := b.holdfast(0, "ceph", "shell", "--", "bash", "-c", "rbd export --no-progress images/disk - | sha256sum")
	if !strings.HasPrefix(sum, sums[0][1]) {
		t.Errorf("librbd reads %s, and the kernel wrote %s", sum, sums[0][1])
	}
	b.holdfast(0, "delete", "client", "kernel")
	b.noOrphans()
}

// kernelDir is where hack/vm-kernel has put the kernel.
func kernelDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../.cache/vm")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// key is the key of a Client, as a person gets it for a program that takes no keyring file.
func (b *bed) key(client string) string {
	b.Helper()
	const dir = "/var/lib/kernel"
	b.holdfast(0, "ceph", "client-files", client, dir)
	text := b.Lab.Host(1).Run(b.T, b.Context(), "cat", fmt.Sprintf("%s/ceph.client.%s.keyring", dir, client))
	found := regexp.MustCompile(`key = (\S+)`).FindStringSubmatch(text)
	if found == nil {
		b.Fatalf("no key in the keyring of client %s", client)
	}
	return found[1]
}

// monAddresses are those that the kernel asks.
func (b *bed) monAddresses() string {
	var addresses []string
	for _, h := range b.Lab.Hosts() {
		addresses = append(addresses, h.IP+":6789")
	}
	return strings.Join(addresses, ",")
}
