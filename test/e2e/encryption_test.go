package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/vm"
)

// encryptionScript runs a test of the agent on the machine's disk. A program that writes the label of an OSD stands for ceph-osd.
const encryptionScript = `
mkdir -p /run /etc
export PATH=/bin LD_LIBRARY_PATH=/lib/x86_64-linux-gnu HOLDFAST_TEST_DISK=/dev/vda HOLDFAST_TEST_LABEL=/label
/encryption.test -test.run 'TestOSD_encrypted(Before|Killed)?$' -test.v
`

// dmCrypt are the modules for a disk that is encrypted.
var dmCrypt = []string{"virtio_blk", "dm_crypt", "xts", "algif_skcipher"}

const fakeOSD = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
  --osd-data) dir=$2 ;;
  --osd-uuid) uuid=$2 ;;
  esac
  shift
done
cat /label >"$dir/block"
echo "$uuid" >"$dir/fsid"
for name in whoami type ready; do echo made >"$dir/$name"; done
`

// TestEncryption has the agent's own code encrypt a disk, open it, close it, open it again and wipe it, and take over one that ceph-volume has encrypted, on a
// kernel that has dm-crypt; and kills it at each of these steps.
func TestEncryption(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 1})
	files, err := vm.Programs(t.Context(), "cryptsetup", "blkid")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "encryption.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags", "-s -w", "-o", program, "../../agent/service/ceph")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, file := range map[string]string{"encryption.test": program, "label": "../../internal/bluestore/testdata/label-16.2.15"} {
		if files[name], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	maps.Copy(files, map[string][]byte{"bin/ceph-osd": []byte(fakeOSD)})
	m := vm.Start(t, lab, vm.Options{
		Kernel: kernelDir(t), Modules: dmCrypt, Files: files, Disks: []int64{256 << 20}, Script: encryptionScript,
	})
	out := m.Wait(t)
	for _, test := range []string{"TestOSD_encrypted ", "TestOSD_encryptedBefore ", "TestOSD_encryptedKilled "} {
		if !strings.Contains(out, "--- PASS: "+test) {
			t.Errorf("%s did not pass: %s", test, out)
		}
	}
}
