package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/heir"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Glusterd runs the management daemon of a StorageNode, which starts the processes that serve data.
type Glusterd struct{}

var (
	_ service.ServiceAgent = Glusterd{}
	_ service.Versioner    = Glusterd{}
	_ service.Reporter     = Glusterd{}
	_ service.Performer    = Glusterd{}
	_ service.DeviceKeeper = Glusterd{}
	_ service.DeviceWarden = Glusterd{}
	_ service.Inheritor    = Glusterd{}
	_ service.Forker       = Glusterd{}
	_ service.Starter      = Glusterd{}
	_ service.Confined     = Glusterd{}
)

// Foreign says whether an earlier glusterd of another pool, or one that this pool has let go, left the directory.
func (Glusterd) Foreign(l *service.Local) (bool, error) {
	return heir.Foreign(l, l.Parameters[glusterd.ParamPool])
}

// Agents returns the service agents of GlusterFS.
func Agents() []service.ServiceAgent { return []service.ServiceAgent{Glusterd{}} }

// Name is glusterd.
func (Glusterd) Name() string { return glusterd.Type }

// Needs is what bricks need: trusted attributes of files and mounts, which the kernel gives to
// CAP_SYS_ADMIN, the devices below their file systems, and their directories. What glusterd mounts
// by itself after a boot the agent has to see, or it could not unmount it later.
func (Glusterd) Needs(l *service.Local) runtime.Needs {
	needs := runtime.Needs{Privileged: true, Devices: true, Directories: []runtime.Directory{
		{Path: filepath.Dir(l.Data), Mounts: runtime.MountsBoth},
		{Path: "/run/gluster", Make: true},
		{Path: "/var/log/glusterfs", Make: true},
	}}
	for _, dir := range directories(l) {
		needs.Directories = append(needs.Directories, runtime.Directory{Path: dir, Mounts: runtime.MountsFromHost})
	}
	return needs
}

// Initialize checks that GlusterFS and the programs for XFS are there.
func (Glusterd) Initialize(context.Context, *service.Host) error {
	return errors.Join(tool.Require("glusterd", "glusterfs-server"), tool.Require("gluster", "glusterfs-server"),
		tool.Require("mkfs.xfs", "xfsprogs"), tool.Require("mount", "mount"))
}

// Version is the release of the installed glusterd.
func (Glusterd) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "glusterd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("while asking glusterd for its version: %w", err)
	}
	return parseVersion(string(out))
}

// parseVersion reads "glusterfs 10.3".
func parseVersion(text string) (string, error) {
	f := strings.Fields(text)
	if len(f) < 2 || f[0] != "glusterfs" {
		return "", fmt.Errorf("%.60q is no version of GlusterFS", text)
	}
	return f[1], nil
}

// What glusterd expects on a host wherever its own directories are: its processes make their sockets and logs there (10.3).
var sharedDirectories = []string{"/var/run/gluster", "/var/log/glusterfs", "/var/lib/glusterd"}

// groupsOfPackage are named sets of options ('volume set V group virt'), which glusterd reads in its working directory.
const groupsOfPackage = "/var/lib/glusterd/groups"

// ConfigureLocalService makes the working directory.
func (Glusterd) ConfigureLocalService(_ context.Context, l *service.Local) error {
	if l.Parameters[glusterd.ParamPool] == "" {
		return fmt.Errorf("glusterd %s has no parameter %s", l.Daemon.Spec.ID, glusterd.ParamPool)
	}
	for _, dir := range append([]string{groupsDir(l)}, sharedDirectories...) {
		if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("while making glusterd's directories: %w", err)
		}
	}
	if err := copyFiles(groupsOfPackage, groupsDir(l)); err != nil {
		return fmt.Errorf("while copying the groups of options of the package: %w", err)
	}
	return errors.Join(dropOption(filepath.Join(l.Data, "state"), l.Parameters[glusterd.ParamDrop]), showSocket(l))
}

// copyFiles brings the files of a directory to what they are in another one. No such directory is no error.
func copyFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if have, err := os.ReadFile(filepath.Join(to, e.Name())); err == nil && string(have) == string(text) {
			continue
		}
		if err := atomicfile.Write(filepath.Join(to, e.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Busy devices are unmounted and wiped again and again for so long: what has just been killed lets go of them a little later, and so does who has looked at
// them, or has a copy of all that is mounted (mount_namespaces(7)).
const (
	busyPause = 100 * time.Millisecond
	busyTries = 50
)

// DestroyLocalService unmounts the daemon's file systems, and wipes what belongs to it where its data goes with it.
func (Glusterd) DestroyLocalService(ctx context.Context, l *service.Local) error {
	if err := gate.Undo(ctx, l); err != nil {
		return err
	}
	table, err := readFstab(filepath.Join(l.Data, glusterd.FileFstab))
	if err != nil {
		return fmt.Errorf("while reading which file systems there are: %w", err)
	}
	var errs []error
	for _, line := range table.lines {
		errs = append(errs, releaseSoon(ctx, l, line))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(wipeDevices(ctx, l), leaveDirectories(l), hideSocket(l))
}

func releaseSoon(ctx context.Context, l *service.Local, line fstabLine) error {
	for try := 1; ; try++ {
		err := release(ctx, l, line)
		if err == nil || try == busyTries || !busy(line.dir) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(busyPause):
		}
	}
}

// busy says whether something is still mounted at a place.
func busy(dir string) bool {
	dev, err := mountedDevice(dir)
	return err == nil && dev != 0
}
