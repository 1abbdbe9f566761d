package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// setUp makes the namespaces of this process a host.
func (c initConfig) setUp() error {
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("while setting the host name: %w", err)
	}
	if err := c.mountAll(); err != nil {
		return err
	}
	if err := reservePorts(); err != nil {
		return err
	}
	return c.connect()
}

// reservePorts keeps the ports of Torus and of GlusterFS's bricks out of the range from which the
// kernel takes those of outgoing connections, as docs/reference/networks.md advises.
func reservePorts() error {
	const file = "/proc/sys/net/ipv4/ip_local_reserved_ports"
	if err := os.WriteFile(file, []byte("40000,49152-60999\n"), 0o644); err != nil {
		return fmt.Errorf("while reserving ports: %w", err)
	}
	return nil
}

// shared is a directory that was opened before anything could hide it.
type shared struct {
	path string
	dir  *os.File
}

func (c initConfig) mountAll() error {
	var visible []shared
	for _, path := range c.Share {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("while opening the shared directory %s: %w", path, err)
		}
		dir := os.NewFile(uintptr(fd), path)
		defer dir.Close()
		visible = append(visible, shared{path, dir})
	}
	for name, text := range map[string]string{"etc/hosts": c.Hosts, "etc/hostname": c.Name + "\n"} {
		if err := os.WriteFile(filepath.Join(c.Root, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("while writing /%s: %w", name, err)
		}
	}
	// Unmounts on the machine reach the host, or it would keep file systems busy. Its own mounts stay within.
	switch err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); {
	case errors.Is(err, unix.EINVAL):
		return errors.New("the root directory is no mount point, as in a plain chroot: hosts can be had on a machine, or in a container or another tree that was entered by pivot_root")
	case err != nil:
		return fmt.Errorf("while separating the mounts: %w", err)
	}
	if err := HideGeoReplication(c.Root); err != nil {
		return err
	}
	// /var comes last, as the other sources may lie below it.
	for _, path := range []string{"/etc/hosts", "/etc/hostname", "/etc/ceph", "/var"} {
		if err := bind(filepath.Join(c.Root, path), path); err != nil {
			return err
		}
	}
	for _, path := range []string{"/run", "/tmp", "/dev/shm"} {
		if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("while mounting %s: %w", path, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("while mounting /proc: %w", err)
	}
	if err := os.MkdirAll("/run/lock", 0o1777); err != nil {
		return fmt.Errorf("while making /run/lock: %w", err)
	}
	for _, s := range visible {
		if err := s.show(); err != nil {
			return err
		}
	}
	if !c.Shared {
		return nil
	}
	// At the end: what is bound from a mount that is shared already joins it, and each mount below would show twice.
	if err := unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("while sharing the mounts: %w", err)
	}
	return nil
}

// HideGeoReplication takes geo-replication out of the GlusterFS that the mounts of this process
// show, as where a distribution packages it apart; Holdfast does not use it. With it each 'gluster'
// command starts a Python program first, which costs 0.2 s of a processor. A file for it is made in
// dir.
func HideGeoReplication(dir string) error {
	programs, err := filepath.Glob("/usr/lib/*/glusterfs/gsyncd")
	if err != nil || len(programs) == 0 {
		return err
	}
	// A script whose interpreter does not exist is to execve(2) one that does not exist itself.
	script := filepath.Join(dir, "gsyncd")
	if err := os.WriteFile(script, []byte("#!/nonexistent\n"), 0o755); err != nil {
		return fmt.Errorf("while writing a gsyncd that cannot run: %w", err)
	}
	for _, program := range programs {
		if err := bind(script, program); err != nil {
			return err
		}
	}
	return nil
}

// bind puts a file or directory of the host's own in place of the machine's, if that has one.
func bind(source, target string) error {
	if _, err := os.Stat(target); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("while mounting %s at %s: %w", source, target, err)
	}
	return nil
}

// show mounts the directory at its path again if it has been hidden.
func (s shared) show() error {
	var now, before unix.Stat_t
	if err := unix.Fstat(int(s.dir.Fd()), &before); err != nil {
		return fmt.Errorf("while looking at the shared directory %s: %w", s.path, err)
	}
	if unix.Stat(s.path, &now) == nil && now.Dev == before.Dev && now.Ino == before.Ino {
		return nil
	}
	if err := os.MkdirAll(s.path, 0o755); err != nil {
		return fmt.Errorf("while sharing %s: %w", s.path, err)
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", s.dir.Fd()), s.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("while sharing %s: %w", s.path, err)
	}
	return nil
}

// connect configures the host's end of the cable.
func (c initConfig) connect() error {
	for _, name := range []string{"lo", "eth0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("while finding the link %s: %w", name, err)
		}
		if name == "eth0" {
			addr, err := netlink.ParseAddr(c.IP + "/24")
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, addr); err != nil {
				return fmt.Errorf("while setting the address %s: %w", c.IP, err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("while starting the link %s: %w", name, err)
		}
	}
	return nil
}
