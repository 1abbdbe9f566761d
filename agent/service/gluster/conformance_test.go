package gluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/servicetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

const again = "what the next agent does where one was killed is not killed a second time"

// TestConformance has the service agent pass the suite with the real glusterd and real file systems, and kills it at each place in the code that lasts.
func TestConformance(t *testing.T) {
	code := servicetest.Places(t, ".")
	defer func(was string) { packageSocket = was }(packageSocket)
	for name, s := range map[string]servicetest.Subject{
		"without a disk":                 plainSubject(),
		"with bricks in a directory":     bricksSubject(),
		"with a disk":                    diskSubject(api.DeletionWipe),
		"with a disk without bricks":     diskSubject(api.DeletionRetain),
		"a disk given up":                leavingSubject(api.DeletionWipe),
		"a disk without bricks given up": leavingSubject(api.DeletionRetain),
	} {
		s.Agents, s.Type, s.Code, s.Install = Agents(), glusterd.Type, []*failpoint.Points{code}, []string{"apt-get install glusterfs-server", "apt-get install xfsprogs"}
		t.Run(name, func(t *testing.T) { servicetest.Run(t, s) })
	}
	servicetest.Swept(t, code, map[string]string{
		"device.go release resumeWipe": again, "wipenote.go resumeWipe wipeSoon": again, "wipenote.go resumeWipe mount": again, "wipenote.go noteWipe dropNote": again,
		"device.go configureDevice Done": again, "device.go makeFilesystem mkfs": again, "glusterd.go DestroyLocalService Undo": "mkfs.xfs writes the superblock first",
		"directory.go leave removeLeft": again, "directory.go claimDirectories dropNote": again,
		"device.go unmount dropNote": "of a file system in use, which the next agent looks at anew: " +
			"TestConfigureDevices_givesUp, in which nobody is killed",
		"directory.go wipeDevices wipe": "a disk that is not mounted, as after a boot: it is wiped as one that is " +
			"unmounted before",
		"options.go": "what GlusterFS said of options is only reported, and the leader has " +
			"them set again: TestNoteRefusal",
		"report.go Report showSocket":     "the next report makes the link: TestReal_volume",
		"report.go Report reportRefusals": "as in options.go",
		"growth.go": "xfs_growfs is one change of the superblock, and is made again if it was " +
			"not: TestConfigureDevices_grows",
		"refused.go":                   "as in options.go",
		"others.go removeStale Remove": "in others.go BeforeStart",
		"others.go BeforeStart removeStale": "each file goes by itself, and the next start removes those that are left: " +
			"TestBeforeStart",
		"resolve.go runHeal": "a split-brain needs several hosts: test/e2e TestGlusterSplitBrain, in " +
			"which nobody is killed",
	})
}

// socketBeside has GlusterFS's programs look for glusterd beside the daemon's directories: this machine may have one in the usual place.
func socketBeside(l *service.Local) []string {
	return []string{filepath.Join(filepath.Dir(l.Data), "glusterd.socket")}
}

