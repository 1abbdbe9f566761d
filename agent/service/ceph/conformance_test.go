package ceph

import (
	"os"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

// TestConformance has each of Ceph's service agents pass the suite, and kills it at each place in the code that lasts.
func TestConformance(t *testing.T) {
	code := servicetest.Places(t, ".", "partition.Ensure", "partition.Show", "partition.Remove", "luks.Format", "luks.Open", "luks.Close", "luks.Erase", "luks.Claim",
		"v.Remove", "v.Activate")
	parts, passes := servicetest.Places(t, "../partition"), servicetest.Places(t, "../gate")
	subjects := map[string]servicetest.Subject{
		"mon": monSubject(), "lost mon": lostMon(), "mon alone": aloneMon(), "mon with its store put back": backMon(), "mon taken over": takenMon(true), "mon taken over that has ended": takenMon(false),
		"osd": osdWithDB(), "osd without its directory": lostDirectory(), "osd whose database is not shown": hiddenPart(),
		"osd with an earlier directory": earlierDirectory(), "mds": mdsSubject(),
		"mgr": mgrSubject(), "rgw": rgwSubject(), "rbd-mirror": mirrorSubject(),
	}
	for name, s := range subjects {
		s.Agents, s.Code, s.Secrets = Agents(), []*failpoint.Points{code, parts, passes}, append(s.Secrets, key)
		t.Run(name, func(t *testing.T) { servicetest.Run(t, s) })
	}
	servicetest.Swept(t, code, elsewhere)
	servicetest.Swept(t, parts, map[string]string{
		"partition.go show":  "a removal that was killed shows a partition again, and is not killed a second time",
		"forget.go forget":   "the action device.wipe calls it, which is carried out whole each time: package deviceaction",
		"partition.go partx": "a partition that the kernel shows where another table had it: TestEnsure_life",
	})
	servicetest.Swept(t, passes, map[string]string{
		"gate.go Forget": forgotten, "gate.go Forget Remove": forgotten,
		"gate.go clearBegun": halfMade, "gate.go Undo Done": halfMade, "gate.go clearBegun Clear": halfMade,
	})
}

const (
	noCrypt     = "there is no dm-crypt on the machines of these tests: TestOSD_encryptedKilled in a virtual machine (test/e2e TestEncryption)"
	noCryptPart = "there is no dm-crypt on the machines of these tests; in the virtual machine nobody is killed over encrypted databases or those of somebody else (TestOSD_encryptedBefore)"
	forgotten   = "of a device that its Daemon names no more: package gate, TestForget"
	halfMade    = "what was begun has no signature for a moment only, and nobody is killed in that twice: package gate, TestUndo"
	foreigner   = "needs units that somebody has enabled on this machine: TestEndUnits and test/e2e TestAdopt, in which nobody is killed"
)

// elsewhere are the places at which nobody is killed here, and why.
var elsewhere = map[string]string{
	"encryption.go finish Format": noCrypt, "encryption.go unlock encrypt": noCrypt, "encryption.go encrypt Format": noCrypt, "encryption.go unlock finish": noCrypt, "encryption.go unlock Open": noCrypt,
	"encryption.go CloseDevices Close": noCrypt, "encryption.go wipeEncrypted Close": noCrypt, "encryption.go wipeEncrypted Erase": noCrypt,
	"encryption.go wipeEncrypted Wipe": noCrypt, "osd.go configureOSD unlock": noCrypt, "osd.go wipeBlock wipeEncrypted": noCrypt,
	"slot.go unlock": noCryptPart, "slot.go wipeEncrypted": noCryptPart, "slot.go madeBefore": noCryptPart, "takeoverosd.go": noCryptPart, "osd.go takeOverOSD": noCryptPart,
	"found.go":         "there are no logical volumes on the machines of these tests: test/e2e TestAdoptLVM in a virtual machine, in which nobody is killed",
	"bootunits.go":     foreigner,
	"recoverosds.go":   "needs maps that an OSD of a cluster has: test/e2e TestRecoverMons, in which nobody is killed",
	"maps.go giveMaps": "the goroutine that it starts is killed at its own places", "maps.go give": "the goroutine that it starts is killed at its own places",
	"takeover.go disable": foreigner, "takeover.go stop": foreigner,
	"osd.go ConfigureLocalService Done": "what the next agent does where one was killed is not killed a second time",
	"osd.go DestroyLocalService Undo":   halfMade,
	"recover.go Remove":                 "what was read of a store that has been in a quorum: it is read anew", "rgwusers.go writeUser": "of a user that stays with its buckets, as of one that is set",
}

// mgrSubject is a manager that is taken over and does not run any more: the others keep nothing at all.
func mgrSubject() servicetest.Subject {
	return servicetest.Subject{
		Type: "ceph-mgr", Install: []string{"apt-get install ceph-mgr"},
		New: func(t *testing.T) *service.Local {
			return local(t, "ceph-mgr", "a", map[string]string{api.ParameterForeign: "x"})
		},
	}
}

// mdsSubject answers by its socket as Ceph 16 does; a real one needs a cluster (test/e2e TestFilesystem).
func mdsSubject() servicetest.Subject {
	return servicetest.Subject{
		Type: "ceph-mds", Install: []string{"apt-get install ceph-mds"},
		New:   func(t *testing.T) *service.Local { return local(t, "ceph-mds", "a", nil) },
		Serve: func(t *testing.T, l *service.Local) { l.Run = answering(t, sessions).Run },
	}
}

// replaceDirs gives a daemon of another test the directories that an agent makes.
func replaceDirs(t *testing.T, l *service.Local) *service.Local {
	t.Helper()
	dirs := servicetest.Dirs(t)
	if err := os.CopyFS(dirs.Data, os.DirFS(l.Data)); err != nil {
		t.Fatal(err)
	}
	l.Data, l.Run, l.Log = dirs.Data, dirs.Run, dirs.Log
	return l
}
