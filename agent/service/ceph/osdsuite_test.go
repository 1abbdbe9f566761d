package ceph

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// osdSubject is an OSD on so many disks.
func osdSubject(n int, place func(t *testing.T, disks []string) *service.Local) servicetest.Subject {
	on := map[*service.Local][]string{}
	return servicetest.Subject{
		Type: "ceph-osd", Install: []string{"apt-get install ceph-osd"},
		New: func(t *testing.T) *service.Local {
			var disks []string
			for range n {
				disks = append(disks, loopDevice(t))
			}
			l := place(t, disks)
			on[l] = disks
			return l
		},
		Look:   func(t *testing.T, l *service.Local) { lookAt(t, l, on[l]...) },
		Varies: []string{"data/store/created_at"},
		Commands: func(*service.Local) []service.Command {
			return []service.Command{
				{Verb: monstore.VerbNewest},
				{Verb: monstore.VerbGive, Params: map[string]string{monstore.ParamMon: "mon-a", monstore.ParamToken: "token"}},
			}
		},
		Whole: func(t *testing.T, l *service.Local) {
			label, err := bluestore.ReadLabel(l.Devices[deviceBlock].Path)
			if err != nil || !label.MkfsDone() || label.OSDUUID != ours || !complete(filepath.Join(l.Data, directoryName)) {
				t.Errorf("label %+v, %v", label, err)
			}
		},
		Gone: func(t *testing.T, l *service.Local) { free(t, on[l]...) },
	}
}

// osdWithDB has its database on a part of another disk.
func osdWithDB() servicetest.Subject {
	return osdSubject(2, func(t *testing.T, disks []string) *service.Local {
		l := withDB(t, disks[0], disks[1], "7", ours)
		l.Parameters[paramClass] = "ssd"
		return l
	})
}

// made is an OSD that was made before and has lost something since. It is not wiped.
func made(n int, place func(t *testing.T, disks []string) *service.Local, lose func(t *testing.T, l *service.Local, disks []string)) servicetest.Subject {
	s := osdSubject(n, func(t *testing.T, disks []string) *service.Local {
		l := place(t, disks)
		if err := bring(t.Context(), t, l, disks...); err != nil {
			t.Fatal(err)
		}
		lose(t, l, disks)
		l.Daemon.Spec.OnRemoval = api.DeletionRetain
		return l
	})
	s.Brief, s.Gone = true, nil
	return s
}

// lostDirectory is one of which nothing is left but its disk.
func lostDirectory() servicetest.Subject {
	return made(1, func(t *testing.T, disks []string) *service.Local {
		l := osdOn(t, disks[0], "7", ours)
		l.Daemon.Spec.Devices = []api.DaemonDevice{{Name: deviceBlock, ID: l.Devices[deviceBlock].ID}}
		return l
	}, func(t *testing.T, l *service.Local, _ []string) {
		if err := os.RemoveAll(filepath.Join(l.Data, directoryName)); err != nil {
			t.Fatal(err)
		}
	})
}

// earlierDirectory is one in whose place an earlier OSD of its number has left a directory.
func earlierDirectory() servicetest.Subject {
	s := osdSubject(1, func(t *testing.T, disks []string) *service.Local {
		l := osdOn(t, disks[0], "7", ours)
		l.Daemon.Spec.Devices = []api.DaemonDevice{{Name: deviceBlock, ID: l.Devices[deviceBlock].ID}}
		dir := filepath.Join(l.Data, directoryName)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "fsid"), []byte(other+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return l
	})
	s.Brief = true
	return s
}

// hiddenPart is one whose database the kernel does not show any more, as after a boot of one that knows no such tables.
func hiddenPart() servicetest.Subject {
	return made(2, func(t *testing.T, disks []string) *service.Local { return withDB(t, disks[0], disks[1], "7", ours) },
		func(t *testing.T, _ *service.Local, disks []string) {
			if out, err := exec.Command("partx", "--delete", disks[1]).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
}