// plainSubject has no disk: nothing is mounted.
func plainSubject() servicetest.Subject {
	return servicetest.Subject{
		New: func(t *testing.T) *service.Local {
			l := newLocal(t, api.DeletionWipe)
			nodeOf(t, l)
			packageSocket = socketBeside(l)[0]
			volume := filepath.Join(l.Data, "state", "vols", "v")
			if err := errors.Join(os.MkdirAll(volume, 0o700), os.WriteFile(filepath.Join(volume, "info"), []byte("nfs.disable=on\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			l.Parameters[glusterd.ParamDrop] = "nfs.disable"
			return l
		},
		Varies:  []string{"data/" + glusterd.FileVolfile}, // it has the address
		Outside: socketBeside,
	}
}

// bricksSubject has bricks that it loses when it is removed, and the link of a glusterd that is gone.
func bricksSubject() servicetest.Subject {
	s := plainSubject()
	place := s.New
	s.Brief, s.New = true, func(t *testing.T) *service.Local {
		l := place(t)
		dir := bricksDirectory(t)
		brick(t, filepath.Join(dir, "v"))
		if err := os.Symlink("/nowhere", packageSocket); err != nil {
			t.Fatal(err)
		}
		l.Parameters[glusterd.ParamDirectories] = dir
		return l
	}
	s.Gone = func(t *testing.T, l *service.Local) {
		if dir := directories(l)[0]; exists(dir) {
			t.Errorf("%s is left", dir)
		}
	}
	return s
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// diskSubject has its bricks on a disk and in a directory, and serves.
func diskSubject(policy api.DeletionPolicy) servicetest.Subject {
	disks := map[*service.Local]string{}
	s := plainSubject()
	s.Mounts = true
	s.New = func(t *testing.T) *service.Local {
		l := newLocal(t, policy)
		nodeOf(t, l)
		packageSocket = socketBeside(l)[0]
		dir := bricksDirectory(t)
		l.Parameters[glusterd.ParamDirectories] = dir
		disks[l] = loopDevice(t)
		with(t, l, disks[l])
		if policy == api.DeletionRetain { // it was to be given up before, and is not any more
			dev := scan(t, disks[l])
			if err := noteWipe(wipeNote(l, uuidOf(l.Parameters[glusterd.ParamPool], dev.ID)), dev.Path, true); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	s.Varies = append(s.Varies, "data/"+glusterd.FileFstab) // it has the identity of the file system
	s.Look = func(t *testing.T, l *service.Local) {
		if len(l.Daemon.Spec.Devices) > 0 {
			with(t, l, disks[l])
		}
	}
	s.Brief = policy == api.DeletionRetain // what is on a disk that is not mounted yet stays then
	s.Serve, s.Commands = startNode, commands
	s.Whole = func(t *testing.T, l *service.Local) {
		for _, s := range stores(l) {
			if s.Problem != "" {
				t.Errorf("%s: %s", s.Name, s.Problem)
			}
		}
	}
	s.Gone = func(t *testing.T, l *service.Local) {
		if d := scan(t, disks[l]); d.Availability != api.DeviceAvailable {
			t.Errorf("the disk is not free: %v", d.Reasons)
		}
		if dir := directories(l)[0]; policy == api.DeletionWipe && exists(dir) {
			t.Errorf("%s is left", dir)
		}
	}
	return s
}

// startNode starts glusterd, which ends with the test.
func startNode(t *testing.T, l *service.Local) {
	n := &node{T: t, l: l, words: strings.NewReplacer("${DATA}", l.Data, "${RUN}", l.Run), log: filepath.Join(l.Log, "daemon.log")}
	t.Cleanup(n.end)
	brick(t, filepath.Join(directories(l)[0], "old"))
	n.start()
}

// commands are the life of a volume, and the end of a brick that belongs to none.
func commands(l *service.Local) []service.Command {
	n, force := &node{l: l}, glusterd.ParamForce
	return []service.Command{
		{Verb: glusterd.VerbCreate, Object: "v", Params: map[string]string{glusterd.ParamBricks: n.bricks("a", "b", "c"), glusterd.ParamReplica: "3", force: "true"}},
		{Verb: glusterd.VerbStart, Object: "v"},
		{Verb: glusterd.VerbSet, Object: "v", Params: map[string]string{"network.ping-timeout": "20", "cluster.shd-max-threads": "2"}},
		{Verb: glusterd.VerbReplace, Object: "v", Params: map[string]string{glusterd.ParamOld: n.bricks("a"), glusterd.ParamNew: n.bricks("d")}},
		{Verb: glusterd.VerbStop, Object: "v"},
		{Verb: glusterd.VerbDelete, Object: "v"},
		{
			Verb: glusterd.VerbDropBrick, Object: filepath.Join(l.Parameters[glusterd.ParamDirectories], "old"),
			Params: map[string]string{glusterd.ParamVolumeID: uuidText([]byte("0123456789abcdef"))},
		},
	}
}

// leavingSubject has a disk that was taken from it, and a directory.
func leavingSubject(policy api.DeletionPolicy) servicetest.Subject {
	s := diskSubject(policy)
	place := s.New
	s.New = func(t *testing.T) *service.Local {
		l := place(t)
		if err := (Glusterd{}).ConfigureLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		configure(t, l)
		if err := os.WriteFile(claimNote(l, "/taken"), []byte("/taken"), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Daemon.Spec.Devices, l.Devices = nil, map[string]api.Device{}
		return l
	}
	s.Brief, s.Whole = true, func(t *testing.T, l *service.Local) {
		if len(tableOf(t, l).lines) > 0 {
			t.Error("its file system is not given up")
		}
		if exists(claimNote(l, "/taken")) {
			t.Error("the directory that was taken is still noted")
		}
	}
	return s
}

// bricksDirectory has the same path each time: the daemon's notes are named after it, and what is compared has to be alike.
func bricksDirectory(t *testing.T) string {
	t.Helper()
	base := filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-conformance-%d", os.Getpid()))
	if err := errors.Join(os.RemoveAll(base), os.Mkdir(base, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) }) // what is left is seen by the next one
	return filepath.Join(base, "bricks")
}
