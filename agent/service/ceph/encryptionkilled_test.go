package ceph

import (
	"os"
	"strconv"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/luks"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// TestOSD_encryptedKilled kills the agent at each step of encrypting, opening, closing and wiping a disk. It has the disk and the program that TestOSD_encrypted
// has in a virtual machine.
func TestOSD_encryptedKilled(t *testing.T) {
	path := os.Getenv(diskVariable)
	if err := luks.Available(); path == "" {
		t.Skipf("it is run in a virtual machine with dm-crypt (test/e2e TestEncryption). This machine: %v", err)
	}
	label, err := bluestore.ReadLabel(os.Getenv(labelVariable))
	if err != nil {
		t.Fatal(err)
	}
	n, _ := label.OSDID()
	place := func(t *testing.T) *service.Local {
		return secretOSD(t, path, strconv.Itoa(int(n)), label.ClusterFSID(), label.OSDUUID, 1)
	}
	if err := (OSD{}).DestroyLocalService(t.Context(), place(t)); err != nil { // what TestOSD_encrypted has left
		t.Fatal(err)
	}
	servicetest.Run(t, servicetest.Subject{
		Agents: Agents(), Type: "ceph-osd", Brief: true,
		New:  place,
		Look: func(t *testing.T, l *service.Local) { l.Devices = map[string]api.Device{deviceBlock: scan(t, path)} },
		Whole: func(t *testing.T, l *service.Local) {
			if have, err := bluestore.ReadLabel(ownerOf(l, deviceBlock).Path()); err != nil || have.OSDUUID != label.OSDUUID {
				t.Errorf("what is on the open device: %+v, %v", have, err)
			}
		},
		Gone: func(t *testing.T, l *service.Local) { free(t, path) },
	})
}
